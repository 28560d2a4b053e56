// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_gpu_trace OUT LAUNCHES: a trace with the events of this build, in which a process launches so many kernels in
 * four streams, each call of the runtime with the driver's within it; every sixteenth launch is a copy. With 0 launches
 * it is there for its schema alone.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/meta.h"
#include "kernel/embedded.h"
#include "probes/cuda/cuda.h"
#include "probes/gpu/gpu.h"
#include "probes/proc/proc.h"
#include "trace/writer.h"

#define PID	 100
#define TID	 101
#define START	 1000000000000ull
#define PERIOD	 10000ull /* ns from one launch to the next */
#define STREAMS	 4
#define LAUNCHER 1 /* probes */
#define COPIER	 2

static const char *const names[] = { "_Z4gemmILi128EEvPfS0_S0_i", "_Z7softmaxPfi", "_Z10layer_normPfS_i" };

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "make_gpu_trace: %s: %s\n", what, strerror(-err));
	exit(1);
}

#define ADD(w, type, ...)                                                                           \
	do {                                                                                        \
		struct type e_ = { __VA_ARGS__ };                                                   \
		memcpy((char *)&e_ + offsetof(struct event, id), &(u16){ ID_##type }, sizeof(u16)); \
		must(trace_writer__append(w, &e_, sizeof(e_)), #type);                              \
	} while (0)

static void add_texts(struct trace_writer *w)
{
	static const char *const functions[] = { "cudaLaunchKernel", "cudaMemcpyAsync" };
	char room[256];
	struct gpu_name *n = (struct gpu_name *)room;

	ADD(w, proc_task, .event = { .time = START, .pid = PID, .tid = PID }, .comm = "python3");
	for (u16 i = 0; i < 2; i++)
		ADD(w, meta_probe, .event = { .time = START }, .number = (u16)(i + 1), .family = 3,
		    .name = trace_writer__intern(w, functions[i], strlen(functions[i])));
	for (u32 i = 0; i < 3; i++) {
		memset(room, 0, sizeof(room));
		n->event = (struct event){ .time = START, .pid = PID, .id = ID_gpu_name };
		n->kernel.name = i + 1;
		memcpy(n->text, names[i], strlen(names[i]));
		must(trace_writer__append(w, n, (u32)(offsetof(struct gpu_name, text) + strlen(names[i]))), "gpu_name");
	}
	ADD(w, gpu_shim, .event = { .time = START, .pid = PID }, .shim = { .state = GPU_SHIM_STARTED });
	ADD(w, gpu_device, .event = { .time = START, .pid = PID },
	    .device = { .memory = 80ull << 30, .major = 9, .uuid_first = 1, .model = "Made-up GPU" });
}

static void add_launch(struct trace_writer *w, u32 i, u64 *stream_free)
{
	u64 at = START + 1000000 + i * PERIOD, begin = at + 8000, ns = 5000 + i % 7 * 5000;
	u32 stream = 7 + i % STREAMS, correlation = i + 1;
	struct event call = { .time = at + 6000, .pid = PID, .tid = TID };
	struct event driver = { .time = at + 5000, .pid = PID, .tid = TID };
	struct event work = { .pid = PID };

	begin = begin < stream_free[i % STREAMS] ? stream_free[i % STREAMS] : begin;
	work.time = stream_free[i % STREAMS] = begin + ns;
	ADD(w, gpu_call, .span = { driver, at + 1000 },
	    .call = { .function = i % 16 ? 307 : 277, .correlation = correlation });
	if (i % 16) {
		call.probe = LAUNCHER;
		ADD(w, cuda_launch, .call = { .span = { call, at } }, .grid_x = 64, .block_x = 128);
		ADD(w, gpu_kernel, .span = { work, begin },
		    .kernel = { .name = 1 + i % 3,
				.context = 1,
				.stream = stream,
				.correlation = correlation,
				.grid_x = 64,
				.grid_y = 2,
				.grid_z = 1,
				.block_x = 128,
				.block_y = 1,
				.block_z = 1,
				.registers = 40 });
	} else {
		call.probe = COPIER;
		ADD(w, cuda_copy, .call = { .span = { call, at } }, .bytes = 65536, .kind = CUDA_COPY_HTOD);
		ADD(w, gpu_memcpy, .span = { work, begin },
		    .copy = { .bytes = 65536,
			      .context = 1,
			      .stream = stream,
			      .correlation = correlation,
			      .kind = GPU_COPY_HTOD,
			      .from_memory = GPU_MEMORY_PINNED,
			      .to_memory = GPU_MEMORY_DEVICE,
			      .asynchronous = 1 });
	}
}

int main(int argc, char **argv)
{
	static const struct trace_head head = {
		.hostname = "made-up", .cpus = 4, .monotonic = START, .boottime = START
	};
	u64 stream_free[STREAMS] = { 0 };
	struct trace_writer *w;
	struct embedded e;
	char err[256] = "";
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;

	if (fd < 0 || embedded__open(&e, err, sizeof(err))) {
		fprintf(stderr, "make_gpu_trace OUT LAUNCHES %s\n", err);
		return 2;
	}
	must(trace_writer__create(&w, fd, e.schema, &head), argv[1]);
	add_texts(w);
	for (u32 i = 0; i < (u32)atoi(argv[2]); i++) {
		add_launch(w, i, stream_free);
		if (i % 10000 == 9999)
			must(trace_writer__flush(w), "flush");
	}
	ADD(w, meta_end, .event = { .time = START + 2000000 + (u64)atoi(argv[2]) * PERIOD }, .reason = END_DURATION);
	must(trace_writer__finish(w), "finish");
	trace_writer__free(w);
	embedded__close(&e);
	close(fd);
	return 0;
}
