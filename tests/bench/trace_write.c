// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cost of an event in a trace: its bytes in the file, compared with the entropy of
 * its columns, and the time to append, encode and compress it on one core.
 *
 *	trace_write [EVENTS [FILE]]
 *
 * The events are API spans with log-normal durations and gaps from 8 threads
 * of two processes on 8 CPUs, drained in bursts a CPU as the loader does.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "core/event.h"
#include "trace/writer.h"

#define THREADS 8
#define ROUNDS	7
#define BURST	20000000ULL /* ns between drains */

struct copy { /* 80 bytes, as cuda_copy */
	struct call call;
	u64 bytes, dst, src, stream;
	u32 kind;
};

struct launch { /* 48 bytes */
	struct call call;
	u64 correlation;
};

static u64 seed = 88172645463325252ULL;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static double uniform(void)
{
	return ((rnd() >> 11) + 0.5) / 9007199254740992.0;
}

static double lognormal(double median, double sigma)
{
	return median * exp(sigma * sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()));
}

#define HEAD                                                                                   \
	"{\"name\":\"time\",\"type\":\"unsigned\",\"size\":8,\"offset\":0,\"unit\":\"ns\"},"   \
	"{\"name\":\"pid\",\"type\":\"unsigned\",\"size\":4,\"offset\":8},"                    \
	"{\"name\":\"tid\",\"type\":\"unsigned\",\"size\":4,\"offset\":12},"                   \
	"{\"name\":\"id\",\"type\":\"unsigned\",\"size\":2,\"offset\":16},"                    \
	"{\"name\":\"probe\",\"type\":\"unsigned\",\"size\":2,\"offset\":18},"                 \
	"{\"name\":\"cpu\",\"type\":\"unsigned\",\"size\":2,\"offset\":20},"                   \
	"{\"name\":\"flags\",\"type\":\"unsigned\",\"size\":2,\"offset\":22},"                 \
	"{\"name\":\"start\",\"type\":\"unsigned\",\"size\":8,\"offset\":24,\"unit\":\"ns\"}," \
	"{\"name\":\"ret\",\"type\":\"signed\",\"size\":8,\"offset\":32}"
#define U64(name, at) ",{\"name\":\"" name "\",\"type\":\"unsigned\",\"size\":8,\"offset\":" #at "}"

static const char schema_text[] =
	"{\"families\":[{\"id\":3,\"name\":\"cuda\"}],\"events\":["
	"{\"id\":769,\"name\":\"copy\",\"size\":80,\"fields\":[" HEAD U64("bytes", 40) U64("dst", 48) U64("src", 56)
		U64("stream", 64) ",{\"name\":\"kind\",\"type\":\"unsigned\",\"size\":4,\"offset\":72}]},"
				  "{\"id\":770,\"name\":\"launch\",\"size\":48,\"fields\":[" HEAD U64("correlation",
												      40) "]}]}";

static int by_drain(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;
	u64 p = x->call.span.event.time / BURST, q = y->call.span.event.time / BURST;

	if (p != q)
		return p < q ? -1 : 1;
	if (x->call.span.event.cpu != y->call.span.event.cpu)
		return (int)x->call.span.event.cpu - (int)y->call.span.event.cpu;
	return x->call.span.event.time < y->call.span.event.time ? -1 : 1;
}

static struct copy *make(u32 n)
{
	struct copy *all = calloc(n, sizeof(*all));
	u64 now[THREADS], pool[64], correlation = 1000;
	u32 i;

