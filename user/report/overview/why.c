// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One thing explained to the end of its chain: what it did, who made it wait, what that one did meanwhile, and so on.
 */
#include <stdio.h>
#include <string.h>

#include "findings/chain.h"
#include "findings/findings.h"
#include "findings/stopped.h"
#include "model/source_lines.h"
#include "output/text.h"
#include "report/report.h"
#include "util/path.h"

struct why {
	const struct query *args;
	struct chain chain;
	struct source_lines lines;
	struct report_output *out;
};

/* "srv.py 4712", "8 threads of srv.py 4711"; of the function that was asked for, its name */
static char *write_who(const struct why *w, u32 depth, char *buf, size_t size)
{
	const struct chain_level *l = &w->chain.levels[depth];
	char label[64];

	if (!depth && w->chain.subject.kind == SUBJECT_FUNCTION) {
		snprintf(buf, size, "%s", w->chain.subject.name);
		return buf;
	}
	names__label(w->args->names, label, sizeof(label), l->thread.pid, l->thread.tid);
	if (l->threads < 2)
		snprintf(buf, size, "%s", label);
	else if (l->thread.pid)
		snprintf(buf, size, "%u threads of %s", l->threads, label);
	else
		snprintf(buf, size, "%u threads of several processes", l->threads);
	return buf;
}

/* Kinds by their time; returns how many have some. */
static u32 order_parts(const struct chain_level *l, enum finding_kind kinds[FINDING_KINDS])
{
	u32 n = 0;

	for (enum finding_kind k = FINDING_NONE; k < FINDING_KINDS; k++) {
		u32 i;

		if (!l->parts[k].ns)
			continue;
		for (i = n++; i && l->parts[kinds[i - 1]].ns < l->parts[k].ns; i--)
			kinds[i] = kinds[i - 1];
		kinds[i] = k;
	}
	return n;
}

static char *write_phrase(enum finding_kind kind, char *buf, size_t size)
{
	if (kind != FINDING_NONE)
		return finding_kind__phrase(kind, buf, size);
	snprintf(buf, size, "did something that is not known");
	return buf;
}

#define PARTS_SAID 4
#define PART_LEAST 1 /* % */

/* "python3 4712, 5.000 s: 62.0% waited for a lock, 30.1% ran on a CPU." */
static void add_parts(struct why *w, u32 depth, u32 shift)
{
	const struct chain_level *l = &w->chain.levels[depth];
	enum finding_kind kinds[FINDING_KINDS];
	char text[1024], who[320], time[TEXT_NUMBER], phrase[128];
	struct text_buffer s = { .buf = text, .size = sizeof(text) };
	u32 n = order_parts(l, kinds);

	/* "of waiting": the sum of several threads' waits, which may overlap */
	text__add(&s, "%*s%s%s, %s%s:", 2 * (int)shift, "", depth ? "Meanwhile " : "",
		  write_who(w, depth, who, sizeof(who)), text__ns(time, sizeof(time), l->ns),
		  depth ? " of waiting" : "");
	for (u32 i = 0; i < n && i < PARTS_SAID; i++) {
		double percent = table__percent(l->parts[kinds[i]].ns, l->ns);

		if (i && percent < PART_LEAST)
			break;
		text__add(&s, "%s %.1f%% %s", i ? "," : "", percent, write_phrase(kinds[i], phrase, sizeof(phrase)));
	}
	text__add(&s, "%s.", n ? "" : " nothing is known of this time");
	report_output__finding(w->out, "%s", text);
	REPORT_FIGURES(w->out, FIGURE("depth", V_U64(depth)), FIGURE("pid", V_U64(l->thread.pid)),
		       FIGURE("tid", l->thread.tid ? V_U64(l->thread.tid) : V_NONE), FIGURE("wall_ns", V_U64(l->ns)));
}

/* Returns the source text of the level's line; NULL: it is not in the trace. */
static const char *source_of(const struct why *w, const struct chain_level *l)
{
	return source_lines__text(&w->lines, l->code.file, l->code.line);
}

