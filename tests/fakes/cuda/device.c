// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The simulated machine: devices, contexts, streams, what they do and the truth about it. */
#define _GNU_SOURCE
#include "device.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct machine machine = { .lock = PTHREAD_MUTEX_INITIALIZER, .truth = -1 };
static __thread uint32_t correlation, depth, runtime_depth;
static uint32_t next_correlation;

uint64_t fake__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

uint32_t fake__tid(void)
{
	static __thread uint32_t tid;
	static __thread pid_t pid;

	if (pid != getpid()) {
		pid = getpid();
		tid = syscall(SYS_gettid);
	}
	return tid;
}

uint64_t fake__setting(const char *variable, const char *key, uint64_t def)
{
	const char *p = getenv(variable);
	size_t len = strlen(key);

	for (; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, key, len) && p[len] == '=')
			return strtoull(p + len + 1, NULL, 10);
	return def;
}

uint32_t fake__enter(void)
{
	if (!depth++)
		correlation = __atomic_add_fetch(&next_correlation, 1, __ATOMIC_RELAXED);
	return correlation;
}

void fake__leave(void)
{
	depth--;
}

void fake__enter_runtime(void)
{
	fake__enter();
	runtime_depth++;
}

void fake__leave_runtime(uint32_t cbid, uint64_t start, uint32_t result)
{
	runtime_depth--;
	if (cbid) {
		pthread_mutex_lock(&machine.lock);
		machine__tell(&(struct fake_record){ .op = FAKE_RUNTIME_CALL,
						     .start = start,
						     .end = fake__now(),
						     .tid = fake__tid(),
						     .correlation = correlation,
						     .kind = cbid,
						     .result = result });
		pthread_mutex_unlock(&machine.lock);
	}
	fake__leave();
}

bool machine__is_in_runtime(void)
{
	return runtime_depth;
}

void fake__set_tool(fake_tool tool)
{
	pthread_mutex_lock(&machine.lock);
	machine.tool = tool;
	pthread_mutex_unlock(&machine.lock);
}

static const char *const op_names[] = { "kernel",  "copy",   "set",	"sync",	  "graph", "memory", "call",
					"runtime", "device", "context", "stream", "reset", "note" };

/* Buffered: a million kernels are a million lines. */
static char lines[1 << 16];
static size_t filled;

void truth__flush(void)
{
	if (machine.truth >= 0 && filled && write(machine.truth, lines, filled) < 0)
		perror("truth");
	filled = 0;
}

static void write_truth(const struct fake_record *r, bool kept)
{
	if (machine.truth < 0)
		return;
	if (sizeof(lines) - filled < 4096)
		truth__flush();
	filled += snprintf(
		lines + filled, sizeof(lines) - filled,
		"%s traced=%d pid=%d tid=%u start=%lu end=%lu correlation=%u device=%u context=%u stream=%u "
		"bytes=%lu address=%lu kind=%u graph=%u node=%lu result=%u grid=%u,%u,%u block=%u,%u,%u name=%s\n",
		op_names[r->op], kept, getpid(), r->tid, r->start, r->end, r->correlation, r->device, r->context,
		r->stream, r->bytes, r->address, r->kind, r->graph, r->node, r->result, r->grid[0], r->grid[1],
		r->grid[2], r->block[0], r->block[1], r->block[2], r->name ? r->name : "");
}

void fake__note(const char *name, uint64_t n)
{
	pthread_mutex_lock(&machine.lock);
	write_truth(&(struct fake_record){ .op = FAKE_NOTE, .bytes = n, .name = name }, false);
	truth__flush();
	pthread_mutex_unlock(&machine.lock);
}

/* With the lock. */
void machine__tell(const struct fake_record *r)
{
	write_truth(r, machine.tool && machine.tool(r));
}

void fake__dump(enum fake_op op, fake_tool tool)
{
	uint32_t i;

	for (i = 0; op == FAKE_DEVICE && i < machine.devices; i++)
		tool(&(struct fake_record){ .op = op, .device = i });
	for (i = 0; op == FAKE_CONTEXT && i < CONTEXTS_MAX; i++)
		if (machine.contexts[i].there)
			tool(&(struct fake_record){
				.op = op, .device = machine.contexts[i].device, .context = machine.contexts[i].id });
	for (i = 0; op == FAKE_STREAM && i < machine.n_streams; i++)
		if (machine.streams[i])
			tool(&(struct fake_record){ .op = op,
						    .device = machine.streams[i]->device,
						    .context = machine.contexts[machine.streams[i]->owner].id,
						    .stream = machine.streams[i]->id });
}

static void in_child(void)
{
	pthread_mutex_init(&machine.lock, NULL);
	filled = 0;
	machine.tool = NULL;
	/* as CUDA: what was initialized before a fork can't be used after it */
	machine.broken = machine.devices_known;
}