	if (!all)
		return NULL;
	for (i = 0; i < THREADS; i++)
		now[i] = 5000000000000ULL + rnd() % 1000000;
	for (i = 0; i < 64; i++)
		pool[i] = 0x7f3200000000ULL + (rnd() % (8ULL << 30) & ~511ULL);
	for (i = 0; i < n; i++) {
		u32 t = rnd() % THREADS;
		struct copy *c = &all[i];

		c->call.span.start = now[t] + (u64)lognormal(8000, 1.2);
		c->call.span.event.time = now[t] = c->call.span.start + (u64)lognormal(3000, 0.8);
		c->call.span.event.pid = 41200 + 2000 * (t & 1);
		c->call.span.event.tid = 41200 + 2000 * (t & 1) + 37 * t;
		c->call.span.event.cpu = rnd() % 50 ? t : rnd() % THREADS;
		c->call.span.event.id = rnd() % 3 ? 770 : 769;
		c->call.span.event.probe = c->call.span.event.id == 769 ? 11 + rnd() % 3 : 20;
		c->bytes = c->call.span.event.id == 769 ? (u64)1 << (10 + rnd() % 12) : ++correlation;
		c->dst = pool[rnd() % 64];
		c->src = pool[rnd() % 64];
		c->stream = 0x55d000012340ULL + 0x1200 * (rnd() % 4);
		c->kind = 1 + rnd() % 3;
	}
	qsort(all, n, sizeof(*all), by_drain);
	return all;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The entropy of n values, in bits in total. */
static double entropy(u64 *v, u32 n)
{
	double bits = 0;
	u32 i, from = 0;

	qsort(v, n, sizeof(*v), by_value);
	for (i = 1; i <= n; i++) {
		if (i < n && v[i] == v[from])
			continue;
		bits -= (i - from) * log2((double)(i - from) / n);
		from = i;
	}
	return bits;
}

enum { TIME, DURATION, PID, TID, PROBE, CPU, BYTES, DST, SRC, STREAM, KIND, COLUMNS };

static const char *const names[] = { "time",  "duration", "pid", "tid",	   "probe", "cpu",
				     "bytes", "dst",	  "src", "stream", "kind" };

/* The entropy, in bits, of one kind's columns after the format's transforms. */
static double kind_entropy(const struct copy *all, u32 n, u16 id)
{
	u64 *v = calloc(n, sizeof(*v)), previous;
	double sum = 0;
	u32 c, i, m;

	for (c = 0; v && c < COLUMNS; c++) {
		double bits;

		if (id == 770 && c > BYTES)
			break;
		for (i = m = 0, previous = 0; i < n; i++) {
			const struct copy *x = &all[i];
			const struct event *e = &x->call.span.event;
			u64 of[COLUMNS] = { e->time - previous,
					    e->time - x->call.span.start,
					    e->pid,
					    e->tid,
					    e->probe,
					    e->cpu,
					    x->bytes,
					    x->dst,
					    x->src,
					    x->stream,
					    x->kind };

			if (e->id != id)
				continue;
			v[m++] = of[c];
			previous = e->time;
		}
		bits = entropy(v, m);
		printf("  %-10s %6.3f bytes\n", c == BYTES && id == 770 ? "corr." : names[c], bits / 8 / m);
		sum += bits;
	}
	free(v);
	return sum;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Writes all events and returns the CPU time in seconds, or a negative number. */
static double write_all(int fd, const struct schema *schema, const struct copy *all, u32 n, u64 *bytes)
{
	struct trace_head head = { .hostname = "bench" };
	struct trace_writer *w;
	double before = seconds();
	u32 i;
	int err = trace_writer__create(&w, fd, schema, &head);

	for (i = 0; i < n && !err; i++)
		err = trace_writer__append(
			w, &all[i], all[i].call.span.event.id == 769 ? sizeof(struct copy) : sizeof(struct launch));
	if (!err)
		err = trace_writer__finish(w);
	if (!err)
		*bytes = trace_writer__bytes(w);
	trace_writer__free(w);
	return err ? -1 : seconds() - before;
}

int main(int argc, char **argv)
{
	u32 n = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000, i;
	const char *path = argc > 2 ? argv[2] : "/dev/null";
	struct cJSON *json = cJSON_Parse(schema_text);
	struct copy *all = make(n);
	struct schema *schema;
	char err[256] = "";
	double took, best = 1e9, bits;
	u64 bytes = 0;
	int fd;

	if (!all || schema__from_json(&schema, json, err, sizeof(err))) {
		fprintf(stderr, "cannot begin: %s\n", err);
		return 1;
	}
	for (i = 0; i < ROUNDS; i++) {
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		took = write_all(fd, schema, all, n, &bytes);
		if (took < 0) {
			fprintf(stderr, "cannot write %s\n", path);
			return 1;
		}
		close(fd);
		best = took < best ? took : best;
	}
	bits = kind_entropy(all, n, 769) + kind_entropy(all, n, 770);
	printf("%u events: %.3f bytes an event, entropy %.3f, ratio %.3f, %.1f ns an event (best of %d)\n", n,
	       (double)bytes / n, bits / 8 / n, bytes / (bits / 8), best * 1e9 / n, ROUNDS);
	schema__free(schema);
	cJSON_Delete(json);
	free(all);
	return 0;
}
