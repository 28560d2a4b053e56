// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program of CUDA's driver API that knows what it did: kernels of PTX text, copies, sets, events, graphs and waits,
 * on several streams and threads. tests/gpu/run compares what the shim reports with what this one writes down
 * (truth.h).
 *
 *	work run | many N | loop | late | again | reset | fork | exit | _exit | contexts
 *	work ptx [older]	prints the kernels' text
 */
#define _GNU_SOURCE
#include "work.h"
#include "kernels.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define THREADS	 2
#define STEPS	 60
#define TIMED	 20
#define TRIES	 5
#define LAUNCHES 20 /* of the graph */

struct worker {
	const struct gpu *gpu;
	int number;
	struct lane lanes[2];
	long wrong; /* floats that are not what they should be */
};

/* a + b of 0, 1, 2 .. is twice that. The doubles have no memory to look at. */
static long check_sum(struct lane *l)
{
	long wrong = 0;

	memset(l->pinned + LANE_RESULT, 0xff, ADD_N * sizeof(float));
	lane__copy(l, 2, ADD_N * sizeof(float), true, true);
	lane__wait(l);
	for (int i = 0; i < ADD_N && !l->gpu->simulated; i++)
		wrong += l->pinned[LANE_RESULT + i] != 2.0f * i;
	return wrong;
}

static void step(struct worker *w, int n)
{
	struct lane *a = &w->lanes[0], *b = &w->lanes[1];
	size_t bytes = 4 * (ADD_N + 16 * n);

	lane__copy(a, 1, bytes, n % 2, true);
	lane__copy(a, 8, bytes, false, true);
	lane__set(a, n, 1024 + 16 * n);
	for (int i = 0; i < 4; i++)
		lane__add(a);
	for (int i = 0; i < 3; i++)
		lane__empty(b);
	if (n % 4 == 0)
		lane__spin(b, 20000, 0);
	if (n % 10 == 0) {
		lane__copy(a, 1, 4 * ADD_N, false, false);
		lane__copy(a, 2, 4096 + n, true, false);
		lane__copy(b, 2, 4096 + n, false, true);
		lane__rest(a, n);
	}
	lane__wait(a);
	if (n % 8 == 7)
		gpu__wait();
}

static void *work(void *arg)
{
	struct worker *w = arg;

	MUST(cu.context_set(w->gpu->context));
	for (int i = 0; i < 2; i++)
		lane__open(&w->lanes[i], w->gpu, 1 + 2 * w->number + i);
	for (int i = 0; i < STEPS; i++)
		step(w, i);
	lane__add(&w->lanes[0]);
	w->wrong = check_sum(&w->lanes[0]);
	lane__wait(&w->lanes[1]);
	for (int i = 0; i < 2; i++)
		lane__close(&w->lanes[i]);
	return NULL;
}

