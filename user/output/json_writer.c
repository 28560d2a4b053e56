// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/json_writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"

static void indent(const struct json_writer *w)
{
	for (u32 i = 0; i < w->depth; i++)
		putc('\t', w->file);
}

/* Writes the separator and key of an element: elements of an object start a line each, those of a list do not. */
static void begin_element(struct json_writer *w, const char *key)
{
	u64 bit = 1ull << w->depth;

	if (w->filled & bit)
		fputs(w->lists & bit ? ", " : ",\n", w->file);
	w->filled |= bit;
	if (!key)
		return;
	indent(w);
	json__print_text(w->file, key, strlen(key));
	fputs(":\t", w->file);
}

static void begin(struct json_writer *w, const char *key, bool list)
{
	begin_element(w, key);
	fputs(list ? "[" : "{\n", w->file);
	w->depth++;
	w->filled &= ~(1ull << w->depth);
	w->lists = (w->lists & ~(1ull << w->depth)) | (u64)list << w->depth;
}

void json_writer__object(struct json_writer *w, const char *key)
{
	begin(w, key, false);
}

void json_writer__list(struct json_writer *w, const char *key)
{
	begin(w, key, true);
}

void json_writer__end(struct json_writer *w)
{
	u64 bit = 1ull << w->depth--;

	if (w->lists & bit) {
		putc(']', w->file);
		return;
	}
	if (w->filled & bit)
		putc('\n', w->file);
	indent(w);
	putc('}', w->file);
	if (!w->depth)
		putc('\n', w->file);
}

void json_writer__u64(struct json_writer *w, const char *key, u64 u)
{
	begin_element(w, key);
	fprintf(w->file, "%llu", u);
}

void json_writer__s64(struct json_writer *w, const char *key, s64 s)
{
	begin_element(w, key);
	fprintf(w->file, "%lld", s);
}

void json_writer__double(struct json_writer *w, const char *key, double d)
{
	char buf[TEXT_NUMBER];

	begin_element(w, key);
	fputs(isfinite(d) ? text__double(buf, sizeof(buf), d) : "null", w->file);
}

void json_writer__bool(struct json_writer *w, const char *key, bool b)
{
	begin_element(w, key);
	fputs(b ? "true" : "false", w->file);
}

void json_writer__text(struct json_writer *w, const char *key, const char *text)
{
	begin_element(w, key);
	if (text)
		json__print_text(w->file, text, strlen(text));
	else
		fputs("null", w->file);
}

/* Most texts need neither cleaning nor escapes. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e || text[i] == '"' || text[i] == '\\')
			return false;
	return true;
}

/*
 * JSON only requires the C0 controls to be escaped. The others are escaped as well, since the output may be printed
 * on a terminal: some terminals act on C1 controls, and bidi controls reorder what follows them.
 */
static void put_escaped(FILE *out, const char *text, size_t len, u32 c)
{
	static const char shorts[] = "\bb\ff\nn\rr\tt\"\"\\\\";

	for (const char *s = shorts; *s; s += 2)
		if (c == (u32)*s) {
			fprintf(out, "\\%c", s[1]);
			return;
		}
	if (!text__is_dangerous(c))
		fwrite(text, 1, len, out);
	else if (c < 0x10000)
		fprintf(out, "\\u%04x", c);
	else
		fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

void json__print_text(FILE *out, const char *text, size_t len)
{
	const char *p;
	char *clean;
	size_t n;
	u32 c;

	putc('"', out);
	if (is_plain(text, len)) {
		fwrite(text, 1, len, out);
	} else {
		clean = text__utf8(text, len);
		p = clean ? clean : "?";
		for (len = strlen(p); len; p += n, len -= n) {
			n = text__decode(p, len, &c);
			put_escaped(out, p, n, c);
		}
		free(clean);
	}
	putc('"', out);
}
