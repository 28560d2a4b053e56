// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls operators of PyTorch and reads the clock before and after each call, for bench_torch_durations.py. A line with a
 * number N on stdin makes N rounds of all operators. The answer is one line: the start and end of the rounds
 * (CLOCK_MONOTONIC, ns), then of each operator its name, and the times of its calls without that of the clock, in ns.
 */
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

static long now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* What an empty measurement shows */
static long clock_ns()
{
	std::vector<long> all;

	for (int i = 0; i < 1001; i++) {
		long start = now();
		all.push_back(now() - start);
	}
	std::nth_element(all.begin(), all.begin() + 500, all.end());
	return all[500];
}

int main()
{
	at::NoGradGuard no_grad;
	at::set_num_threads(1);
	at::manual_seed(1);

	auto matrix = at::randn({ 256, 256 }), rows = at::randn({ 128, 256 }), bias = at::randn({ 256 });
	auto large = at::randn({ 1 << 20 }), small = at::randn({ 16 }), batch = at::randn({ 8, 96, 96 });
	auto picture = at::randn({ 4, 3, 32, 32 }), kernel = at::randn({ 8, 3, 3, 3 }),
	     heads = at::randn({ 2, 4, 32, 16 });
	auto sequence = at::randn({ 20, 4, 32 }), state = at::zeros({ 1, 4, 32 });
	std::vector<at::Tensor> weights = { at::randn({ 128, 32 }), at::randn({ 128, 32 }), at::randn({ 128 }),
					    at::randn({ 128 }) };
	at::Tensor result;
	std::tuple<at::Tensor, at::Tensor, at::Tensor> results;
	const std::vector<std::pair<std::string, std::function<void()>>> work = {
		{ "aten::mm", [&] { result = at::mm(matrix, matrix); } },
		{ "aten::add.Tensor 1M", [&] { result = at::add(large, large); } },
		{ "aten::add.Tensor 16", [&] { result = at::add(small, small); } },
		{ "aten::bmm", [&] { result = at::bmm(batch, batch); } },
		{ "aten::gelu_backward", [&] { result = at::gelu_backward(rows, rows); } },
		{ "aten::_softmax", [&] { result = at::_softmax(rows, 1, false); } },
		{ "aten::linear", [&] { result = at::linear(rows, matrix, bias); } },
		{ "aten::layer_norm", [&] { result = at::layer_norm(rows, { 256 }, bias, bias); } },
		{ "aten::convolution", [&] { result = at::convolution(picture, kernel, {}, 1, 0, 1, false, 0, 1); } },
		{ "aten::max_pool2d", [&] { result = at::max_pool2d(picture, 2); } },
		{ "aten::einsum",
		  [&] {
			  result = at::einsum("ij,jk->ik", { matrix, matrix });
		  } },
		{ "aten::scaled_dot_product_attention",
		  [&] { result = at::scaled_dot_product_attention(heads, heads, heads); } },
		{ "aten::var.correction",
		  [&] { result = at::var(rows, at::OptionalIntArrayRef(std::vector<int64_t>{ 1 })); } },
		{ "aten::lstm.input",
		  [&] {
			  results = at::lstm(sequence, { state, state }, weights, true, 1, 0, false, false, false);
		  } },
	};

	std::cout << "ready" << std::endl;
	for (long rounds; std::cin >> rounds;) {
		std::vector<std::vector<long>> times(work.size());
		long clock = clock_ns(), start = now();

		for (long r = 0; r < rounds; r++)
			for (size_t i = 0; i < work.size(); i++) {
				long before = now();
				work[i].second();
				times[i].push_back(now() - before - clock);
				result = at::Tensor();
				results = {};
			}
		std::cout << "{\"start\": " << start << ", \"end\": " << now() << ", \"times\": {";
		for (size_t i = 0; i < work.size(); i++) {
			std::cout << (i ? ", " : "") << "\"" << work[i].first << "\": [";
			for (size_t k = 0; k < times[i].size(); k++)
				std::cout << (k ? "," : "") << times[i][k];
			std::cout << "]";
		}
		std::cout << "}}" << std::endl;
	}
	return 0;
}
