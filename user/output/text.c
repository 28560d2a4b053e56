// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/text.h"

#include "util/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t text__decode(const char *text, size_t len, u32 *c)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t i, n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if (!n || n > len)
		return 0;
	*c = n == 1 ? p[0] : p[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	/* Overlong forms, surrogates and values beyond Unicode are invalid. */
	if ((n == 3 && *c < 0x800) || (n == 4 && *c < 0x10000) || (*c >= 0xd800 && *c < 0xe000) || *c > 0x10ffff)
		return 0;
	return n;
}

/* Bytes at the beginning that need neither cleaning nor escapes, as most texts have no others. */
static size_t plain_length(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] >= ' ' && text[n] <= '~')
		n++;
	return n;
}

bool text__is_dangerous(u32 c)
{
	static const struct {
		u32 from, to;
	} ranges[] = {
		{ 0, 0x1f },	    { 0x7f, 0x9f },	{ 0xad, 0xad },	      { 0x61c, 0x61c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return true;
	return false;
}

static size_t put_escaped(char *out, u32 c)
{
	if (c == '\n' || c == '\t' || c == '\r')
		return (size_t)sprintf(out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
	return (size_t)sprintf(out, c < 0x100 ? "\\x%02x" : "\\u{%04x}", c);
}

char *text__clean(const char *text, size_t len)
{
	/* An escape has at most 4 times the original's bytes: \xNN replaces 1 or more, \u{NNNN} 2 or more. */
	char *out = malloc(len * 4 + 1);
	size_t n, at = 0;
	u32 c;

	if (!out)
		return NULL;
	for (; len; text += n, len -= n) {
		n = plain_length(text, len);
		memcpy(out + at, text, n);
		at += n;
		text += n;
		len -= n;
		if (!len)
			break;
		n = text__decode(text, len, &c);
		if (!n) {
			at += put_escaped(out + at, (unsigned char)*text);
			n = 1;
		} else if (text__is_dangerous(c)) {
			at += put_escaped(out + at, c);
		} else {
			memcpy(out + at, text, n);
			at += n;
		}
	}
	out[at] = '\0';
	return out;
}

void text__put_clean(FILE *out, const char *text, size_t len)
{
	char *clean;

	if (plain_length(text, len) == len) {
		fwrite(text, 1, len, out);
		return;
	}
	clean = text__clean(text, len);
	fputs(clean ? clean : "?", out);
	free(clean);
}

char *text__utf8(const char *text, size_t len)
{
	char *out = malloc(len * 3 + 1);
	size_t n, at = 0;
	u32 c;

	if (!out)
		return NULL;
	for (; len && *text; text += n, len -= n) {
		n = text__decode(text, len, &c);
		memcpy(out + at, n ? text : "\xef\xbf\xbd", n ? n : 3);
		at += n ? n : 3;
		n += !n;
	}
	out[at] = '\0';
	return out;
}

static void put_csv(FILE *out, const char *text, const char *prefix)
{
	if (!strpbrk(text, ",\"\r\n") && *text != '#' && *text != ' ') {
		fprintf(out, "%s%s", prefix, text);
		return;
	}
	fprintf(out, "\"%s", prefix);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

void text__put_csv(FILE *out, const char *text)
{
	/* A spreadsheet treats a cell that begins with one of these as a formula, which may run programs. */
	put_csv(out, text, *text && strchr("=+-@\t\r", *text) ? "'" : "");
}

void text__put_own_csv(FILE *out, const char *text)
{
	put_csv(out, text, "");
}

size_t text__width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* The bytes of the first `n` characters */
static size_t bytes_of(const char *text, size_t n)
{
	size_t i = 0;

	for (; text[i]; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && !n--)
			break;
	return i;
}

void text__shorten(char *text, size_t width)
{
	size_t len = text__width(text), left = (width - 1) / 2, right = width - 2 - left;
	char *cut;

	if (len <= width || width < 3)
		return;
	cut = text + bytes_of(text, left);
	text += bytes_of(text, len - right);
	memmove(cut + 2, text, strlen(text) + 1);
	cut[0] = cut[1] = '.';
}

char *text__ns(char *buf, size_t size, u64 ns)
{
	/* Integers do not round up: 999,999,999 ns must not become "1000.000 ms". */
	if (ns < 1000)
		snprintf(buf, size, "%llu ns", ns);
	else if (ns < 1000000)
		snprintf(buf, size, "%llu.%03llu us", ns / 1000, ns % 1000);
	else if (ns < 1000000000)
		snprintf(buf, size, "%llu.%03llu ms", ns / 1000000, ns / 1000 % 1000);
	else
		snprintf(buf, size, "%llu.%03llu s", ns / 1000000000, ns / 1000000 % 1000);
	return buf;
}

char *text__bytes(char *buf, size_t size, u64 bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double d = (double)bytes / 1024;
	u32 i = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%llu B", bytes);
		return buf;
	}
	for (; d >= 1023.995 && i < 5; i++)
		d /= 1024;
	snprintf(buf, size, "%.2f %s", d, units[i]);
	return buf;
}

char *text__count(char *buf, size_t size, u64 n)
{
	char digits[24];
	int i, at = 0, len = snprintf(digits, sizeof(digits), "%llu", n);

	for (i = 0; i < len && (size_t)at + 2 < size; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		if ((size_t)at + 1 < size)
			buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

char *text__double(char *buf, size_t size, double d)
{
	int digits;

	for (digits = 15; digits <= 17; digits++) {
		snprintf(buf, size, "%.*g", digits, d);
		if (strtod(buf, NULL) == d)
			break;
	}
	return buf;
}

char *text__date(char *buf, size_t size, u64 realtime)
{
	time_t t = (time_t)(realtime / 1000000000ull);
	char day[32], zone[16];
	struct tm tm;

	if (!localtime_r(&t, &tm)) {
		snprintf(buf, size, "?");
		return buf;
	}
	strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(buf, size, "%s.%03llu %s", day, realtime % 1000000000ull / 1000000, zone);
	return buf;
}

char *text__seconds(char *buf, size_t size, u64 time, u64 start, int digits)
{
	u64 ns = time >= start ? time - start : start - time, unit = 1;
	int i;

	for (i = digits; i < 9; i++)
		unit *= 10;
	snprintf(buf, size, "%s%llu.%0*llu", time < start ? "-" : "", ns / 1000000000ull, digits,
		 ns % 1000000000ull / unit);
	return buf;
}

bool text__has_item(const char *list, char separator, const char *item)
{
	size_t len = strlen(item);

	for (const char *next; list; list = next) {
		next = strchr(list, separator);
		next = next ? next + 1 : NULL;
		if (!strncmp(list, item, len) && (!list[len] || list[len] == separator))
			return true;
	}
	return false;
}

void text__add(struct text_buffer *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->buf + t->len, t->size - t->len, format, ap);
	va_end(ap);
	if (n > 0)
		t->len = t->len + (size_t)n < t->size ? t->len + (size_t)n : t->size - 1;
}