/* "What costs most: it waited for a lock in handle (srv.py:12) for 3.1 s: 40 times, 77.5 ms each, in futex." */
static void add_place(struct why *w, u32 depth, u32 shift)
{
	const struct chain_level *l = &w->chain.levels[depth];
	char text[1024], phrase[128], what[512];
	struct text_buffer s = { .buf = text, .size = sizeof(text) };

	write_phrase(l->kind, phrase, sizeof(phrase));
	finding_code__write(&l->code, " in ", phrase, what, sizeof(what));
	text__add(&s, "%*s%s %s, %s", 2 * (int)shift, "", depth ? "Mostly it" : "What costs most: it", what,
		  TEXT_NS(l->code_ns ? l->code_ns : l->parts[l->kind].ns));
	if (l->kind == FINDING_COMPUTE && l->code_times)
		text__add(&s, " (%s sample%s)", TEXT_COUNT(l->code_times), text__s(l->code_times));
	else if (l->kind != FINDING_COMPUTE && l->code_times)
		text__add(&s, ": %s time%s, %s%s", TEXT_COUNT(l->code_times), text__s(l->code_times),
			  TEXT_NS(l->code_ns / l->code_times), l->code_times > 1 ? " each" : "");
	if (*l->call && l->end != CHAIN_CPU)
		text__add(&s, ", in %s%s%s", l->call, *l->object ? " of " : "", l->object);
	else if (*l->object && stopped__is_kind(l->kind))
		text__add(&s, " (%s)", l->object);
	text__add(&s, ".");
	report_output__finding(w->out, "%s", text);
	if (source_of(w, l))
		report_output__finding(w->out, "%*s%s:%u: %s", 2 * (int)shift + 4, "", path__file_name(l->code.file),
				       l->code.line, source_of(w, l));
}

static const char *verb_of(enum finding_kind kind)
{
	switch (kind) {
	case FINDING_GIL:
		return "The GIL was held by";
	case FINDING_LOCK:
	case FINDING_FILE_LOCK:
		return "The lock was held by";
	case FINDING_CHILD:
		return "It waited for";
	case FINDING_PEER:
		return "It waited for";
	default:
		return "The wait was ended by";
	}
}

#define CPUS_KNOWN 80 /* %: if less is known, the sentence states what the rest may be */

/* "Meanwhile the CPUs ran qemu 62%, make 20%." */
static void add_cpu_users(struct why *w, u32 depth, u32 shift)
{
	const struct chain_level *l = &w->chain.levels[depth];

	report_output__finding(
		w->out, "%*sMeanwhile the CPUs ran %s.%s", 2 * (int)shift, "", l->object,
		l->cpus_percent >= CPUS_KNOWN ?
			"" :
			" In the rest of the time they were idle, or did something that is not in the trace; `sonde record --sched=all` records all processes.");
}

/* "The lock was held by reload (srv.py:7) of python3 4713 for 96% of this time." */
static void add_by(struct why *w, u32 depth, u32 shift)
{
	const struct chain_level *l = &w->chain.levels[depth];
	char text[1024], label[64], code[512];
	struct text_buffer s = { .buf = text, .size = sizeof(text) };
	bool has_code = *l->caused_by_code.function || *l->caused_by_code.native;

	if (!l->caused_by.pid)
		return;
	names__label(w->args->names, label, sizeof(label), l->caused_by.pid, l->caused_by.tid);
	if (l->end == CHAIN_CPU) {
		add_cpu_users(w, depth, shift);
		return;
	}
	text__add(&s, "%*s", 2 * (int)shift, "");
	finding_code__write(&l->caused_by_code, " ", verb_of(l->kind), code, sizeof(code));
	text__add(&s, "%s%s%s %s for %.0f%% of this time.%s", code, has_code ? " of" : "",
		  l->caused_by.tid ? "" : " threads of", label, table__percent(l->caused_by_ns, l->code_ns),
		  l->is_forked ? " It was held when this process was forked, and can never be released here." : "");
	report_output__finding(w->out, "%s", text);
}

