// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* GPU work of synthetic traces: it is joined to the call that launched it, or to no call if that is unknown. */
#include "gpu_support.h"
#include "test.h"

#define SECOND 1000000000ull

#define MOST 20000

static struct gpu_work works[MOST];
static struct gpu_launch launches[MOST]; /* of works[i]; works[0] means none */
static struct gpu_host_call calls[MOST];
static u32 n_works, n_calls;
static struct gpu_coverage reported;

static int on_work(const struct gpu_work *w, void *arg)
{
	if (n_works == MOST)
		return -1;
	works[n_works] = *w;
	launches[n_works++] = w->launch ? *w->launch : (struct gpu_launch){ 0 };
	return 0;
}

static int on_call(const struct gpu_host_call *c, void *arg)
{
	if (n_calls == MOST)
		return -1;
	calls[n_calls++] = *c;
	return 0;
}

static const struct gpu_listener listener = { on_work, on_call, NULL };

static bool read_between(struct made *g, u64 from, u64 to, u32 pid)
{
	struct trace_ids pids = { &pid, 1 };

	n_works = n_calls = 0;
	return !gpu_model__read(g->model, from, to, pid ? &pids : NULL, &listener, NULL, &reported);
}

static bool read_made(struct made *g)
{
	return made__open(g) && read_between(g, 0, 0, 0);
}

/* Work by its correlation; its index, or -1 */
static int work_of(u32 correlation)
{
	for (u32 i = 0; i < n_works; i++)
		if (works[i].correlation == correlation)
			return (int)i;
	return -1;
}

static void add_clock(struct made *g, u32 pid, u64 error)
{
	ADD(g, gpu_clock, .event = EVENT_AT(pid, 0, 2000), .clock = { .error = error });
}

/* A launch by a runtime call and its driver call, 10 us long, and its kernel */
static void add_launch(struct made *g, u32 pid, u32 tid, u64 at, u32 correlation, u64 start, u64 end)
{
	ADD(g, cuda_launch, .call = CALL_AT(pid, tid, at, at + 10000), .stream = 0xabc, .stack = 7,
	    .gil = GIL_HELD_YES);
	ADD(g, gpu_call, .span = SPAN_AT(pid, tid, at + 2000, at + 8000),
	    .call = { .function = 307, .correlation = correlation });
	ADD(g, gpu_kernel, .span = SPAN_AT(pid, 0, start, end),
	    .kernel = { .name = 77, .device = 0, .context = 1, .stream = 13, .correlation = correlation, .grid_x = 2 });
}

TEST(joins_a_kernel_to_its_call)
{
	struct made g;

	REQUIRE(made__begin(&g));
	made__name(&g, 10, 77, "_Z4gemmILi128EEvPfS0_S0_i");
	add_clock(&g, 10, 500);
	add_launch(&g, 10, 11, SECOND, 5, SECOND + 15000, SECOND + 40000);
	/* begins at the end of the previous one, although launched before */
	add_launch(&g, 10, 11, SECOND + 20000, 6, SECOND + 40000, SECOND + 60000);
	REQUIRE(read_made(&g));
	REQUIRE(n_works == 2);
	CHECK(works[0].correlation == 5 && works[0].queued == 5000 && !works[0].stream_free);
	CHECK(works[1].queued == 10000 && works[1].stream_free == SECOND + 40000);
	CHECK_TEXT(works[0].name, "_Z4gemmILi128EEvPfS0_S0_i");
	CHECK_TEXT(launches[0].function, "cuda_launch");
	CHECK(launches[0].probed && launches[0].tid == 11 && launches[0].stack == 7 && launches[0].gil == GIL_HELD_YES);
	CHECK(launches[0].start == SECOND && launches[0].end == SECOND + 10000 && launches[0].stream == 0xabc);
	CHECK(launches[0].number == 1 && launches[1].number == 2);
	CHECK(reported.kernels == 2 && reported.joined == 2 && !reported.unjoined && !reported.unprobed &&
	      !reported.unseen);
	CHECK(reported.clock_error == 500);
	CHECK(n_calls == 2 && !calls[0].nested);
	made__end(&g);
}

