// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_trace SCHEMA.json EVENTS OUT [FAMILIES [BOOT_ID]]: writes a trace from text. The schema is
 * fixed, so that what sonde says about these traces does not change with the
 * families: they are old traces.
 *
 *	# a comment
 *	cuda_copy pid=4711 tid=4711 start=@1.5 time=@1.50001 kind=CUDA_COPY_HTOD name="a text\x1b"
 *	cut		the file ends here, without an index
 *	flush		ends a chunk
 *
 * @S is S seconds after the trace's start. A text for a field of unit `string` is interned.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/writer.h"

#define START 1000000000000ull

static struct schema *schema;
static struct trace_writer *writer;
static unsigned int line_number;

static void die(const char *what, const char *which)
{
	fprintf(stderr, "make_trace: line %u: %s %s\n", line_number, what, which);
	exit(1);
}

static char *read_file(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(path, "r");

	if (!f || !text || !fread(text, 1, (1 << 20) - 1, f))
		die("cannot read", path);
	fclose(f);
	return text;
}

/* Undoes \xNN, \n, \" and \\ in place; the text ends at the quote. Returns what follows. */
static char *unquote(char *p, size_t *len)
{
	char *out = p;
	unsigned int c;

	*len = 0;
	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1] == 'x' && sscanf(p + 2, "%2x", &c) == 1) {
			out[(*len)++] = (char)c;
			p += 3;
		} else if (*p == '\\') {
			p++;
			out[(*len)++] = *p == 'n' ? '\n' : *p;
		} else {
			out[(*len)++] = *p;
		}
	}
	if (!*p)
		die("no closing quote", "");
	return p + 1;
}

static s64 number(const struct schema_field *f, const char *text)
{
	unsigned long long s = 0, ns = 0;
	char digits[10] = "000000000", *end;
	u32 i;

	if (*text == '@') {
		s = strtoull(text + 1, &end, 10);
		if (*end == '.')
			memcpy(digits, end + 1, strnlen(end + 1, 9));
		ns = strtoull(digits, NULL, 10);
		return (s64)(START + s * 1000000000 + ns);
	}
	for (i = 0; f->values && i < f->values->n; i++) {
		if (!strcmp(f->values->values[i].name, text))
			return f->values->values[i].value;
	}
	s = strtoull(text, &end, 0);
	if (*end)
		die("not a number:", text);
	return (s64)s;
}

/* One "name=value"; returns what follows. */
static char *set_field(const struct schema_event *e, char *record, u32 *size, char *p)
{
	const struct schema_field *f;
	char *name = p, *value, *next;
	size_t len;
	s64 n;

	p += strcspn(p, "=");
	if (!*p)
		die("no value for", name);
	*p++ = '\0';
	f = schema_event__field(e, name);
	if (!f)
		die("no such field:", name);
	value = *p == '"' ? p + 1 : p;
	if (*p == '"') {
		next = unquote(value, &len);
	} else {
		len = strcspn(p, " \t\n");
		next = p + len + (p[len] != '\0');
		p[len] = '\0';
	}
	if (f->type == FIELD_TEXT || f->type == FIELD_TAIL) {
		memcpy(record + f->offset, value, f->type == FIELD_TEXT && len > f->size ? f->size : len);
		*size += f->type == FIELD_TAIL ? (u32)len : 0;
	} else {
		n = *p == '"' || (!strcmp(f->unit, "string") && value[0] == '/') ?
			    trace_writer__intern(writer, value, len) :
			    number(f, value);
		memcpy(record + f->offset, &n, f->size);
	}
	return next;
}

/* false: the trace is cut here */
static bool take_line(char *line)
{
	static char record[RECORD_MAX + 8];
	const struct schema_event *e;
	char *p = line + strspn(line, " \t"), *word = p;
	u32 size;

	p += strcspn(p, " \t\n");
	if (*p)
		*p++ = '\0';
	if (!*word || *word == '#')
		return true;
	if (!strcmp(word, "cut"))
		return false;
	if (!strcmp(word, "flush"))
		return !trace_writer__flush(writer);
	e = schema__event(schema, word);
	if (!e)
		die("no such event:", word);
	memset(record, 0, sizeof(record));
	memcpy(record + schema_event__field(e, "id")->offset, &e->id, sizeof(e->id));
	size = e->size;
	for (p += strspn(p, " \t\n"); *p; p += strspn(p, " \t\n"))
		p = set_field(e, record, &size, p);
	if (trace_writer__append(writer, record, size))
		die("cannot append", word);
	return true;
}

int main(int argc, char **argv)
{
	struct trace_head head = {
		.hostname = "gpu-7",
		.machine_id = "0123456789abcdef0123456789abcdef",
		.boot_id = "00000000-1111-2222-3333-444444444444",
		.kernel = "6.1.0-18-amd64",
		.arch = "x86_64",
		.sonde_version = "0.1.0",
		.command = "sonde record -o run.sonde",
		.families = "proc,cuda,gil,sched",
		.cpus = 8,
		.monotonic = START,
		.boottime = START,
		.realtime = 1767268800000000000ull,
		.clock_error = 100,
	};
	static char line[65536];
	char why[512], *text;
	bool whole = true;
	cJSON *json;
	FILE *in;
	int fd;

	if (argc < 4 || argc > 6)
		die("usage: make_trace SCHEMA.json EVENTS OUT [FAMILIES [BOOT_ID]]", "");
	if (argc > 4)
		head.families = argv[4];
	if (argc > 5)
		head.boot_id = argv[5];
	text = read_file(argv[1]);
	json = cJSON_Parse(text);
	if (!json || schema__from_json(&schema, json, why, sizeof(why)))
		die("bad schema", json ? why : "");
	in = fopen(argv[2], "r");
	fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (!in || fd < 0 || trace_writer__create(&writer, fd, schema, &head))
		die("cannot write", argv[3]);
	while (whole && fgets(line, sizeof(line), in)) {
		line_number++;
		whole = take_line(line);
	}
	if (whole ? trace_writer__finish(writer) : trace_writer__flush(writer))
		die("cannot finish", argv[3]);
	trace_writer__free(writer);
	schema__free(schema);
	cJSON_Delete(json);
	free(text);
	fclose(in);
	close(fd);
	return 0;
}