static const char *end_text(enum chain_end end)
{
	switch (end) {
	case CHAIN_CAUSE:
		return "That is the cause: nothing else made it wait.";
	case CHAIN_IDLE:
		return "The chain ends here: it waited for something to do.";
	case CHAIN_CPU:
		return "The chain ends here: other threads had the CPUs.";
	case CHAIN_UNKNOWN:
		return "The chain ends here: which thread made it wait was not recorded.";
	case CHAIN_OUTSIDE:
		return "The chain ends here: the other end is not in this trace.";
	case CHAIN_UNRECORDED:
		return "The chain ends here: what that thread did was not recorded; `sonde record --sched=all` records all "
		       "processes.";
	case CHAIN_CYCLE:
		return "The chain ends here: that thread is part of it already.";
	case CHAIN_DEEP:
		return "The chain is longer, but no more of it is followed.";
	default:
		return "The chain ends here: nothing is known of this time.";
	}
}

#define EXPLAINED_PERCENT 80 /* an activity with less of the time is not the only cause */

static void add_end(struct why *w, int shift)
{
	const struct chain_level *l = &w->chain.levels[w->chain.n - 1];
	double percent = table__percent(l->parts[l->kind].ns, l->ns);
	char phrase[128], remedy[128];

	if (*stopped__remedy(l->kind, l->thread.pid, remedy, sizeof(remedy)))
		report_output__finding(w->out, "%*sThe chain ends here: %s", 2 * shift, "", remedy);
	else if (l->end != CHAIN_CAUSE || percent >= EXPLAINED_PERCENT)
		report_output__finding(w->out, "%*s%s", 2 * shift, "", end_text(l->end));
	else
		report_output__finding(w->out, "%*sThe chain ends here: for %.1f%% of this time it %s.", 2 * shift, "",
				       percent, write_phrase(l->kind, phrase, sizeof(phrase)));
}

static const struct column part_columns[] = {
	{ "depth", "Level", VALUE_U64, SHOW_PLAIN }, { "name", "Time of", VALUE_TEXT, SHOW_PLAIN },
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },  { "reason", "What it did", VALUE_TEXT, SHOW_PLAIN },
	{ "total_ns", "Time", VALUE_U64, SHOW_NS },  { "share_percent", "Share %", VALUE_DOUBLE, SHOW_PERCENT },
};

static const struct column level_columns[] = {
	{ "depth", "Level", VALUE_U64, SHOW_PLAIN },
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
	{ "name", "Time of", VALUE_TEXT, SHOW_PLAIN },
	{ "wall_ns", "Time", VALUE_U64, SHOW_NS },
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
	{ "lost_ns", "Lost", VALUE_U64, SHOW_NS },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "code_file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_U64, SHOW_PLAIN },
	{ "source", "Source", VALUE_TEXT, SHOW_PLAIN },
	{ "native", "Native", VALUE_TEXT, SHOW_PLAIN },
	{ "code_ns", "Lost in this code", VALUE_U64, SHOW_NS },
	{ "call", "Call", VALUE_TEXT, SHOW_PLAIN },
	{ "object", "Object", VALUE_TEXT, SHOW_PLAIN },
	{ "caused_by_pid", "Caused by PID", VALUE_U64, SHOW_PLAIN },
	{ "caused_by_tid", "Caused by TID", VALUE_U64, SHOW_PLAIN },
	{ "caused_by_function", "Caused by", VALUE_TEXT, SHOW_PLAIN },
	{ "caused_by_file", "Caused by file", VALUE_TEXT, SHOW_PLAIN },
	{ "caused_by_line", "Caused by line", VALUE_U64, SHOW_PLAIN },
	{ "caused_by_ns", "Lost to this cause", VALUE_U64, SHOW_NS },
	{ "end", "Why the chain ends", VALUE_TEXT, SHOW_PLAIN },
};