TEST(joins_a_call_that_only_cupti_reported)
{
	struct made g;

	REQUIRE(made__begin(&g));
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 1000, 2000), .call = { .function = 652, .correlation = 9 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, 3000, 4000), .kernel = { .correlation = 9 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, 3000, 4000), .kernel = { .correlation = 10 });
	/* a launch without recorded work, and one that failed */
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 5000, 6000), .call = { .function = 307, .correlation = 11 });
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 6000, 7000),
	    .call = { .function = 307, .correlation = 12, .result = 1 });
	REQUIRE(read_made(&g));
	REQUIRE(work_of(9) >= 0 && work_of(10) >= 0);
	CHECK_TEXT(launches[work_of(9)].function, "cuLaunchKernelEx");
	CHECK(!launches[work_of(9)].probed && launches[work_of(9)].tid == 1 && launches[work_of(9)].start == 1000);
	CHECK(!launches[work_of(10)].number && !works[work_of(9)].name);
	CHECK(reported.joined == 1 && reported.unjoined == 1 && reported.unprobed == 1 && reported.unseen == 1);
	made__end(&g);
}

TEST(allows_for_the_clocks_error)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 300);
	ADD(&g, cuda_launch, .call = CALL_AT(1, 1, 10000, 11000));
	ADD(&g, cuda_launch, .call = CALL_AT(1, 1, 11050, 12000));
	/* each extends beyond its call by less than the clock's error; the third by more */
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 9750, 10700), .call = { .function = 307, .correlation = 1 });
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 11300, 12300), .call = { .function = 307, .correlation = 2 });
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 12301, 12302), .call = { .function = 307, .correlation = 3 });
	/* between the two calls, nearer to the second */
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 10990, 11200), .call = { .function = 307, .correlation = 4 });
	for (u32 i = 1; i <= 4; i++)
		ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, 20000, 30000), .kernel = { .correlation = i });
	REQUIRE(read_made(&g) && n_works == 4);
	CHECK(launches[work_of(1)].start == 10000 && launches[work_of(2)].start == 11050);
	CHECK(!launches[work_of(3)].probed && launches[work_of(4)].start == 11050);
	made__end(&g);
}

TEST(takes_the_outermost_call)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 0);
	/* a call nested in a call, the driver's within both; another thread is in a call at the same time */
	ADD(&g, cuda_copy, .call = CALL_AT(1, 5, 2000, 8000), .stack = 3);
	ADD(&g, cuda_launch, .call = CALL_AT(1, 6, 500, 9500));
	ADD(&g, cuda_copy, .call = CALL_AT(1, 5, 1000, 9000), .stack = 2);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 5, 3000, 7000), .call = { .function = 276, .correlation = 1 });
	ADD(&g, gpu_memcpy, .span = SPAN_AT(1, 0, 4000, 6000),
	    .copy = { .correlation = 1, .kind = GPU_COPY_HTOD, .bytes = 64 });
	REQUIRE(read_made(&g) && n_works == 1);
	CHECK(launches[0].tid == 5 && launches[0].stack == 2 && !works[0].queued && works[0].bytes == 64);
	CHECK_TEXT(gpu_work__operation(&works[0]), "[CUDA memcpy Host-to-Device]");
	REQUIRE(n_calls == 3);
	CHECK(calls[0].nested && !calls[1].nested && !calls[2].nested);
	made__end(&g);
}

TEST(gives_all_nodes_of_a_graph_one_launch)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 100);
	ADD(&g, cuda_graph_launch, .call = CALL_AT(1, 1, 1000, 3000), .exec = 0xe);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 1500, 2500), .call = { .function = 514, .correlation = 4 });
	for (u32 i = 1; i <= 50; i++)
		ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, 5000 + i * 10, 5009 + i * 10),
		    .kernel = { .correlation = 4, .graph = 3, .graph_node = i });
	ADD(&g, gpu_memset, .span = SPAN_AT(1, 0, 9000, 9100),
	    .set = { .correlation = 4, .graph = 3, .graph_node = 51 });
	ADD(&g, cuda_graph_launch, .call = CALL_AT(1, 1, 11000, 13000), .exec = 0xe);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 11500, 12500), .call = { .function = 514, .correlation = 5 });
	ADD(&g, gpu_graph, .span = SPAN_AT(1, 0, 15000, 16000), .graph = { .correlation = 5, .graph = 3 });
	REQUIRE(read_made(&g) && n_works == 52);
	for (u32 i = 0; i < 51; i++)
		CHECK(launches[i].number == launches[0].number && launches[i].probed && works[i].graph_node == i + 1);
	CHECK(launches[51].number != launches[0].number && works[51].kind == GPU_GRAPH && reported.graphs == 1);
	CHECK(reported.joined == 52 && !reported.unseen);
	made__end(&g);
}

