// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Describes the trace that an output was made from. Every format of a report states what is missing in the trace; JSON
 * also states where and when it was recorded.
 */
#include "report/origin.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "output/print.h"
#include "output/text.h"

/* A damaged index is no sign of it: the trace has its end, and is reported as damaged. */
static bool is_cut_off(const struct trace_facts *f)
{
	return !f->end_reason || (!f->summary->has_index && !f->damaged);
}

static void add_trace(struct json_writer *w, const struct trace_facts *f)
{
	const struct trace_summary *s = f->summary;
	u64 realtime = trace_facts__realtime(f, f->start);
	char date[64];

	json_writer__object(w, "trace");
	json_writer__text(w, "file", f->file);
	json_writer__text(w, "hostname", f->head->hostname);
	json_writer__text(w, "machine_id", f->head->machine_id);
	json_writer__text(w, "boot_id", f->head->boot_id);
	json_writer__text(w, "kernel", f->head->kernel);
	json_writer__text(w, "arch", f->head->arch);
	json_writer__u64(w, "cpus", f->head->cpus);
	json_writer__text(w, "sonde_version", f->head->sonde_version);
	json_writer__text(w, "command", f->head->command);
	json_writer__text(w, "families", f->head->families);
	json_writer__text(w, "start_date", f->head->realtime ? text__date(date, sizeof(date), realtime) : NULL);
	json_writer__u64(w, "start_realtime_ns", realtime);
	json_writer__u64(w, "start_ns", f->start);
	json_writer__u64(w, "first_ns", s->first);
	json_writer__u64(w, "last_ns", s->last);
	json_writer__u64(w, "events", s->events);
	json_writer__bool(w, "cut_off", is_cut_off(f));
	if (s->being_recorded)
		json_writer__bool(w, "being_recorded", true);
	json_writer__bool(w, "damaged", f->damaged != 0);
	/* the part of the trace that the report covers */
	json_writer__u64(w, "from_ns", f->from ? f->from : f->live);
	json_writer__u64(w, "to_ns", f->to ? f->to : f->stop);
	json_writer__u64(w, "traced_ns", trace_facts__traced(f));
	if (f->n_unmeasured)
		json_writer__u64(w, "unmeasured_ns", trace_facts__unmeasured(f, f->live, f->stop));
	if (f->pids.n) {
		json_writer__list(w, "only_pids");
		for (u32 i = 0; i < f->pids.n; i++)
			json_writer__u64(w, NULL, f->pids.list[i]);
		json_writer__end(w);
	}
	if (f->tid)
		json_writer__u64(w, "only_tid", f->tid);
	json_writer__end(w);
}

static void add_losses(struct json_writer *w, const struct trace_facts *f)
{
	struct loss_times times = trace_facts__times(f);
	char text[256];

	json_writer__list(w, "losses");
	for (u32 i = 0; i < f->n_losses; i++) {
		const struct loss *l = &f->losses[i];

		json_writer__object(w, NULL);
		json_writer__text(w, "family", l->family_name);
		json_writer__text(w, "reason", loss__reason(l->reason));
		json_writer__u64(w, "count", l->count);
		json_writer__u64(w, "first_ns", l->first);
		json_writer__u64(w, "last_ns", l->last);
		json_writer__text(w, "path", l->path);
		json_writer__double(w, "share_percent", loss__percent(l));
		json_writer__text(w, "changes", loss__consequence(text, sizeof(text), l, &times));
		json_writer__end(w);
	}
	json_writer__end(w);
}

/* Adds the refused programs, if there are any. */
static void add_refused(struct json_writer *w, const struct trace_facts *f)
{
	if (!f->n_refused)
		return;
	json_writer__list(w, "refused_programs");
	for (u32 i = 0; i < f->n_refused; i++) {
		const struct refused *r = &f->refused[i];

		json_writer__object(w, NULL);
		json_writer__text(w, "family", r->family_name);
		json_writer__text(w, "program", r->program);
		json_writer__text(w, "why", r->why);
		json_writer__text(w, "lacks", r->lacks);
		json_writer__bool(w, "family_off", r->is_whole_family);
		json_writer__end(w);
	}
	json_writer__end(w);
}

/* Adds the recording's warnings, if there are any. */
static void add_warnings(struct json_writer *w, const struct trace_facts *f)
{
	if (!f->n_warnings)
		return;
	json_writer__list(w, "warnings");
	for (u32 i = 0; i < f->n_warnings; i++)
		json_writer__text(w, NULL, f->warnings[i]);
	json_writer__end(w);
}

static void add_members(struct json_writer *w, const void *arg)
{
	add_trace(w, arg);
	add_losses(w, arg);
	add_refused(w, arg);
	add_warnings(w, arg);
}

