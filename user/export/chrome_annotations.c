// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ranges on GPUs, as torch.profiler's traces (Kineto) have them: for each range of a program and each stream a row
 * "gpu_user_annotation", from the start of the first to the end of the last work that was launched within the range.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome.h"
#include "export/value.h"
#include "model/view.h"
#include "output/json_writer.h"
#include "util/compare.h"
#include "util/search.h"

/* 128 MiB; the work of further ranges has no row. */
#define ANNOTATIONS_MAX (2u << 20)

struct key {
	u32 number; /* of the range, as kineto_ids.h counts */
	u32 gpu, tid; /* where the work is drawn */
};

struct annotation {
	struct key key;
	u64 first, last;
};

int chrome_annotations__add(struct chrome_annotations *a, const struct kineto_ids *ids, const struct gpu_launch *l,
			    const struct drawn_place *at, u64 end)
{
	u32 number, outer = 0;

	while ((number = kineto_ids__range(ids, l->tid, l->start, &outer)) != 0) {
		struct key key = { number, at->pid, at->tid };
		struct annotation *n = map__find(&a->list, &key);

		if (!n && a->list.n == ANNOTATIONS_MAX)
			return 0;
		n = n ?: map__get(&a->list, &key);
		if (!n)
			return -ENOMEM;
		n->key = key;
		n->first = n->first && n->first < at->start ? n->first : at->start;
		n->last = n->last > end ? n->last : end;
	}
	return 0;
}

COMPARE_BY(by_key, struct annotation, ASCENDING(key.number), ASCENDING(key.gpu), ASCENDING(key.tid))

struct writing {
	struct export *e;
	struct annotation *list; /* by key */
	u32 n;
};

static void put(struct export *e, const char *name, const struct annotation *a)
{
	chrome__next_event(e);
	fputs("{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":", e->out);
	json__print_text(e->out, name, strlen(name));
	fprintf(e->out, ",\"pid\":%u,\"tid\":%u,\"ts\":", a->key.gpu, a->key.tid);
	chrome__put_time(e, a->first);
	chrome__put_dur(e, a->first, a->last);
	fprintf(e->out, ",\"args\":{\"External id\":%u}}", a->key.number);
}

static int on_ranges(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	const struct writing *w = arg;
	const struct chrome *c = w->e->data;
	char buf[EVENT_TITLE];

	ROWS_EACH(v, rows) {
		u64 end = (u64)view__s64(&v, f.time), start = (u64)view__s64(&v, f.start);
		u32 number = kineto_ids__number(&c->ids, (u32)view__s64(&v, f.tid), start < end ? start : end, end);
		u32 i = (u32)SEARCH(w->n, k, w->list[k].key.number < number);
		const char *name = event__title(w->e->names, &v, (u16)view__s64(&v, f.probe), buf, sizeof(buf));

		for (; number && i < w->n && w->list[i].key.number == number; i++)
			put(w->e, name, &w->list[i]);
	}
	return ferror(w->e->out) ? -EIO : 0;
}

int chrome_annotations__put(struct export *e, struct chrome_annotations *a)
{
	struct writing w = { e, calloc(a->list.n + 1, sizeof(*w.list)), 0 };
	const struct schema_event *kinds[] = { schema__event(trace__schema(e->trace), "torch_range"), NULL };
	struct trace_filter filter = { .kinds = kinds, .pids = e->pids, .in_windows = kineto_ids__is_on_time_line };
	int err = w.list ? 0 : -ENOMEM;

	MAP_EACH(const struct annotation *n, &a->list)
		if (w.list)
			w.list[w.n++] = *n;
	if (w.n)
		qsort(w.list, w.n, sizeof(*w.list), by_key);
	if (!err && w.n)
		err = trace__read(e->trace, &filter, on_ranges, &w);
	free(w.list);
	return err;
}

void chrome_annotations__init(struct chrome_annotations *a)
{
	map__init(&a->list, sizeof(struct key), sizeof(struct annotation));
}

void chrome_annotations__free(struct chrome_annotations *a)
{
	map__free(&a->list);
}