TEST(translates_a_namespaces_thread)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 900, 100);
	ADD(&g, proc_task, .event = EVENT_AT(900, 900, 1), .ns_pid = 1, .ns_tid = 1);
	ADD(&g, proc_fork, .event = EVENT_AT(900, 900, 500), .child_pid = 900, .child_tid = 907, .child_ns_pid = 1,
	    .child_ns_tid = 8);
	/* tids of the host that are also tids in the namespace: another process's thread */
	ADD(&g, proc_task, .event = EVENT_AT(8, 8, 1), .ns_pid = 8, .ns_tid = 8);
	ADD(&g, cuda_launch, .call = CALL_AT(900, 907, 1000, 3000), .stack = 4);
	ADD(&g, gpu_call, .span = SPAN_AT(900, 8, 1500, 2500), .call = { .function = 307, .correlation = 1 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(900, 0, 5000, 6000), .kernel = { .correlation = 1 });
	/* a thread that the trace does not have: it is the only one with a call at that time */
	ADD(&g, cuda_launch, .call = CALL_AT(900, 950, 11000, 13000), .stack = 5);
	ADD(&g, gpu_call, .span = SPAN_AT(900, 51, 11500, 12500), .call = { .function = 307, .correlation = 2 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(900, 0, 15000, 16000), .kernel = { .correlation = 2 });
	/* ambiguous between two */
	ADD(&g, cuda_launch, .call = CALL_AT(900, 951, 21000, 23000));
	ADD(&g, cuda_launch, .call = CALL_AT(900, 952, 21000, 23000));
	ADD(&g, gpu_call, .span = SPAN_AT(900, 60, 21500, 22500), .call = { .function = 307, .correlation = 3 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(900, 0, 25000, 26000), .kernel = { .correlation = 3 });
	REQUIRE(read_made(&g) && n_works == 3);
	CHECK(launches[0].tid == 907 && launches[0].stack == 4);
	CHECK(launches[1].tid == 950 && launches[1].stack == 5);
	CHECK(!launches[2].tid && !launches[2].probed && launches[2].number);
	made__end(&g);
}

TEST(reports_calls_as_work_without_a_shim)
{
	struct made g;

	REQUIRE(made__begin(&g));
	ADD(&g, cuda_launch, .call = CALL_AT(3, 4, 1000, 3000), .function = 0xf00, .grid_x = 5, .block_x = 6,
	    .stack = 9);
	ADD(&g, cuda_copy, .call = CALL_AT(3, 4, 4000, 5000), .bytes = 100, .kind = CUDA_COPY_DTOH);
	ADD(&g, cuda_set, .call = CALL_AT(3, 4, 5000, 6000), .bytes = 200);
	ADD(&g, cuda_graph_launch, .call = CALL_AT(3, 4, 6000, 7000));
	ADD(&g, cuda_copy_peer, .call = CALL_AT(3, 4, 7000, 8000), .bytes = 300);
	/* it failed, so there is no work */
	ADD(&g, cuda_launch, .call = { .span = SPAN_AT(3, 4, 8000, 9000), .ret = 35 });
	ADD(&g, cuda_sync, .call = CALL_AT(3, 4, 9000, 9900));
	/* a call nested in another is one work item */
	ADD(&g, cuda_copy, .call = CALL_AT(3, 4, 10100, 10900), .bytes = 1);
	ADD(&g, cuda_copy, .call = CALL_AT(3, 4, 10000, 11000), .bytes = 2);
	/* a process with a shim: its calls are not used */
	add_clock(&g, 5, 100);
	ADD(&g, cuda_launch, .call = CALL_AT(5, 5, 1000, 3000));
	REQUIRE(read_made(&g));
	REQUIRE(n_works == 6);
	CHECK(works[0].kind == GPU_KERNEL && works[0].grid[0] == 5 && works[0].block[0] == 6 && works[0].host_time);
	CHECK_TEXT(works[0].name, "kernel 0xf00");
	CHECK(launches[0].tid == 4 && launches[0].stack == 9 && launches[0].probed && works[0].device == GPU_NO_DEVICE);
	CHECK(works[1].copy_kind == GPU_COPY_DTOH && works[1].bytes == 100);
	CHECK(works[2].kind == GPU_SET && works[3].kind == GPU_GRAPH && works[4].copy_kind == GPU_COPY_PTOP);
	CHECK(works[5].bytes == 2 && n_calls == 10 && reported.host_time == 6 && reported.joined == 6);
	made__end(&g);
}

static void add_shim(struct made *g, u32 pid, u64 at, u32 state)
{
	ADD(g, gpu_shim, .event = EVENT_AT(pid, 0, at), .shim = { .state = state });
}

TEST(counts_unobserved_work)
{
	struct made g;

	REQUIRE(made__begin(&g));
	/* two launches and a copy before the shim was active, one launch after; without a shim all are reported */
	add_shim(&g, 10, SECOND, GPU_SHIM_STARTED);
	add_shim(&g, 10, 2 * SECOND, GPU_SHIM_STOPPED);
	ADD(&g, cuda_launch, .call = CALL_AT(10, 11, SECOND / 2, SECOND / 2 + 10000));
	ADD(&g, cuda_launch, .call = CALL_AT(10, 11, SECOND / 2 + 20000, SECOND / 2 + 30000));
	ADD(&g, cuda_copy, .call = CALL_AT(10, 11, SECOND / 2 + 40000, SECOND / 2 + 50000), .bytes = 8);
	/* one failed, one launched nothing, one spans that time */
	ADD(&g, cuda_launch, .call = { .span = SPAN_AT(10, 11, SECOND / 2 + 60000, SECOND / 2 + 70000), .ret = 9 });
	ADD(&g, cuda_sync, .call = CALL_AT(10, 11, SECOND / 2 + 80000, SECOND / 2 + 90000));
	ADD(&g, cuda_launch, .call = CALL_AT(10, 11, SECOND - 5000, SECOND + 5000));
	add_launch(&g, 10, 11, SECOND + 20000, 5, SECOND + 35000, SECOND + 40000);
	ADD(&g, cuda_launch, .call = CALL_AT(10, 11, 2 * SECOND + 20000, 2 * SECOND + 30000));
	ADD(&g, cuda_launch, .call = CALL_AT(20, 21, SECOND / 2, SECOND / 2 + 10000));
	REQUIRE(read_made(&g));
	CHECK(reported.unwatched == 4 && reported.kernels == 2 && reported.host_time == 1);
	CHECK(read_between(&g, SECOND, 0, 0) && reported.unwatched == 1);
	CHECK(read_between(&g, 0, 0, 20) && !reported.unwatched);
	made__end(&g);

	/* active again for another tracer: the time in between is not distinguished */
	REQUIRE(made__begin(&g));
	add_shim(&g, 10, SECOND, GPU_SHIM_STARTED);
	add_shim(&g, 10, 2 * SECOND, GPU_SHIM_STOPPED);
	add_shim(&g, 10, 3 * SECOND, GPU_SHIM_STARTED);
	ADD(&g, cuda_launch, .call = CALL_AT(10, 11, 4 * SECOND, 4 * SECOND + 10000));
	REQUIRE(read_made(&g));
	CHECK(!reported.unwatched);
	made__end(&g);
}

TEST(reads_a_part)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 100);
	add_clock(&g, 2, 900);
	for (u32 i = 0; i < 100; i++)
		add_launch(&g, 1 + i % 2, 1 + i % 2, SECOND * (i + 1), i, SECOND * (i + 1) + SECOND / 2,
			   SECOND * (i + 2));
	REQUIRE(made__open(&g));
	/* the launch is before this time, the end after it */
	REQUIRE(read_between(&g, 50 * SECOND + SECOND / 2 + 5, 50 * SECOND + SECOND / 2 + 6, 0) && n_works == 1);
	CHECK(works[0].correlation == 49 && launches[0].probed && !n_calls);
	REQUIRE(read_between(&g, 0, 0, 2));
	CHECK(n_works == 50 && n_calls == 50 && reported.clock_error == 900 && reported.joined == 50);
	REQUIRE(read_between(&g, 0, 0, 1));
	CHECK(reported.clock_error == 100 && reported.joined == 50);
	made__end(&g);
}

