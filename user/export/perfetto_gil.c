// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Draws a track "GIL blame" beneath each thread that waited for a GIL: the code that held it meanwhile. */
#include <errno.h>
#include <string.h>

#include "export/perfetto.h"
#include "model/gil.h"

struct waiter_key {
	u32 pid, tid;
};

struct pass {
	struct perfetto *p;
	struct map waiting; /* struct waiter_key -> struct gil_segment: the last one, which may continue */
};

static const char *holder_label(const struct perfetto *p, const struct gil_segment *segment, char *buf, size_t size)
{
	if (segment->holding == GIL_UNKNOWN)
		return "holder unknown";
	if (segment->holding == GIL_FREE)
		return "free: woken, not running yet";
	if (segment->holder_stack)
		return stacks__label(p->e->stacks, segment->holder_stack, buf, size);
	return names__label(p->e->names, buf, size, segment->gil.pid, segment->holder);
}

static void put_arguments(struct perfetto *p, const struct gil_segment *segment, const char *holder)
{
	char buf[STACK_LABEL];
	u32 user = stacks__top_user(p->e->stacks, segment->holder_stack);
	u64 interpreter;

	track_event__argument(p, "holder", holder);
	if (user)
		track_event__argument(p, "holder_code", stacks__label(p->e->stacks, user, buf, sizeof(buf)));
	if (segment->holding == GIL_HELD && segment->holder)
		track_event__argument(p, "holder_thread",
				      names__label(p->e->names, buf, sizeof(buf), segment->gil.pid, segment->holder));
	if (names__interpreter(p->e->names, segment->gil.pid, segment->gil.gil, &interpreter)) {
		snprintf(buf, sizeof(buf), "%llu", interpreter);
		track_event__argument(p, "interpreter", buf);
	}
	track_event__argument(p, "waiter", stacks__label(p->e->stacks, segment->waiter_stack, buf, sizeof(buf)));
	track_event__argument(p, "waiter_thread",
			      names__label(p->e->names, buf, sizeof(buf), segment->gil.pid, segment->waiter));
}

static int put_segment(struct perfetto *p, const struct gil_segment *segment)
{
	struct interval span = { segment->from, segment->to };
	char buf[STACK_LABEL];
	const char *holder = holder_label(p, segment, buf, sizeof(buf));
	const struct track *t;
	u64 callstack;
	size_t at;

	if (span.end <= span.start)
		return 0;
	perfetto__maybe_next_frame(p);
	t = perfetto__reserve_thread(p, segment->gil.pid, segment->waiter, TRACK_GIL_BLAME, "GIL blame", &span);
	if (!t)
		return -ENOMEM;
	at = track_event__begin(p, span.start, t, TRACK_EVENT_BEGIN);
	track_event__name(p, holder);
	put_arguments(p, segment, holder);
	callstack = perfetto__callstack(p, segment->holder_stack);
	track_event__callstack(p, callstack);
	track_event__end(p, at);
	at = track_event__begin(p, span.end, t, TRACK_EVENT_END);
	track_event__end(p, at);
	return p->packet.failed ? -ENOMEM : p->err;
}

/* Waits are cut at each switch interval; is b the continuation of a, and drawn in the same slice? */
static bool goes_on(const struct gil_segment *a, const struct gil_segment *b)
{
	return a->to == b->from && a->gil.gil == b->gil.gil && a->holding == b->holding && a->attempt == b->attempt &&
	       a->holder == b->holder && a->holder_stack == b->holder_stack && a->waiter_stack == b->waiter_stack;
}

static int on_segment(const struct gil_segment *segment, void *arg)
{
	struct pass *pass = arg;
	struct waiter_key key = { segment->gil.pid, segment->waiter };
	struct gil_segment *last = map__get(&pass->waiting, &key);
	int err;

	if (!last)
		return -ENOMEM;
	if (last->to && goes_on(last, segment)) {
		last->to = segment->to;
		return 0;
	}
	err = put_segment(pass->p, last);
	*last = *segment;
	return err;
}

int perfetto__blame(struct perfetto *p)
{
	const struct gil_listener listener = { .on_segment = on_segment };
	struct pass pass = { .p = p };
	int err;

	/* Without stacks the slices of waits have all information. */
	if (!stacks__count(p->e->stacks))
		return 0;
	map__init(&pass.waiting, sizeof(struct waiter_key), sizeof(struct gil_segment));
	err = gil_model__read(p->e->trace, 0, 0, NULL, &listener, &pass, NULL);
	for (u32 i = 0; !err && i < pass.waiting.n; i++)
		err = put_segment(p, map__value(&pass.waiting, i));
	map__free(&pass.waiting);
	return err;
}