/* A test ends the program during it. */
static void on_term(int sig)
{
	exit(0);
}

static __attribute__((constructor)) void begin(void)
{
	const char *path = getenv("FAKE_CUDA_TRUTH");

	pthread_atfork(NULL, NULL, in_child);
	if (path)
		machine.truth = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	atexit(truth__flush);
	signal(SIGTERM, on_term);
}

void machine__init(void)
{
	if (machine.devices_known)
		return;
	machine.devices = fake__setting("FAKE_CUDA", "devices", 1);
	if (machine.devices > DEVICES_MAX)
		machine.devices = DEVICES_MAX;
	machine.latency = fake__setting("FAKE_CUDA", "latency_ns", 2000);
	machine.gbps = fake__setting("FAKE_CUDA", "gbps", 10);
	machine.set_gbps = fake__setting("FAKE_CUDA", "set_gbps", 100);
	machine.devices_known = true;
	for (uint32_t i = 0; i < machine.devices; i++)
		machine__tell(&(struct fake_record){ .op = FAKE_DEVICE, .device = i, .start = fake__now() });
}

/* A context's null stream has id 7, as CUDA's. An id is not used again after a reset. */
struct context *machine__context(uint32_t number)
{
	struct context *c = &machine.contexts[number];

	if (c->there)
		return c;
	if (number < DEVICES_MAX)
		c->device = number;
	c->there = true;
	c->id = number + 1 + machine.resets * CONTEXTS_MAX;
	c->null_stream = (struct stream){ .device = c->device, .id = 7, .owner = number };
	machine__tell(&(struct fake_record){
		.op = FAKE_CONTEXT, .device = c->device, .context = c->id, .start = fake__now() });
	return c;
}

struct stream *machine__null_stream(uint32_t context)
{
	return &machine__context(context)->null_stream;
}

void machine__destroy(uint32_t context)
{
	struct context *c = &machine.contexts[context];

	if (!c->there)
		return;
	machine__tell(
		&(struct fake_record){ .op = FAKE_RESET, .device = c->device, .context = c->id, .start = fake__now() });
	/* who still has one of its streams may look at it, as a stale handle: it is not freed */
	for (uint32_t i = 0; i < machine.n_streams; i++)
		if (machine.streams[i] && machine.streams[i]->owner == context)
			machine.streams[i] = NULL;
	c->there = false;
	machine.resets++;
}

struct stream *machine__new_stream(uint32_t context)
{
	struct stream *s = calloc(1, sizeof(*s)), **bigger;
	struct context *c = machine__context(context);

	bigger = realloc(machine.streams, (machine.n_streams + 1) * sizeof(*bigger));
	if (!s || !bigger)
		abort();
	machine.streams = bigger;
	s->device = c->device;
	s->owner = context;
	s->id = 13 + machine.n_streams;
	machine.streams[machine.n_streams++] = s;
	machine__tell(&(struct fake_record){
		.op = FAKE_STREAM, .device = c->device, .context = c->id, .stream = s->id, .start = fake__now() });
	return s;
}

static void place(struct stream *s, struct fake_record *r)
{
	uint64_t now = fake__now() + machine.latency;

	r->device = s->device;
	r->context = machine.contexts[s->owner].id;
	r->stream = s->id;
	r->start = s->available > now ? s->available : now;
}

void machine__enqueue_waiting(struct stream *s, struct fake_record *r, const struct fake_kernel *k)
{
	place(s, r);
	k->end(k, r->start);
	s->waiting = k;
	s->waiting_record = *r;
}

void machine__settle(struct stream *s)
{
	struct fake_record *r = &s->waiting_record;
	uint64_t end = 0;

	while (s->waiting && !(end = s->waiting->end(s->waiting, r->start)))
		usleep(200);
	pthread_mutex_lock(&machine.lock);
	if (s->waiting && end) {
		s->waiting = NULL;
		r->end = s->available = end;
		machine__tell(r);
	}
	pthread_mutex_unlock(&machine.lock);
}

/* Puts work into a stream: behind what is there, and not before now. */
void machine__enqueue(struct stream *s, struct fake_record *r, uint64_t ns)
{
	place(s, r);
	r->end = r->start + ns;
	s->available = r->end;
	machine__tell(r);
}

void machine__wait_until(uint64_t moment)
{
	struct timespec t = { moment / 1000000000, moment % 1000000000 };

	if (fake__now() < moment)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
			;
}

uint64_t machine__busy_until(uint32_t context)
{
	uint64_t last = machine.contexts[context].null_stream.available;

	for (uint32_t i = 0; i < machine.n_streams; i++)
		if (machine.streams[i] && machine.streams[i]->owner == context && machine.streams[i]->available > last)
			last = machine.streams[i]->available;
	return last;
}