/* Late records: a long kernel kept CUPTI from delivering its buffer. */
TEST(joins_late_records)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 100);
	for (u32 i = 1; i <= 300; i++) {
		u64 at = SECOND / 20 * i;

		ADD(&g, cuda_launch, .call = CALL_AT(1, 1, at, at + 10000), .stack = i);
		/* all driver calls of 5 s arrive at once */
		if (i % 100 == 0)
			for (u32 j = i - 99; j <= i; j++)
				ADD(&g, gpu_call, .span = SPAN_AT(1, 1, SECOND / 20 * j + 10, SECOND / 20 * j + 9000),
				    .call = { .function = 307, .correlation = j });
		ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, at + 20000, at + 30000), .kernel = { .correlation = i });
		trace_writer__flush(g.w);
	}
	REQUIRE(read_made(&g) && n_works == 300);
	for (u32 i = 0; i < 300; i++)
		CHECK(launches[i].stack == i + 1 && works[i].correlation == i + 1);
	made__end(&g);
}

/* A process whose CUPTI reports no driver calls: a launch and a copy every 100 us, and their work. */
static void add_ordered(struct made *g, u32 pid, u32 i, bool call, bool work)
{
	u64 at = SECOND + 100000ull * i;

	if (call) {
		ADD(g, cuda_launch, .call = CALL_AT(pid, pid, at, at + 1000), .grid_x = 1 + i % 3, .block_x = 32,
		    .stack = i);
		ADD(g, cuda_copy, .call = CALL_AT(pid, pid + 1, at + 2000, at + 3000), .bytes = 64, .stack = 1000 + i);
	}
	if (work) {
		ADD(g, gpu_kernel, .span = SPAN_AT(pid, 0, at + 5000, at + 6000),
		    .kernel = { .correlation = 10 * i, .grid_x = 1 + i % 3, .block_x = 32 });
		ADD(g, gpu_memcpy, .span = SPAN_AT(pid, 0, at + 7000, at + 8000),
		    .copy = { .correlation = 10 * i + 5, .bytes = 64 });
	}
}

