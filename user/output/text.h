/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts for people: makes untrusted names harmless, formats numbers with units. */
#pragma once

#include "core/types.h"

#include <stdio.h>

/* Returns the length of the UTF-8 sequence at text (len > 0) and its code point in *c, or 0 if it is invalid. */
size_t text__decode(const char *text, size_t len, u32 *c);
/*
 * Does printing this character do more than show it? True for controls (C0, DEL, C1) and for characters that change the
 * text's direction or have no width (soft hyphen, joiners, tags).
 */
bool text__is_dangerous(u32 c);
/*
 * Returns a malloc'ed copy that is safe on a terminal, NULL without memory. Controls become \n, \t, \r or \xNN, invalid
 * UTF-8 \xNN, other dangerous characters \u{NNNN}. A backslash is not escaped, so the copy cannot be parsed back.
 */
char *text__clean(const char *text, size_t len);
/* Prints such a copy; "?" without memory. */
void text__put_clean(FILE *out, const char *text, size_t len);
/* Returns a malloc'ed copy in valid UTF-8: bad bytes become U+FFFD. Controls stay, since JSON escapes them. */
char *text__utf8(const char *text, size_t len);
/*
 * Prints a CSV cell (RFC 4180), quoted if necessary. One that a spreadsheet would treat as a formula (it begins with =
 * + - @ or a tab) gets a ' before it.
 */
void text__put_csv(FILE *out, const char *text);
/* Prints a CSV cell that sonde itself made, such as an option's name: no ' is added. */
void text__put_own_csv(FILE *out, const char *text);
/* Returns the number of characters (not bytes) of a UTF-8 text. */
size_t text__width(const char *text);

/* Shortens a text in place to at most `width` (3 or more) characters: ".." in its middle replaces the others. */
void text__shorten(char *text, size_t width);

/* Is the item in a list such as "gil,lock", whose separator is ','? */
bool text__has_item(const char *list, char separator, const char *item);

/* All of these write at most size bytes with a NUL and return buf. */
char *text__ns(char *buf, size_t size, u64 ns); /* "850 ns", "1.234 ms", "83.100 s" */
char *text__bytes(char *buf, size_t size, u64 bytes); /* "512 B", "1.50 MiB" */
char *text__count(char *buf, size_t size, u64 n); /* "1,234,567" */
char *text__double(char *buf, size_t size, double d); /* shortest form that reads back the same */
/* "2026-11-21 08:08:25.123 +0000": a CLOCK_REALTIME time in ns, shown as local time */
char *text__date(char *buf, size_t size, u64 realtime);
/* "12.345678": seconds from start to time (ns), negative if time is earlier; digits (at most 9) after the point */
char *text__seconds(char *buf, size_t size, u64 time, u64 start, int digits);

/* Plural endings: "1 call", "2 calls"; "1 process", "2 processes". */
static inline const char *text__s(u64 n)
{
	return n == 1 ? "" : "s";
}
static inline const char *text__es(u64 n)
{
	return n == 1 ? "" : "es";
}

/* A text that text__add() appends to; what exceeds the buffer is cut. { .buf, .size } is an empty one. */
struct text_buffer {
	char *buf;
	size_t size, len;
};
void text__add(struct text_buffer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Size of a buffer for any of the numbers and times above. */
#define TEXT_NUMBER 48

/* The same in a buffer that lives to the end of the enclosing block */
#define TEXT_NS(ns)	  text__ns((char[TEXT_NUMBER]){ 0 }, TEXT_NUMBER, ns)
#define TEXT_BYTES(bytes) text__bytes((char[TEXT_NUMBER]){ 0 }, TEXT_NUMBER, bytes)
#define TEXT_COUNT(n)	  text__count((char[TEXT_NUMBER]){ 0 }, TEXT_NUMBER, n)
#define TEXT_SECONDS(...) text__seconds((char[TEXT_NUMBER]){ 0 }, TEXT_NUMBER, __VA_ARGS__)