/* Prints a line: the coloured `head`, then a text that may be of a target, in words that fit. */
static void print_line(FILE *file, const struct output_options *options, const char *prefix, const char *color,
		       const char *head, const char *text)
{
	char *clean = text__clean(text, strlen(text));

	fprintf(file, "%s%s%s%s", prefix, print__color(options, color), head, print__color(options, COLOR_PLAIN));
	print__words(file, clean ? clean : "(no memory to print this)", strlen(prefix) + strlen(head), prefix,
		     PRINT_HANG, options->width ? options->width : SIZE_MAX);
	putc('\n', file);
	free(clean);
}

static void print_refused(FILE *file, const struct output_options *options, const struct refused *r, const char *prefix)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s: %s; the BPF program %s did not run: %s",
		 r->family_name ? r->family_name : "unknown family", r->lacks ? r->lacks : "",
		 r->program ? r->program : "", r->why ? r->why : "");
	print_line(file, options, prefix, COLOR_RED, "missing ", text);
}

/*
 * Does another line report this? That its whole family is missing, or an earlier program of the family that lacks the
 * same.
 */
static bool is_covered(const struct trace_facts *f, u32 index)
{
	const struct refused *r = &f->refused[index];

	for (u32 i = 0; r->family_name && i < f->n_refused; i++) {
		const struct refused *other = &f->refused[i];

		if (i == index || !other->family_name || strcmp(other->family_name, r->family_name) != 0)
			continue;
		if (other->is_whole_family && (i < index || !r->is_whole_family))
			return true;
		if (i < index && other->lacks && r->lacks && !strcmp(other->lacks, r->lacks))
			return true;
	}
	return false;
}

static void print_warnings(FILE *file, const struct output_options *options, const struct trace_facts *f,
			   const char *prefix)
{
	for (u32 i = 0; i < f->n_warnings && i < WARNINGS_SHOWN; i++)
		print_line(file, options, prefix, COLOR_PLAIN, "record warned: ", f->warnings[i] ? f->warnings[i] : "");
	if (f->n_warnings > WARNINGS_SHOWN)
		fprintf(file, "%srecord warned %u more time%s: `sonde report FILE losses` lists all\n", prefix,
			f->n_warnings - WARNINGS_SHOWN, text__s(f->n_warnings - WARNINGS_SHOWN));
}

/* Prints whether the trace as a file is whole. */
static void print_state(FILE *file, const struct output_options *options, const char *prefix,
			const struct trace_facts *f)
{
	if (f->summary->being_recorded)
		print_line(file, options, prefix, COLOR_BOLD, "The trace is still being recorded",
			   ": this output covers what was written so far.");
	else if (is_cut_off(f))
		print_line(
			file, options, prefix, COLOR_RED, "The trace was cut off",
			": the recording was killed, which loses its last second at most, or the file is truncated.");
	if (f->damaged)
		print_line(file, options, prefix, COLOR_RED, "The file is damaged",
			   ": some of its chunks could not be read (`sonde info --verify` names them).");
}

/* Prints what is missing in the trace. Each line begins with prefix, which is "# " in CSV. */
static void print_losses(FILE *file, const struct output_options *options, const char *prefix, const void *arg)
{
	const struct trace_facts *f = arg;
	struct loss_times times = trace_facts__times(f);
	char text[8192];
	bool outside;
	u32 i;

	print_state(file, options, prefix, f);
	for (i = 0; i < f->n_refused; i++)
		if (!is_covered(f, i))
			print_refused(file, options, &f->refused[i], prefix);
	print_warnings(file, options, f, prefix);
	if (!f->n_losses) {
		fprintf(file, "%s%s%s\n", prefix, f->n_refused || f->n_warnings ? "apart from that " : "",
			f->to || f->from > f->start ? "no losses recorded in this time" : "no losses recorded");
		return;
	}
	for (i = 0; i < f->n_losses; i++)
		if (*losses__line(text, sizeof(text), f->losses, f->n_losses, i, &times))
			print_line(file, options, prefix, COLOR_RED, "lost ", text);
	losses__outside_text(text, sizeof(text), f->losses, f->n_losses);
	outside = *text;
	if (outside)
		print_line(file, options, prefix, COLOR_PLAIN, "", text);
	losses__verdict(text, sizeof(text), f->losses, f->n_losses, &times);
	if (*text || !outside)
		print_line(file, options, prefix, COLOR_PLAIN, "", *text ? text : "no losses recorded");
}

struct report_origin trace_origin(const struct trace_facts *facts)
{
	return facts ? (struct report_origin){ .print = print_losses, .json = add_members, .arg = facts } :
		       (struct report_origin){ 0 };
}