TEST(knows_the_drivers_calls)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 100);
	ADD(&g, cudadrv_launch, .call = CALL_AT(1, 2, 1000, 3000), .stack = 5, .stream = 0x77);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 2, 1500, 2500), .call = { .function = 307, .correlation = 1 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, 4000, 5000), .kernel = { .correlation = 1 });
	/* within the runtime call */
	ADD(&g, cudadrv_copy, .call = CALL_AT(1, 2, 11000, 12000), .stack = 7);
	ADD(&g, cuda_copy, .call = CALL_AT(1, 2, 10000, 13000), .stack = 6);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 2, 11500, 11900), .call = { .function = 277, .correlation = 2 });
	ADD(&g, gpu_memcpy, .span = SPAN_AT(1, 0, 14000, 15000), .copy = { .correlation = 2 });
	/* no shim: kernels are named by lookups of functions */
	made__function(&g, 7, 0xf1, 0, "_Z7softmaxPfi");
	made__function(&g, 7, 0xf2, 0xf1, "");
	made__function(&g, 8, 0xf1, 0, "triton_poi_0");
	ADD(&g, cudadrv_launch, .call = CALL_AT(7, 7, 20000, 21000), .function = 0xf2, .grid_x = 4);
	ADD(&g, cudadrv_launch, .call = CALL_AT(8, 8, 22000, 23000), .function = 0xf1);
	ADD(&g, cudadrv_launch, .call = CALL_AT(9, 9, 24000, 25000), .function = 0xf1);
	REQUIRE(read_made(&g) && n_works == 5);
	CHECK(launches[0].probed && launches[0].stack == 5 && launches[0].stream == 0x77 && launches[1].stack == 6);
	CHECK_TEXT(works[2].name, "_Z7softmaxPfi");
	CHECK_TEXT(works[3].name, "triton_poi_0");
	CHECK_TEXT(works[4].name, "kernel 0xf1");
	CHECK(works[2].host_time && works[2].grid[0] == 4 && n_calls == 9);
	made__end(&g);
}