static void fill_parts(const struct why *w, u32 depth, struct table *t)
{
	const struct chain_level *l = &w->chain.levels[depth];
	enum finding_kind kinds[FINDING_KINDS];
	char who[320], phrase[128];
	u32 n = order_parts(l, kinds);

	write_who(w, depth, who, sizeof(who));
	for (u32 i = 0; i < n; i++)
		table__add(t, V_U64(depth), V_TEXT(who),
			   V_TEXT(kinds[i] == FINDING_NONE ? NULL : finding_kind__key(kinds[i])),
			   V_TEXT(write_phrase(kinds[i], phrase, sizeof(phrase))), V_U64(l->parts[kinds[i]].ns),
			   V_DBL(table__percent(l->parts[kinds[i]].ns, l->ns)));
}

static void fill_level(const struct why *w, u32 depth, struct table *t)
{
	const struct chain_level *l = &w->chain.levels[depth];
	char who[320];

	table__add(t, V_U64(depth), V_U64_IF(l->thread.pid), V_U64_IF(l->thread.tid), V_U64(l->threads),
		   V_TEXT(write_who(w, depth, who, sizeof(who))), V_U64(l->ns), V_TEXT(finding_kind__key(l->kind)),
		   V_U64(l->parts[l->kind].ns), V_TEXT_IF(l->code.function), V_TEXT_IF(l->code.file),
		   V_U64_IF(l->code.line), V_TEXT(source_of(w, l)), V_TEXT_IF(l->code.native), V_U64(l->code_ns),
		   V_TEXT_IF(l->call), V_TEXT_IF(l->object), V_U64_IF(l->caused_by.pid), V_U64_IF(l->caused_by.tid),
		   V_TEXT_IF(l->caused_by_code.function), V_TEXT_IF(l->caused_by_code.file),
		   V_U64_IF(l->caused_by_code.line), V_U64_IF(l->caused_by_ns), V_TEXT(chain_end__key(l->end)));
}

/* Do the threads of this level wait for the same as those of the level above, and in the same code? */
static bool is_alike(const struct why *w, u32 depth)
{
	const struct chain_level *l = &w->chain.levels[depth], *above = l - 1;

	return depth && l->kind == above->kind && *l->code.function && l->thread.pid == above->thread.pid &&
	       !strcmp(l->code.function, above->code.function) && !strcmp(l->code.file, above->code.file);
}

/* Adds the sentences on a level, shifted by that many steps. Of levels alike only the first and the last get any. */
static u32 add_level(struct why *w, u32 depth, u32 shift, u32 *skipped)
{
	if (is_alike(w, depth) && depth + 1 < w->chain.n && is_alike(w, depth + 1)) {
		++*skipped;
		return shift;
	}
	if (*skipped)
		report_output__finding(w->out, "%*s%u further thread%s waited in the same way, each for the next one.",
				       2 * (int)shift, "", *skipped, text__s(*skipped));
	*skipped = 0;
	add_parts(w, depth, shift);
	if (w->chain.levels[depth].kind != FINDING_NONE) {
		add_place(w, depth, shift);
		add_by(w, depth, shift);
	}
	return shift + 1;
}

static void add_chain(struct why *w)
{
	struct table *parts = REPORT_TABLE(w->out, "parts", "How the time divides", part_columns);
	struct table *levels = REPORT_MACHINE_TABLE(w->out, "levels", "The chain", level_columns);
	u32 shift = 0, skipped = 0;

	for (u32 depth = 0; depth < w->chain.n; depth++) {
		shift = add_level(w, depth, shift, &skipped);
		fill_parts(w, depth, parts);
		fill_level(w, depth, levels);
	}
	add_end(w, (int)shift - 1);
	if (w->chain.left_out)
		report_output__note(w->out,
				    "There were too many waits to follow: waits of %.3f s in total were left out.",
				    (double)w->chain.left_out / 1e9);
}

#define DELETED " (deleted)"

