// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes profile.proto of https://github.com/google/pprof in gzip, which `go tool pprof` and many others read. A kind
 * of event has a type of value for the count, and one for the duration if its width is a time. A stack has 0 for the
 * types of other kinds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "export/profiles.h"
#include "export/protobuf.h"

/* Profile */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT = 14,
};

enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2 };
enum { MAPPING_ID = 1, MAPPING_FILENAME = 5, MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILENAMES = 8 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILENAME = 4, FUNCTION_LINE = 5 };

#define FLUSH (256u << 10) /* bytes that are compressed together */

struct place {
	u32 function, line;
};

struct pprof {
	struct profiles profiles;
	struct pb out;
	z_stream gzip;
	u8 packed[16384]; /* output of gzip */
	bool gzips;
	struct map strings; /* u64 content's hash -> u32 */
	struct map locations; /* struct place -> u32 number */
	struct map mappings; /* u32 string -> u32 number */
	u8 *functions; /* [profiles.functions.n] 1: written */
	u32 value, values; /* index of the current profile's first value; number of all values */
	u32 process; /* the string "process" */
	int err;
};

/* Compresses and writes the buffer; last: also what gzip has buffered. */
static void drain(struct export *e, struct pprof *p, bool last)
{
	int done = Z_OK;

	p->gzip.next_in = p->out.data;
	p->gzip.avail_in = (u32)p->out.len;
	while (!p->err && (p->gzip.avail_in || (last && done != Z_STREAM_END))) {
		size_t len;

		p->gzip.next_out = p->packed;
		p->gzip.avail_out = sizeof(p->packed);
		done = deflate(&p->gzip, last ? Z_FINISH : Z_NO_FLUSH);
		if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR)
			p->err = -EIO;
		len = sizeof(p->packed) - p->gzip.avail_out;
		if (fwrite(p->packed, 1, len, e->out) != len)
			p->err = -EIO;
	}
	p->out.len = 0;
}

static u32 *number_of(struct pprof *p, struct map *m, const void *key)
{
	static u32 nowhere;
	u32 *known = map__get(m, key);

	if (!known)
		p->err = -ENOMEM;
	return known ? known : &nowhere;
}

/* Returns the index of a text in the string table; 0 is the empty text. */
static u64 string(struct pprof *p, const char *text)
{
	u64 hash = XXH64(text, strlen(text), 0);
	u32 *known;

	if (!*text)
		return 0;
	known = number_of(p, &p->strings, &hash);
	if (!*known) {
		pb__text(&p->out, PROFILE_STRING, text, strlen(text));
		*known = p->strings.n;
	}
	return *known;
}

static void put_type(struct pprof *p, const char *type, const char *unit)
{
	u64 t = string(p, type), u = string(p, unit);
	size_t at = pb__begin(&p->out, PROFILE_SAMPLE_TYPE);

	pb__int(&p->out, TYPE_TYPE, t);
	pb__int(&p->out, TYPE_UNIT, u);
	pb__end(&p->out, at);
}

/* Returns a name that is easy to type for pprof's users: "on_cpu". */
static const char *value_name(const struct stack_profile *profile, char *buf, size_t size)
{
	snprintf(buf, size, "%s", profile->kind.name);
	for (char *c = buf; *c; c++)
		if (*c == '-')
			*c = '_';
	return buf;
}

static void put_types(struct pprof *p)
{
	char name[128], events[160];

	for (u32 i = 0; i < p->profiles.n; i++) {
		const struct stack_profile *profile = &p->profiles.list[i];

		if (!profile->events)
			continue;
		value_name(profile, name, sizeof(name));
		snprintf(events, sizeof(events), "%s_events", name);
		put_type(p, events, "count");
		if (!p->values)
			pb__int(&p->out, PROFILE_DEFAULT, string(p, profile->in_ns ? name : events));
		p->values++;
		if (profile->in_ns) {
			put_type(p, name, "nanoseconds");
			p->values++;
		}
	}
}

/* Returns the mapping of native code, by its file; 0 for Python, which has none. */
static u32 mapping(struct pprof *p, const struct call_function *f)
{
	u32 file = (u32)string(p, f->kind == FRAME_KERNEL ? "[kernel]" : f->file), *known;
	size_t at;

	if ((f->kind != FRAME_NATIVE && f->kind != FRAME_KERNEL) || !file)
		return 0;
	known = number_of(p, &p->mappings, &file);
	if (!*known) {
		*known = p->mappings.n;
		at = pb__begin(&p->out, PROFILE_MAPPING);
		pb__int(&p->out, MAPPING_ID, *known);
		pb__int(&p->out, MAPPING_FILENAME, file);
		pb__int(&p->out, MAPPING_HAS_FUNCTIONS, 1);
		pb__int(&p->out, MAPPING_HAS_FILENAMES, 1);
		pb__end(&p->out, at);
	}
	return *known;
}

static void put_function(struct pprof *p, u32 number)
{
	const struct call_function *f = &p->profiles.functions.list[number];
	u64 name = string(p, f->name), file = string(p, f->source && *f->source ? f->source : f->file);
	size_t at;

	if (p->functions[number])
		return;
	p->functions[number] = 1;
	at = pb__begin(&p->out, PROFILE_FUNCTION);
	pb__int(&p->out, FUNCTION_ID, number + 1);
	pb__int(&p->out, FUNCTION_NAME, name);
	pb__int(&p->out, FUNCTION_SYSTEM_NAME, name);
	pb__int(&p->out, FUNCTION_FILENAME, file);
	pb__int(&p->out, FUNCTION_LINE, f->first_line);
	pb__end(&p->out, at);
}

