// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events in order of time, compared with a sort of all of them, and in bounded memory. */
#include "model/order.h"
#include "test.h"
#include "trace_support.h"

struct item {
	u64 time, start, number;
	u16 id;
};

struct list {
	struct item *items;
	u32 n, capacity;
	struct order *order;
	u64 max_pending;
};

static void list__add(struct list *l, const struct view *v)
{
	const struct schema_field *start = schema_event__field(v->event, "start");
	u64 time = (u64)view__get(v, "time");

	if (l->n < l->capacity)
		l->items[l->n] = (struct item){ time, start ? (u64)view__s64(v, start) : time, l->n, v->event->id };
	l->n++;
}

static int in_file(const struct rows *r, void *arg)
{
	for (struct view v = { .event = rows__event(r), .rows = r }; v.i < rows__count(r); v.i++)
		list__add(arg, &v);
	return 0;
}

static int in_order(const struct view *v, void *arg)
{
	list__add(arg, v);
	return 0;
}

static int add_to_order(const struct rows *r, void *arg)
{
	return order__add(arg, r);
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->start != y->start)
		return x->start > y->start ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

TEST(events_come_in_sorted_order)
{
	static const u32 chunks[] = { 1, 7, 64, 1000, 30000 };
	u32 n = 30000, wrong = 0;

	for (u32 c = 0; c < sizeof(chunks) / sizeof(*chunks); c++) {
		struct list file = { calloc(2 * n, sizeof(struct item)), 0, 2 * n, NULL, 0 };
		struct list got = { calloc(2 * n, sizeof(struct item)), 0, 2 * n, NULL, 0 };
		struct order *o = order__new(in_order, &got);
		char err[256] = "";
		struct trace *t;
		size_t len = 0;
		u8 *bytes = support_write(n, chunks[c], true, &len);

		REQUIRE(bytes && file.items && got.items && o && !support_open_bytes(&t, bytes, len, err, sizeof(err)));
		CHECK(!trace__read(t, NULL, in_file, &file));
		CHECK(!trace__read(t, NULL, add_to_order, o) && !order__finish(o));
		qsort(file.items, file.n, sizeof(*file.items), by_time);
		CHECK(file.n == got.n && file.n >= n);
		for (u32 i = 0; i < file.n; i++)
			wrong += file.items[i].time != got.items[i].time || file.items[i].start != got.items[i].start ||
				 file.items[i].id != got.items[i].id;
		CHECK(!wrong);
		order__free(o);
		trace__close(t);
		free(bytes);
		free(file.items);
		free(got.items);
	}
}

static int add_and_count(const struct rows *r, void *arg)
{
	struct list *l = arg;
	int err = order__add(l->order, r);

	l->capacity += rows__count(r);
	l->max_pending = l->capacity - l->n > l->max_pending ? l->capacity - l->n : l->max_pending;
	return err;
}

static int count(const struct view *v, void *arg)
{
	((struct list *)arg)->n++;
	return 0;
}

/* More events in two seconds than fit in memory: some are emitted early, and none is lost. */
TEST(memory_is_bounded)
{
	struct list l = { 0 };
	char err[256] = "";
	struct trace *t;
	size_t len = 0;
	u32 n = 1000000;
	u8 *bytes = support_write(n, 50000, true, &len);

	l.order = order__new(count, &l);
	REQUIRE(bytes && l.order && !support_open_bytes(&t, bytes, len, err, sizeof(err)));
	CHECK(!trace__read(t, NULL, add_and_count, &l));
	/* each takes 40 bytes plus its record of at least 24 bytes */
	CHECK(l.max_pending < (32u << 20) / 64 + 50000);
	CHECK(!order__finish(l.order) && l.n == l.capacity && l.n >= n);
	order__free(l.order);
	trace__close(t);
	free(bytes);
}

TEST_MAIN()