/* Notes which processes of the chain run a file that is no longer at its path. */
static void add_deleted(struct why *w)
{
	const struct names *names = w->args->names;

	for (u32 i = 0, pid, before = 0; i < w->chain.n; i++, before = pid) {
		const struct task *t = names__task(names, w->chain.levels[i].thread.pid, 0);
		const char *exe = t ? names__string(names, t->exe) : "";

		pid = t ? t->pid : 0;
		if (pid != before && path__ends_with(exe, DELETED))
			report_output__note(w->out, "Process %u runs a file that was deleted or replaced since: %.*s.",
					    pid, (int)(strlen(exe) - strlen(DELETED)), exe);
	}
}

#define TASK_FINDINGS_MAX 3

/*
 * Adds what the asyncio tasks of the last process waited for: their thread was in the event loop, and looks idle. On a
 * busy machine it waits for a CPU, too.
 */
static void add_tasks(struct why *w, const struct findings *findings)
{
	const struct chain_level *last = &w->chain.levels[w->chain.n - 1];
	bool is_idle = last->end == CHAIN_IDLE || last->parts[FINDING_IDLE].ns > last->ns / 2;
	const struct finding *f;
	u32 n = 0;

	for (u32 i = 0; is_idle && (f = findings__ranked(findings, i)) != NULL; i++)
		if (f->tasks > 0 && f->pid == last->thread.pid && n++ < TASK_FINDINGS_MAX)
			report_output__finding(w->out, "%s", f->text);
}

static const struct column candidate_columns[] = {
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN }, { "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },    { "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "wall_ns", "Time", VALUE_U64, SHOW_NS },
};

static void add_candidates(struct why *w)
{
	static const char *const kinds[] = {
		[SUBJECT_NONE] = "",	       [SUBJECT_THREAD] = "thread",	[SUBJECT_PROCESS] = "process",
		[SUBJECT_THREADS] = "threads", [SUBJECT_FUNCTION] = "function",
	};
	struct table *t = REPORT_TABLE(w->out, "candidates", "What the name may mean", candidate_columns);
	const struct subject *s = &w->chain.subject;

	t->limit = 30;
	for (u32 i = 0; i < s->n_candidates; i++) {
		const struct subject_candidate *c = &s->candidates[i];

		table__add(t, V_TEXT(kinds[c->kind]), V_U64_IF(c->pid), V_U64_IF(c->tid), V_TEXT(c->name),
			   V_U64(c->ns));
	}
	if (s->is_cut)
		report_output__note(w->out, "More names match: the table lists only the first %u that were found.",
				    s->n_candidates);
}

static void add_nothing(struct why *w)
{
	const struct subject *s = &w->chain.subject;
	const char *name = w->args->subject;

	if (!name && !w->chain.subject.n)
		report__nothing(w->args, w->out, "No thread's time was recorded", "sched");
	else if (!s->n_candidates)
		report_output__finding(w->out,
				       "The trace has no process, thread or function '%s' that ran or waited; report "
				       "processes lists processes.",
				       name ? name : "");
	else if (s->is_exact)
		report_output__finding(w->out, "'%s' may mean %u things: name one by its number, or as it is listed.",
				       name, s->n_candidates);
	else
		report_output__finding(w->out, "Nothing is called '%s'; these %u names contain it.", name,
				       s->n_candidates);
	if (s->n_candidates)
		add_candidates(w);
}

static int run(const struct query *args, struct report_output *out)
{
	struct why w = { .args = args, .out = out };
	struct findings *findings = NULL;
	int err = findings__read(&findings, args, 0);

	if (!err)
		err = source_lines__load(&w.lines, args->trace);
	if (!err)
		err = chain__read(&w.chain, findings, args->subject);
	if (!err && w.chain.n) {
		add_chain(&w);
		add_tasks(&w, findings);
		add_deleted(&w);
	} else if (!err) {
		add_nothing(&w);
	}
	source_lines__free(&w.lines);
	chain__free(&w.chain);
	findings__free(findings);
	return err;
}

REPORT(why) = {
	.name = "why",
	.doc = "why a process, thread or function was slow: its waits, followed to the end of the chain of causes",
	.kinds = "sched_run,sched_off",
	.takes_subject = true,
	.run = run,
};
