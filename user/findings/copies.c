// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies between the host and a GPU: many small ones, each of which costs more than its transfer, and large ones for
 * whose whole transfer the thread waits, as CUDA copies from and to pageable memory.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/gpu_calls.h"
#include "findings/group.h"
#include "output/text.h"
#include "probes/cuda/cuda.h"

#define COPIES_MIN 1000
#define SMALL	   65536 /* bytes; a copy of fewer takes longer to request than to transfer */
#define TIME_PART  20 /* the copies take at least this part of the time of their thread */

/* A call that took as long as its bytes take at this rate, which no bus reaches, may have waited for them. */
#define BYTES_PER_NS 64

struct copies_key {
	u32 pid, tid;
	u32 are_large;
};

struct copies {
	u64 n, ns, bytes;
	u64 longest; /* ns; the copy that took longest has this stack and probe */
	u32 stack;
	u16 probe;
};

struct reading {
	const struct query *q;
	struct map threads; /* struct copies_key -> struct copies */
};

/* Is the copy one of those that are summed? */
static bool is_counted(const struct view *v, u64 bytes, u64 ns)
{
	s64 kind = view__get(v, "kind");

	return bytes <= SMALL || ((kind == CUDA_COPY_HTOD || kind == CUDA_COPY_DTOH) && ns >= bytes / BYTES_PER_NS);
}

static int on_copies(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), stack);
	struct common_fields f = common_fields__of(rows__event(rows));
	struct reading *r = arg;

	ROWS_EACH(v, rows) {
		u64 bytes = (u64)view__get(&v, "bytes");
		struct copies_key key = { (u32)view__get(&v, "pid"), (u32)view__get(&v, "tid"), bytes > SMALL };
		u64 ns = query__inside(r->q, (u64)view__get(&v, "start"), (u64)view__get(&v, "time"));
		struct copies *c;

		if (!is_counted(&v, bytes, ns) ||
		    view__get(&v, "flags") & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION))
			continue;
		c = map__get(&r->threads, &key);
		if (!c)
			return -ENOMEM;
		c->n++;
		c->ns += ns;
		c->bytes += bytes;
		if (ns <= c->longest)
			continue;
		c->longest = ns;
		c->stack = stack ? (u32)view__s64(&v, stack) : 0;
		c->probe = (u16)view__s64(&v, f.probe);
	}
	return 0;
}

static void complete_small(const struct copies *c, struct finding *f)
{
	snprintf(f->report, sizeof(f->report), "cuda-mem-size");
	snprintf(f->detail, sizeof(f->detail), "%s each on average", TEXT_BYTES(c->bytes / c->n));
	snprintf(
		f->advice, sizeof(f->advice), "%s",
		"Each copy waits for the work before it: fewer and larger copies, or asynchronous copies from pinned memory, take less time.");
}

static void complete_large(const struct copies *c, struct finding *f)
{
	bool is_async = strstr(f->call, "Async");

	f->is_on_cpu = true;
	snprintf(f->report, sizeof(f->report), "cuda-api");
	snprintf(f->detail, sizeof(f->detail), "%s, %.1f GB/s%s", TEXT_BYTES(c->bytes),
		 (double)c->bytes / (double)c->ns,
		 is_async ? ", from or to pageable memory, so that the call returns only when the data is copied" : "");
	snprintf(
		f->advice, sizeof(f->advice), "%s",
		"From pinned memory (`pin_memory`) with `non_blocking=True` the program need not wait for the copies.");
}

static int add(const struct finding_input *in, const struct copies_key *key, const struct copies *c,
	       struct findings *out)
{
	u64 wall = query__duration(in->q);
	const char *function = names__probe(in->q->names, c->probe);
	struct finding *f;

	if ((!key->are_large && c->n < COPIES_MIN) || c->ns < wall / TIME_PART)
		return 0;
	f = findings__add(out, key->are_large ? FINDING_GPU_COPIES : FINDING_COPIES);
	if (!f)
		return -ENOMEM;
	f->pid = key->pid;
	f->tid = key->tid;
	f->processes = f->threads = 1;
	f->lost_ns = c->ns;
	f->wall_ns = wall;
	f->times = c->n;
	f->weight = (double)c->ns;
	finding_code__fill(&f->code, in->stacks, c->stack);
	if (!c->stack && function)
		gpu_calls__fill_code(in, key->pid, function, &f->code);
	if (!key->are_large) {
		complete_small(c, f);
		return 0;
	}
	f->call_ns = c->ns;
	f->call_times = c->n;
	snprintf(f->call, sizeof(f->call), "%s", function ? function : "calls that copy");
	complete_large(c, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct reading r = { .q = in->q };
	int err;

	map__init(&r.threads, sizeof(struct copies_key), sizeof(struct copies));
	err = query__read_kind(in->q, "cuda_copy", on_copies, &r);
	/* the runtime's copies call the driver's */
	if (!err && !r.threads.n)
		err = query__read_kind(in->q, "cudadrv_copy", on_copies, &r);
	for (u32 i = 0; !err && i < r.threads.n; i++)
		err = add(in, map__key(&r.threads, i), map__value(&r.threads, i), out);
	map__free(&r.threads);
	return err;
}

FINDINGS(copies) = { .name = "copies", .find = find };
