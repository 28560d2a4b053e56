// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a trace's chunks: the selected rows for readers, or all to verify the file. */
#include <errno.h>

#include "schema/schema_build.h"
#include "trace/format.h"
#include "trace/reader_priv.h"

static bool is_selected(const struct trace_filter *f, const struct schema_event *e)
{
	u32 i;

	if (!e || !f->kinds)
		return e;
	for (i = 0; f->kinds[i]; i++)
		if (f->kinds[i] == e)
			return true;
	return false;
}

static bool is_selected_id(const struct trace *t, const struct trace_filter *f, u16 id)
{
	return is_selected(f, schema__event_by_id(t->schema, id));
}

static bool overlaps(const struct trace_filter *f, u64 first, u64 last)
{
	return last >= f->from && (!f->to || first < f->to);
}

/* Returns whether the chunk may have selected rows, by the table. */
static bool may_have_rows(const struct trace *t, const struct trace_filter *f, const struct chunk *c)
{
	u32 i;

	if (!overlaps(f, c->first, c->last))
		return false;
	for (i = 0; i < c->n; i++)
		if (is_selected_id(t, f, t->table.kinds[c->kinds + i].id))
			return true;
	return false;
}

struct reading {
	const struct trace_filter *filter;
	int (*cb)(const struct rows *rows, void *arg);
	void *arg;
	int stopped; /* what cb returned */
};

/* -EBADMSG: something in the chunk was damaged; the rest of it is still read. */
static int read_chunk(struct trace *t, struct rows *r, const struct chunk *c, struct reading *g)
{
	struct chunk_header h;
	u64 offset;
	u32 i;
	int err = rows__chunk_header(r, t, c, &h), bad = 0;

	offset = c->offset + (err ? 0 : h.header_size);
	for (i = 0; !err && i < h.chunk.n && !g->stopped; i++) {
		const u8 *entry = h.entries + i * KIND_ENTRY;
		const struct schema_event *e = schema__event_by_id(t->schema, get16(entry + KIND_ID));

		if (is_selected(g->filter, e) &&
		    overlaps(g->filter, get64(entry + KIND_FIRST), get64(entry + KIND_LAST))) {
			err = rows__load(r, t, e, entry, offset);
			if (!err && windows__apply(t, g->filter, e))
				err = rows__cut(r, t, entry);
			if (!err && t->n_tasks)
				err = rows__renumber(r, t);
			if (!err)
				err = rows__select(r, t, g->filter, entry);
			if (!err && r->count)
				g->stopped = g->cb(r, g->arg);
			if (err == -EBADMSG) {
				bad = err;
				err = 0;
			}
		}
		offset += get32(entry + KIND_COMPRESSED);
	}
	return err ? err : bad;
}

int trace__read(struct trace *t, const struct trace_filter *filter, int (*cb)(const struct rows *rows, void *arg),
		void *arg)
{
	static const struct trace_filter everything;
	struct reading g = { filter ? filter : &everything, cb, arg, 0 };
	struct rows r = {};
	size_t i;
	int err = 0;

	for (i = 0; i < t->table.n && !err && !g.stopped; i++) {
		if (!may_have_rows(t, g.filter, &t->table.chunks[i]))
			continue;
		err = read_chunk(t, &r, &t->table.chunks[i], &g);
		if (err == -EBADMSG) {
			t->damaged++;
			err = 0;
		}
	}
	rows__release(&r);
	return err ? err : g.stopped;
}

int trace__read_kind(struct trace *t, const char *kind, int (*cb)(const struct rows *rows, void *arg), void *arg)
{
	const struct schema_event *kinds[] = { schema__event(trace__schema(t), kind), NULL };

	return kinds[0] ? trace__read(t, &(struct trace_filter){ .kinds = kinds }, cb, arg) : 0;
}

struct checking {
	u64 faults;
	char *err;
	size_t err_len;
};

#define FAULT(c, ...)                                                                \
	do {                                                                         \
		if (!(c)->faults++)                                                  \
			schema__fail((c)->err, (c)->err_len, -EBADMSG, __VA_ARGS__); \
	} while (0)

