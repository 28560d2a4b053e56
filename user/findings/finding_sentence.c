// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sentences of findings that are not about what threads waited for: GPUs, calls of a library, connections. */
#include <string.h>

#include "findings/finding.h"
#include "output/table.h"
#include "output/text.h"

static const char *device(const struct finding *f, const struct query *q, char *buf, size_t size)
{
	struct text_buffer s = { .buf = buf, .size = size };
	char label[64];

	text__add(&s, "GPU %u of %s", f->device, names__label(q->names, label, sizeof(label), f->pid, 0));
	return buf;
}

static void write_gpu_idle(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char who[96];

	text__add(s, "%s was busy %.1f%% of %s", device(f, q, who, sizeof(who)),
		  table__percent(f->wall_ns - f->lost_ns, f->wall_ns), TEXT_NS(f->wall_ns));
	if (*f->counterpart.activity)
		text__add(s, "." CLAUSE "In %.0f%% of its idle time the launching thread %s", f->counterpart.percent,
			  f->counterpart.activity);
	finding_code__add(s, ", mostly in ", &f->code);
	if (*f->detail)
		text__add(s, ";" CLAUSE "%s", f->detail);
}

static void write_gpu_ended(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char who[96];

	text__add(s, "%s %s in the last %s", device(f, q, who, sizeof(who)), f->times ? "ended no work" : "had no work",
		  TEXT_NS(f->lost_ns));
	if (f->times)
		text__add(s, ", as %s launch%s had not ended, the first by %s", TEXT_COUNT(f->times),
			  text__es(f->times), f->call);
	if (*f->counterpart.activity)
		text__add(s, ":" CLAUSE "for %.0f%% of that the thread that launched last %s", f->counterpart.percent,
			  f->counterpart.activity);
}

static void write_gpu_kernel(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	(void)q;
	text__add(s, "%.0f%% of all kernels' time was in %s, which ran %s time%s, %s each",
		  table__percent(f->lost_ns, f->wall_ns), f->object, TEXT_COUNT(f->times), text__s(f->times),
		  TEXT_NS((f->lost_ns + f->times / 2) / f->times));
}

/* Of a GPU as a whole, which is of no process: the module has written it. */
static void write_gpu_metrics(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	(void)q;
	text__add(s, "%s", f->detail);
}

static void write_copies(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64];

	text__add(s, "%s spent %.0f%% of %s", names__label(q->names, label, sizeof(label), f->pid, f->tid),
		  table__percent(f->lost_ns, f->wall_ns), TEXT_NS(f->wall_ns));
	finding_code__add(s, " in ", &f->code);
	text__add(s, " with %s small copies, %s", TEXT_COUNT(f->times), f->detail);
}

static void write_launches(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64];

	text__add(s, "%s launched %s kernels a second", names__label(q->names, label, sizeof(label), f->pid, 0),
		  TEXT_COUNT((u64)((double)f->times * 1e9 / (double)query__duration(q))));
	if (*f->detail)
		text__add(s, ", %s", f->detail);
	finding_code__add(s, *f->detail ? ", others mostly in " : " in ", &f->code);
	text__add(s, ", and hardly did anything else:" CLAUSE "each takes %s of CPU time, %s of that in %s",
		  TEXT_NS(f->lost_ns / f->times), TEXT_NS(f->call_ns / f->call_times), f->call);
}

static void write_calls(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	(void)q;
	text__add(s, "%s %s call%s", TEXT_COUNT(f->times), f->calls->library, text__s(f->times));
	if (f->lost_ns)
		text__add(s, " took %s of their threads' time;" CLAUSE "%.1f%% of that in %s", TEXT_NS(f->lost_ns),
			  table__percent(f->call_ns, f->lost_ns), f->call);
	else
		text__add(s, " took an unknown time");
}

static void write_stuck(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64];

	text__add(s,
		  "%s %s call%s had not returned at the end of the trace;" CLAUSE
		  "the longest was %s of %s,%s%s%s for %s",
		  TEXT_COUNT(f->times), f->calls->library, text__s(f->times), f->call,
		  names__label(q->names, label, sizeof(label), f->pid, f->tid), *f->object ? " " : "", f->object,
		  *f->object ? "," : "", TEXT_NS(f->lost_ns));
}

static void write_errors(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64], count[TEXT_NUMBER];
	const char *most = f->times == 1 ? ":" : ";" CLAUSE "most often";

	names__label(q->names, label, sizeof(label), f->pid, f->tid);
	text__count(count, sizeof(count), f->times);
	if (!strcmp(f->call, "connect"))
		text__add(s, "%s connect%s failed%s to %s in %s", count, text__s(f->times), most, f->object, label);
	else
		text__add(s, "%s %s call%s failed%s %s with %s in %s", count, f->calls->library, text__s(f->times),
			  most, f->call, f->object, label);
}

static void write_resent(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64];

	text__add(s, "%s TCP segment%s retransmitted%s between %s and %s", TEXT_COUNT(f->times),
		  f->times == 1 ? " was" : "s were", f->times == 1 ? "," : ", most of them",
		  names__label(q->names, label, sizeof(label), f->pid, 0), f->object);
}

static void write_faults(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64];

	text__add(s, "%s had %s page faults in %s", names__label(q->names, label, sizeof(label), f->pid, 0),
		  TEXT_COUNT(f->times), TEXT_NS(query__duration(q)));
	if (*f->detail)
		text__add(s, ", %s", f->detail);
}

static void write_growth(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[64];

	text__add(s, "%s: %s", names__label(q->names, label, sizeof(label), f->pid, 0), f->detail);
	finding_code__add(s, ", called in ", &f->code);
}

static void write_unrecorded(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	(void)q;
	text__add(s, "In %.0f%% of %s %s", table__percent(f->lost_ns, f->wall_ns), f->object, f->detail);
}

static void write_straggler(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	(void)q;
	text__add(s, "%s makes ", f->object);
	if (f->threads > 1)
		text__add(s, "the %u other ranks", f->threads);
	else
		text__add(s, "the other rank");
	text__add(s, " wait %.0f%% of the time in %s: %s", table__percent(f->lost_ns, f->wall_ns), f->call, f->detail);
}

bool finding__write_sentence(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	static void (*const writers[FINDING_KINDS])(struct text_buffer *, const struct finding *,
						    const struct query *) = {
		[FINDING_GPU_IDLE] = write_gpu_idle,
		[FINDING_GPU_ENDED] = write_gpu_ended,
		[FINDING_GPU_KERNEL] = write_gpu_kernel,
		[FINDING_COPIES] = write_copies,
		[FINDING_LAUNCHES] = write_launches,
		[FINDING_CALLS] = write_calls,
		[FINDING_STUCK] = write_stuck,
		[FINDING_ERRORS] = write_errors,
		[FINDING_RESENT] = write_resent,
		[FINDING_FAULTS] = write_faults,
		[FINDING_GROWTH] = write_growth,
		[FINDING_UNRECORDED] = write_unrecorded,
		[FINDING_STRAGGLER] = write_straggler,
		[FINDING_GPU_CLOCK] = write_gpu_metrics,
		[FINDING_GPU_SHARED] = write_gpu_metrics,
		[FINDING_GPU_ERRORS] = write_gpu_metrics,
	};

	if (!writers[f->kind])
		return false;
	writers[f->kind](s, f, q);
	return true;
}