TEST(joins_work_to_a_calls_entry)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 100);
	/* the first driver call is the launch's, the second call has none; the third driver call is no launch */
	ADD(&g, cuda_launch,
	    .call = { .span = { .event = { .time = 1000, .pid = 1, .tid = 1, .flags = EVENT_NO_DURATION },
				.start = 1000 } },
	    .stack = 5);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 1500, 2500), .call = { .function = 307, .correlation = 1 });
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 3500, 4500), .call = { .function = 307, .correlation = 2 });
	ADD(&g, cuda_launch,
	    .call = { .span = { .event = { .time = 5000, .pid = 1, .tid = 1, .flags = EVENT_NO_DURATION },
				.start = 5000 } },
	    .stack = 6);
	ADD(&g, gpu_call, .span = SPAN_AT(1, 1, 5500, 6500), .call = { .function = 216, .correlation = 3 });
	for (u32 i = 1; i <= 3; i++)
		ADD(&g, gpu_kernel, .span = SPAN_AT(1, 0, 10000 * i, 10000 * i + 5), .kernel = { .correlation = i });
	REQUIRE(read_made(&g) && n_works == 3);
	CHECK(launches[0].probed && launches[0].stack == 5 && launches[0].start == 1000 && launches[0].end == 2500);
	CHECK(works[0].queued == 7500 && !launches[1].probed && launches[1].tid == 1 && !launches[2].probed);
	made__end(&g);
}

TEST(joins_by_order_without_driver_calls)
{
	struct made g;

	REQUIRE(made__begin(&g));
	add_clock(&g, 1, 100);
	add_clock(&g, 2, 100);
	add_clock(&g, 3, 100);
	add_clock(&g, 4, 100);
	for (u32 i = 0; i < 90; i++) {
		/* the work of the last ones has not run yet */
		add_ordered(&g, 1, i, true, i < 85);
		/* one in the middle is lost, so that no assignment is consistent */
		add_ordered(&g, 2, i, true, i != 40);
		/* work was recorded from the tenth call on; as calls repeat, it could be that of earlier calls */
		add_ordered(&g, 4, i, true, i >= 10);
	}
	/* two threads at once */
	ADD(&g, cuda_launch, .call = CALL_AT(3, 3, SECOND, SECOND + 2000), .grid_x = 1);
	ADD(&g, cuda_launch, .call = CALL_AT(3, 4, SECOND + 1000, SECOND + 3000), .grid_x = 1);
	ADD(&g, gpu_kernel, .span = SPAN_AT(3, 0, SECOND + 5000, SECOND + 6000),
	    .kernel = { .correlation = 1, .grid_x = 1 });
	ADD(&g, gpu_kernel, .span = SPAN_AT(3, 0, SECOND + 6000, SECOND + 7000),
	    .kernel = { .correlation = 2, .grid_x = 1 });
	REQUIRE(read_made(&g));
	CHECK(n_works == 2 * (85 + 89 + 80) + 2 && reported.joined == 170);
	for (u32 i = 0; i < n_works; i++) {
		u32 n = works[i].correlation / 10, stack = works[i].kind == GPU_COPY ? 1000 + n : n;

		REQUIRE(works[i].pid == 1 ? launches[i].stack == stack && launches[i].probed : !launches[i].number);
	}
	made__end(&g);
}

TEST(survives_any_value)
{
	struct made g;
	u64 seed = 88172645463325252ull;
	u8 bytes[512];
	u32 n = 0;

	REQUIRE(made__begin(&g));
	for (u32 i = 0; i < 20000; i++) {
		const struct schema_event *e = &g.e.schema->events[i % g.e.schema->n_events];

		if (strncmp(e->name, "gpu_", 4) && strncmp(e->name, "cuda", 4))
			continue;
		for (u32 j = 0; j < sizeof(bytes); j += 8) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			/* small values match each other more often */
			*(u64 *)(bytes + j) = i % 3 ? seed : seed & 0x0000000300000003ull;
		}
		((struct event *)bytes)->id = e->id;
		n += !trace_writer__append(g.w, bytes, e->size);
	}
	REQUIRE(n > 1000 && read_made(&g));
	made__end(&g);
}

TEST_MAIN()