/* Returns whether the rows are as the entry describes them. */
static bool entry_fits(const struct rows *r, const u8 *entry)
{
	const struct schema_event *e = r->event;
	const struct schema_field *start = e->is_span ? schema_event__field(e, "start") : NULL;
	const struct schema_field *tail = &e->fields[e->n - 1];
	u64 first = ~0ULL, last = 0, raw = (u64)e->size * r->n_unfiltered;
	u32 i, len;

	for (i = 0; i < r->n_unfiltered; i++) {
		u64 time = rows__u64(r, &e->fields[0], i), begin = start ? rows__u64(r, start, i) : time;

		first = begin < first ? begin : first;
		first = time < first ? time : first;
		last = time > last ? time : last;
		if (tail->type == FIELD_TAIL) {
			rows__text(r, tail, i, &len);
			raw += len;
		}
	}
	return first == get64(entry + KIND_FIRST) && last == get64(entry + KIND_LAST) &&
	       (u32)raw == get32(entry + KIND_RAW);
}

static int check_chunk(struct checking *c, const struct trace *t, struct rows *r, const struct chunk *chunk)
{
	struct chunk_header h;
	u64 offset;
	u32 i;
	int err = rows__chunk_header(r, t, chunk, &h);

	if (err == -EBADMSG) {
		FAULT(c, "the header of chunk %llu at byte %llu is damaged", chunk->number, chunk->offset);
		return 0;
	}
	if (err)
		return err;
	offset = chunk->offset + h.header_size;
	for (i = 0; i < h.chunk.n; i++) {
		const u8 *entry = h.entries + i * KIND_ENTRY;
		const struct schema_event *e = schema__event_by_id(t->schema, get16(entry + KIND_ID));

		err = e ? rows__load(r, t, e, entry, offset) : -EBADMSG;
		if (err && err != -EBADMSG)
			return err;
		if (err || !entry_fits(r, entry))
			FAULT(c, "the records of event 0x%04x (%s) in chunk %llu at byte %llu are damaged",
			      get16(entry + KIND_ID), e ? e->name : "unknown", chunk->number, offset);
		offset += get32(entry + KIND_COMPRESSED);
	}
	return 0;
}

static bool same_chunk(const struct chunk_table *x, const struct chunk *a, const struct chunk_table *y,
		       const struct chunk *b)
{
	u32 i;

	if (a->offset != b->offset || a->number != b->number || a->first != b->first || a->last != b->last ||
	    a->size != b->size || a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++) {
		const struct chunk_kind *k = &x->kinds[a->kinds + i], *l = &y->kinds[b->kinds + i];

		if (k->id != l->id || k->rows != l->rows || k->compressed != l->compressed || k->raw != l->raw)
			return false;
	}
	return true;
}

/* Checks that the index has exactly the chunks that a scan of the file found. */
static void check_index(struct checking *c, const struct trace *t, const struct chunk_table *scanned)
{
	const struct chunk_table *index = &t->table;
	size_t i;

	if (!t->summary.has_index) {
		if (t->table.faults > scanned->faults)
			FAULT(c, "the index is damaged");
		return;
	}
	if (index->n != scanned->n)
		FAULT(c, "the index has %zu chunks, the file %zu", index->n, scanned->n);
	for (i = 0; i < index->n && i < scanned->n; i++)
		if (!same_chunk(index, &index->chunks[i], scanned, &scanned->chunks[i]))
			FAULT(c, "the index is wrong about chunk %zu", i);
}

int trace__verify(struct trace *t, u64 *faults, char *err, size_t err_len)
{
	struct checking c = { 0, err, err_len };
	struct chunk_table scanned = {};
	struct rows r = {};
	size_t i;
	int res = chunk_table__scan(&scanned, t);

	for (i = 0; i < scanned.n && !res; i++) {
		if (scanned.chunks[i].number != (i ? scanned.chunks[i - 1].number + 1 : 0))
			FAULT(&c, "chunk %llu is out of sequence", scanned.chunks[i].number);
		res = check_chunk(&c, t, &r, &scanned.chunks[i]);
	}
	if (scanned.faults)
		FAULT(&c, "%llu part%s of the file hold%s no valid frame", scanned.faults,
		      scanned.faults == 1 ? "" : "s", scanned.faults == 1 ? "s" : "");
	if (scanned.torn && t->summary.has_index)
		FAULT(&c, "%llu bytes at the end are no whole frame", scanned.torn);
	if (!res)
		check_index(&c, t, &scanned);
	rows__release(&r);
	chunk_table__free(&scanned);
	*faults = c.faults;
	if (res)
		return schema__fail(err, err_len, res, "cannot read: %s", strerror(-res));
	return c.faults ? -EBADMSG : 0;
}
