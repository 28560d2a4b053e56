// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Many small copies between the host and a GPU: each call costs more than its transfer. */
#include <errno.h>
#include <stdio.h>

#include "findings/finding.h"
#include "output/text.h"

#define COPIES_MIN 1000
#define SMALL	   65536 /* bytes; a copy of fewer takes longer to request than to transfer */
#define TIME_PART  20 /* the copies take at least this part of the time of their thread */

struct copies_key {
	u32 pid, tid;
};

struct copies {
	u64 n, ns, bytes;
	u64 stack_ns; /* of the copy that took longest */
	u32 stack;
};

struct reading {
	const struct query *q;
	struct map threads; /* struct copies_key -> struct copies */
};

static int on_copies(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), stack);
	struct reading *r = arg;

	ROWS_EACH(v, rows) {
		struct copies_key key = { (u32)view__get(&v, "pid"), (u32)view__get(&v, "tid") };
		u64 bytes = (u64)view__get(&v, "bytes");
		u64 ns = query__inside(r->q, (u64)view__get(&v, "start"), (u64)view__get(&v, "time"));
		struct copies *c;

		if (bytes > SMALL || view__get(&v, "flags") & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION))
			continue;
		c = map__get(&r->threads, &key);
		if (!c)
			return -ENOMEM;
		c->n++;
		c->ns += ns;
		c->bytes += bytes;
		if (stack && ns > c->stack_ns) {
			c->stack_ns = ns;
			c->stack = (u32)view__s64(&v, stack);
		}
	}
	return 0;
}

static int add(const struct finding_input *in, const struct copies_key *key, const struct copies *c,
	       struct findings *out)
{
	u64 wall = query__duration(in->q);
	struct finding *f;

	if (c->n < COPIES_MIN || c->ns < wall / TIME_PART)
		return 0;
	f = findings__add(out, FINDING_COPIES);
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
	snprintf(f->report, sizeof(f->report), "cuda-mem-size");
	snprintf(f->detail, sizeof(f->detail), "%s each on average", TEXT_BYTES(c->bytes / c->n));
	snprintf(
		f->advice, sizeof(f->advice), "%s",
		"Each copy waits for the work before it: fewer and larger copies, or asynchronous copies from pinned memory, take less time.");
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