static u32 location(struct pprof *p, const struct call_node *node)
{
	struct place key = { node->function, node->line };
	u32 *known = number_of(p, &p->locations, &key), object;
	size_t at, line;

	if (*known || p->err)
		return *known;
	*known = p->locations.n;
	put_function(p, node->function);
	object = mapping(p, &p->profiles.functions.list[node->function]);
	at = pb__begin(&p->out, PROFILE_LOCATION);
	pb__int(&p->out, LOCATION_ID, *known);
	if (object)
		pb__int(&p->out, LOCATION_MAPPING, object);
	line = pb__begin(&p->out, LOCATION_LINE);
	pb__int(&p->out, LINE_FUNCTION, node->function + 1);
	pb__int(&p->out, LINE_LINE, node->line);
	pb__end(&p->out, line);
	pb__end(&p->out, at);
	return *known;
}

static void put_values(struct pprof *p, const struct call_node *node, bool in_ns)
{
	size_t at = pb__begin(&p->out, SAMPLE_VALUE);

	for (u32 i = 0; i < p->values; i++)
		pb__varint(&p->out, i == p->value ? node->count : i == p->value + 1 && in_ns ? node->self : 0);
	pb__end(&p->out, at);
}

struct writing {
	struct export *e;
	const struct stack_profile *profile;
};

/* path[0] is the process, which is written as a label, not as a frame. */
static int put_sample(const struct call_node *path[], u32 n, void *arg)
{
	const struct writing *w = arg;
	struct pprof *p = w->e->data;
	u64 process = string(p, p->profiles.functions.list[path[0]->function].name);
	size_t at, list;

	/* Locations are records of their own, and written before the sample. */
	for (u32 i = 1; i < n; i++)
		location(p, path[i]);
	at = pb__begin(&p->out, PROFILE_SAMPLE);
	list = pb__begin(&p->out, SAMPLE_LOCATION);
	for (u32 i = n; i-- > 1;)
		pb__varint(&p->out, location(p, path[i]));
	pb__end(&p->out, list);
	put_values(p, path[n - 1], w->profile->in_ns);
	list = pb__begin(&p->out, SAMPLE_LABEL);
	pb__int(&p->out, LABEL_KEY, p->process);
	pb__int(&p->out, LABEL_STR, process);
	pb__end(&p->out, list);
	pb__end(&p->out, at);
	if (p->out.len > FLUSH)
		drain(w->e, p, false);
	return p->err ? p->err : p->out.failed ? -ENOMEM : 0;
}

static int put_file(struct export *e, struct pprof *p)
{
	struct writing w = { .e = e };
	int err = 0;

	pb__text(&p->out, PROFILE_STRING, "", 0);
	/* String 0 is the empty one, so strings.n is the next number. */
	put_types(p);
	p->process = (u32)string(p, "process");
	pb__int(&p->out, PROFILE_TIME, trace_facts__realtime(e->facts, e->facts->start));
	pb__int(&p->out, PROFILE_DURATION, trace_facts__traced(e->facts));
	pb__int(&p->out, PROFILE_COMMENT, string(p, e->facts->file));
	for (u32 i = 0; !err && i < p->profiles.n; i++) {
		w.profile = &p->profiles.list[i];
		if (!w.profile->events)
			continue;
		err = call_tree__each(&w.profile->tree, put_sample, &w);
		p->value += w.profile->in_ns ? 2 : 1;
	}
	drain(e, p, true);
	return err ? err : p->out.failed ? -ENOMEM : p->err;
}

static int begin(struct export *e)
{
	struct pprof *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	e->data = p;
	map__init(&p->strings, sizeof(u64), sizeof(u32));
	map__init(&p->locations, sizeof(struct place), sizeof(u32));
	map__init(&p->mappings, sizeof(u32), sizeof(u32));
	/* 16 is added to the window's bits to request gzip's header. */
	p->gzips = deflateInit2(&p->gzip, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
	return p->gzips ? profiles__init(&p->profiles, e, true) : -ENOMEM;
}

static int rows(struct export *e, const struct rows *rows)
{
	return profiles__add(&((struct pprof *)e->data)->profiles, rows);
}

static int end(struct export *e)
{
	struct pprof *p = e->data;
	int err;

	if (!p)
		return 0;
	err = p->gzips ? profiles__finish(&p->profiles) : -ENOMEM;
	p->functions = calloc(p->profiles.functions.n + 1, 1);
	if (!err)
		err = p->functions ? put_file(e, p) : -ENOMEM;
	profiles__note(&p->profiles, false, e->note, sizeof(e->note));
	if (p->gzips)
		deflateEnd(&p->gzip);
	MAPS_FREE(&p->strings, &p->locations, &p->mappings);
	profiles__free(&p->profiles);
	pb__free(&p->out);
	free(p->functions);
	free(p);
	return err;
}

EXPORTER(pprof) = {
	.name = "pprof",
	.doc = "stacks for `go tool pprof` and others (profile.proto, gzip)",
	.binary = true,
	.check = profiles__check,
	.begin = begin,
	.rows = rows,
	.end = end,
};
