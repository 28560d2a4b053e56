// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the command line that shows more of a finding. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "findings/finding.h"
#include "output/text.h"
#include "util/array.h"

static bool has_control(const char *path)
{
	for (; *path; path++)
		if (iscntrl((unsigned char)*path))
			return true;
	return false;
}

/* Adds a path, quoted if a shell would split or expand it, as users paste the line into one. */
static void add_path(struct text_buffer *c, const char *path)
{
	bool control = has_control(path);

	/* a leading '-' would make it an option */
	if (*path == '-')
		text__add(c, "./");
	if (!path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:=@%")]) {
		text__add(c, "%s", path);
		return;
	}
	text__add(c, control ? "$'" : "'");
	for (; *path; path++) {
		if (iscntrl((unsigned char)*path))
			text__add(c, "\\%03o", (unsigned char)*path);
		else if (control && (*path == '\'' || *path == '\\'))
			text__add(c, "\\%c", *path);
		else if (*path == '\'')
			text__add(c, "'\\''");
		else
			text__add(c, "%c", *path);
	}
	text__add(c, "'");
}

/* The events of a report's rows, and the report that shows the same waits without them. */
static const struct source {
	const char *report, *events[4], *fallback;
} sources[] = {
	{ "locks", { "lock_wait", "sample_wake" }, "offcpu" },
	{ "disk", { "disk_io", "disk_fault", "disk_stall" }, "osrt" },
	{ "osrt", { "syscall", "syscall_short" }, "offcpu" },
};

static bool has_any(const struct query *q, const char *const *events, size_t n)
{
	for (size_t i = 0; i < n && events[i]; i++)
		if (trace__has(q->trace, events[i]))
			return true;
	return false;
}

/* In `sources`, a report precedes the one that replaces it. */
static const char *report_of(const struct finding *f, const struct query *q)
{
	const char *report = *f->report ? f->report : "offcpu";

	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (!strcmp(report, sources[i].report) && !has_any(q, sources[i].events, ARRAY_LEN(sources[i].events)))
			report = sources[i].fallback;
	return report;
}

/* Writes "1.5", without trailing zeros. */
static char *seconds(char *buf, size_t size, u64 time, u64 start)
{
	char *end;

	text__seconds(buf, size, time, start, 9);
	for (end = buf + strlen(buf); end > buf && end[-1] == '0'; end--)
		;
	end[end > buf && end[-1] == '.' ? -1 : 0] = '\0';
	return buf;
}

static void add_time(struct text_buffer *c, const struct trace_facts *facts)
{
	char from[TEXT_NUMBER] = "", to[TEXT_NUMBER] = "";

	if (!facts->from && !facts->to)
		return;
	if (facts->from > facts->start)
		seconds(from, sizeof(from), facts->from, facts->start);
	if (facts->to)
		seconds(to, sizeof(to), facts->to, facts->start);
	if (*from || *to)
		text__add(c, " --time %s..%s", from, to);
}

void finding__evidence(const struct finding *f, const struct query *q, char *buf, size_t size)
{
	struct text_buffer c = { .buf = buf, .size = size };
	const struct trace_facts *facts = q->facts;
	/* the others lost the time for which they waited for a slow rank; report ranks compares it with them */
	bool is_of_one = f->kind == FINDING_STRAGGLER ? strcmp(f->report, "ranks") != 0 : f->processes == 1;

	text__add(&c, "sonde report ");
	add_path(&c, facts && facts->path ? facts->path : "FILE..");
	text__add(&c, " %s", report_of(f, q));
	if (is_of_one)
		text__add(&c, " -p %u", names__number(q->names, f->pid));
	for (u32 i = 0; facts && !is_of_one && i < facts->pids.n; i++)
		text__add(&c, "%s%u", i ? "," : " -p ", facts->pids.list[i]);
	if (facts && facts->tid)
		text__add(&c, " --tid %u", facts->tid);
	if (facts)
		add_time(&c, facts);
}
