// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cost of reading GPU work: gpu_model [KERNELS [FILE]]. Each kernel has a runtime and a driver call, from 4 threads
 * into 64 streams, 150,000 per second. FILE keeps the trace.
 */
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <time.h>

#include "../unit/gpu_support.h"

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static u64 peak(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (u64)r.ru_maxrss * 1024;
}

static int on_work(const struct gpu_work *w, void *arg)
{
	++*(u64 *)arg;
	return 0;
}

static void add(struct made *g, u32 i)
{
	u64 at = 1000000000ull + i * 6700ull;
	u32 tid = 100 + i % 4;

	ADD(g, cuda_launch, .call = CALL_AT(100, tid, at, at + 5000), .function = 0x400000 + i % 50 * 64,
	    .stream = i % 64, .grid_x = 64, .block_x = 128, .grid_y = 1, .grid_z = 1, .block_y = 1, .block_z = 1,
	    .stack = 1 + i % 200);
	ADD(g, gpu_call, .span = SPAN_AT(100, tid, at + 1000, at + 4000),
	    .call = { .function = 307, .correlation = i + 1 });
	if (i < 5000)
		return;
	/* CUPTI delivers records 30 ms later */
	i -= 5000;
	at = 1000000000ull + i * 6700ull + 20000;
	ADD(g, gpu_kernel, .span = SPAN_AT(100, 0, at, at + 3000 + i % 1000),
	    .kernel = { .name = i % 50,
			.device = i % 8,
			.context = 1,
			.stream = 13 + i % 64,
			.correlation = i + 1,
			.grid_x = 64,
			.block_x = 128,
			.registers = 40 });
}

static bool keep(int fd, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	off_t at = 0, size = lseek(fd, 0, SEEK_END);

	while (to >= 0 && at < size && sendfile(to, fd, &at, (size_t)(size - at)) > 0)
		;
	if (to >= 0)
		close(to);
	return at == size;
}

int main(int argc, char **argv)
{
	u32 i, n = argc > 1 ? (u32)atoi(argv[1]) : 1000000;
	const struct gpu_listener listener = { .work = on_work };
	struct gpu_coverage reported;
	struct made g;
	u64 began, works = 0, before;
	int err;

	if (!made__begin(&g))
		return 1;
	for (i = 0; i < 50; i++)
		made__name(&g, 100, i, "_Z4gemmILi128EEvPfS0_S0_i");
	ADD(&g, gpu_clock, .event = EVENT_AT(100, 0, 1), .clock = { .error = 200 });
	for (i = 0; i < n + 5000; i++)
		add(&g, i);
	trace_writer__finish(g.w);
	if (argc > 2 && !keep(g.fd, argv[2]))
		perror(argv[2]);
	before = peak();
	began = now();
	if (!made__open(&g))
		return 1;
	err = gpu_model__read(g.model, 0, 0, NULL, &listener, &works, &reported);
	printf("%llu kernels read in %.2f s, %.0f MiB at most (%.0f before, of the writer); %llu joined, %llu not, %llu unseen; error %d\n",
	       works, (double)(now() - began) / 1e9, (double)peak() / (1 << 20), (double)before / (1 << 20),
	       reported.joined, reported.unjoined, reported.unseen, err);
	made__end(&g);
	return err || reported.joined != n;
}
