/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text for people: untrusted names made harmless, numbers with units. */
#ifndef SONDE_OUTPUT_TEXT_H
#define SONDE_OUTPUT_TEXT_H

#include "core/types.h"

#include <stdio.h>

/* Length of the UTF-8 sequence at text, 0: it is invalid; *c: its code point. len > 0 */
size_t text__decode(const char *text, size_t len, u32 *c);
/*
 * Does printing this character do something else than show it? Controls (C0, DEL, C1), what changes the direction
 * of text, and what has no width: soft hyphen, joiners, tags.
 */
bool text__is_dangerous(u32 c);
/*
 * A copy that is safe on a terminal: control characters become \n, \t or \xNN,
 * bytes that are no UTF-8 \xNN, invisible characters that turn the direction of
 * text \u{NNNN}. A backslash stays one, so this is to be read, not to be parsed.
 * malloc'ed, NULL: no memory.
 */
char *text__clean(const char *text, size_t len);
/* A copy in valid UTF-8 that keeps control characters (JSON escapes them itself): bad bytes become U+FFFD. */
char *text__utf8(const char *text, size_t len);
/*
 * A cell of CSV (RFC 4180), quoted where that is needed. One that a spreadsheet would
 * take for a formula (it begins with = + - @ or a tab) gets a ' before it.
 */
void text__put_csv(FILE *out, const char *text);
/* The same of a text that sonde itself has, such as an option's name: as it is, whatever it begins with. */
void text__put_own_csv(FILE *out, const char *text);
/* Characters (not bytes) of a UTF-8 text. */
size_t text__width(const char *text);

/* Is the item one of a list, such as "gil,lock" with ',' as separator? */
bool text__has_item(const char *list, char separator, const char *item);

/* All write at most size bytes with a NUL and return buf. */
char *text__ns(char *buf, size_t size, u64 ns); /* "850 ns", "1.234 ms", "83.100 s" */
char *text__bytes(char *buf, size_t size, u64 bytes); /* "512 B", "1.50 MiB" */
char *text__count(char *buf, size_t size, u64 n); /* "1,234,567" */
char *text__double(char *buf, size_t size, double d); /* shortest form that reads back the same */
/* "2026-11-21 08:08:25.123 +0000", local time of a CLOCK_REALTIME moment */
char *text__date(char *buf, size_t size, u64 realtime);
/* "12.345678": seconds since start, may be negative. digits after the point, 9 at most. */
char *text__seconds(char *buf, size_t size, u64 time, u64 start, int digits);

/* Enough for any of them */
#define TEXT_NUMBER 48

#endif