static void in_threads(const struct gpu *g)
{
	struct worker workers[THREADS] = { 0 };
	pthread_t threads[THREADS];
	long wrong = 0;

	truth__phase("threads");
	for (int i = 0; i < THREADS; i++) {
		workers[i].gpu = g;
		workers[i].number = i;
		pthread_create(&threads[i], NULL, work, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		wrong += workers[i].wrong;
	}
	gpu__wait();
	truth__fact_number("wrong_sums", wrong);
}

/*
 * Between two events, behind a kernel that keeps the stream busy until all of it is enqueued: so the events have
 * the kernel's time, and not how long the host took. Whether the host was quick enough is looked at.
 */
static void timed(struct lane *l, uint64_t ns, cu_address stamp, cu_event from, cu_event to)
{
	uint64_t plug = l->gpu->simulated ? 20000000 : 1000000;
	float ms = 0;

	for (int i = 0; i < TRIES; i++) {
		struct op *first = lane__spin(l, plug, 0), *o;

		MUST(cu.event_record(from, l->stream));
		o = lane__spin(l, ns, stamp);
		MUST(cu.event_record(to, l->stream));
		if (truth__now() < first->begin + plug / 2)
			i = TRIES;
		lane__wait(l);
		MUST(cu.event_elapsed(&ms, from, to));
		if (i == TRIES)
			o->event_ns = ms * 1e6;
	}
}

static void in_events(const struct gpu *g)
{
	uint64_t stamps[2 * STAMPS] = { 0 };
	struct op *ops[TIMED];
	struct lane l;
	cu_address at;
	cu_event from, to;

	truth__phase("events");
	lane__open(&l, g, 10);
	at = op__alloc(sizeof(stamps));
	MUST(cu.event_create(&from, 0));
	MUST(cu.event_create(&to, 0));
	lane__empty(&l);
	for (int i = 0; i < TIMED; i++)
		timed(&l, 5000ULL << (i % 10), 0, from, to);
	for (int i = 0; i < TIMED; i++)
		ops[i] = lane__spin(&l, 10000ULL << (i % 8), at + 16 * i);
	lane__wait(&l);
	{
		struct op *o = truth__begin(OP_COPY, 0);

		o->kind = 2;
		o->bytes = sizeof(stamps);
		MUST(cu.dtoh(stamps, at, sizeof(stamps)));
		truth__end(o);
	}
	for (int i = 0; i < TIMED; i++)
		ops[i]->inside_ns = stamps[2 * i + 1] - stamps[2 * i];
	gpu__wait();
	op__free(at);
	lane__close(&l);
}

/* Kernel, kernel, set, kernel: one after the other. */
cu_graph_exec lane__graph(struct lane *l)
{
	const struct gpu *g = l->gpu;

	uint64_t cycles = gpu__cycles(g, 10000), none = 0;
	uint32_t n = ADD_N;
	void *adding[] = { &l->memory[0], &l->memory[1], &l->memory[2], &n }, *spinning[] = { &cycles, &none };
	struct cu_kernel_node add = { g->add, { ADD_N / 128, 1, 1 }, { 128, 1, 1 }, 0, adding, NULL, NULL, NULL };
	struct cu_kernel_node spin = { g->spin, { 1, 1, 1 }, { 1, 1, 1 }, 0, spinning, NULL, NULL, NULL };
	struct cu_memset_node set = { l->memory[2], 0, 7, 1, 8192, 1 };
	cu_result (*kernel)(cu_node *, cu_graph, const cu_node *, size_t, const struct cu_kernel_node *) =
		cu.graph_kernel ? cu.graph_kernel : cu.graph_kernel_11;
	cu_node nodes[4];
	cu_graph graph;
	cu_graph_exec exec;

	MUST(cu.graph_create(&graph, 0));
	MUST(kernel(&nodes[0], graph, NULL, 0, &add));
	MUST(kernel(&nodes[1], graph, &nodes[0], 1, &spin));
	MUST(cu.graph_memset(&nodes[2], graph, &nodes[1], 1, &set, g->context));
	MUST(kernel(&nodes[3], graph, &nodes[2], 1, &add));
	MUST(cu.graph_instantiate(&exec, graph, 0));
	return exec;
}

void lane__launch(struct lane *l, cu_graph_exec exec)
{
	struct op *o = truth__begin(OP_GRAPH, l->number);

	MUST(cu.graph_launch(exec, l->stream));
	truth__end(o);
}

static void in_graphs(const struct gpu *g)
{
	cu_graph_exec exec;
	struct lane l;

	truth__phase("graphs");
	lane__open(&l, g, 20);
	exec = lane__graph(&l);
	for (int i = 0; i < LAUNCHES; i++)
		lane__launch(&l, exec);
	lane__wait(&l);
	gpu__wait();
	lane__close(&l);
}

/* Events between streams. */
static void in_waits(const struct gpu *g)
{
	struct lane a, b;
	cu_event event;

	truth__phase("waits");
	lane__open(&a, g, 30);
	lane__open(&b, g, 31);
	MUST(cu.event_create(&event, 0));
	for (int i = 0; i < 10; i++) {
		struct op *o;

		lane__spin(&a, 200000, 0);
		MUST(cu.event_record(event, a.stream));
		o = truth__begin(OP_SYNC, b.number);
		o->kind = 2;
		MUST(cu.stream_wait(b.stream, event, 0));
		truth__end(o);
		lane__add(&b);
		o = truth__begin(OP_SYNC, 0);
		o->kind = 1;
		MUST(cu.event_synchronize(event));
		truth__end(o);
		lane__wait(&b);
	}
	gpu__wait();
	lane__close(&a);
	lane__close(&b);
}

int work__run(struct gpu *g)
{
	in_threads(g);
	in_events(g);
	in_graphs(g);
	in_waits(g);
	return 0;
}

/* Not written down one by one. */
int work__many(struct gpu *g, uint64_t n)
{
	cu_stream streams[4];
	uint64_t began;

	for (int i = 0; i < 4; i++)
		MUST(cu.stream_create(&streams[i], CU_STREAM_NON_BLOCKING));
	began = truth__now();
	for (uint64_t i = 0; i < n; i++) {
		MUST(cu.launch(g->empty, 2, 1, 1, 64, 1, 1, 0, streams[i % 4], NULL, NULL));
		if (i % 1000 == 999)
			MUST(cu.context_synchronize());
	}
	MUST(cu.context_synchronize());
	truth__fact_number("launched", n);
	truth__fact_number("launched_in_ns", truth__now() - began);
	return 0;
}

/* Asked on standard input: `go STEPS KERNELS` prints the seconds that they took; `on` and `off` switch the shim. */
int work__loop(struct gpu *g)
{
	char line[128];
	cu_stream stream;
	int steps, kernels;

	MUST(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t began = truth__now();

		if (sscanf(line, "go %d %d", &steps, &kernels) == 2) {
			for (int i = 0; i < steps; i++) {
				for (int k = 0; k < kernels; k++)
					MUST(cu.launch(g->empty, 2, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
				MUST(cu.stream_synchronize(stream));
			}
		} else {
			shim__switch(!strncmp(line, "on", 2));
		}
		printf("%.9f\n", (truth__now() - began) / 1e9);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "run";
	struct sigaction is;
	struct gpu g = { 0 };
	int r = 2;

	if (!strcmp(what, "ptx")) {
		printf("%s%s", kernel_targets[argc > 2], kernel_text);
		return 0;
	}
	/* the consumer's signals, where there is none */
	for (int i = 0; i < 2; i++)
		if (!sigaction(i ? SIGUSR1 : SIGUSR2, NULL, &is) && is.sa_handler == SIG_DFL)
			signal(i ? SIGUSR1 : SIGUSR2, SIG_IGN);
	/* a test that is killed leaves nothing behind */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	driver__load();
	gpu__open(&g);
	if (!strcmp(what, "run"))
		r = work__run(&g);
	else if (!strcmp(what, "many") && argc > 2)
		r = work__many(&g, strtoull(argv[2], NULL, 10));
	else if (!strcmp(what, "loop"))
		r = work__loop(&g);
	else if (!strcmp(what, "late"))
		r = work__late(&g);
	else if (!strcmp(what, "again"))
		r = work__again(&g);
	else if (!strcmp(what, "reset"))
		r = work__reset(&g);
	else if (!strcmp(what, "fork"))
		r = work__fork(&g, argv[0]);
	else if (!strcmp(what, "exit") || !strcmp(what, "_exit"))
		r = work__exit(&g, what[0] == '_');
	else if (!strcmp(what, "contexts"))
		r = work__contexts(&g);
	truth__write();
	return r;
}
