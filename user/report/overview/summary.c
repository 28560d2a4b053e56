// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report summary, the default: what ran and where its time went, on one page. */
#include "findings/findings.h"
#include "report/causes.h"
#include "report/gpu/cuda_api.h"
#include "report/overview/more.h"
#include "report/overview/repeated.h"
#include "report/torch/steps.h"
#include "report/overview/summary_processes.h"

struct summary {
	const struct query *args;
	struct summary_processes processes;
	struct gil_report gil;
	struct sched_report sched;
	struct findings *findings;
};

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	   { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },	   { "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS }, { "switches", "Switches", VALUE_U64, SHOW_COUNT },
};

static void fill_threads(struct summary *s, struct table *t)
{
	const struct sched_thread *thread;
	const struct sched_key *k;
	u32 i;

	for (i = 0; i < s->sched.threads.n; i++) {
		thread = map__value(&s->sched.threads, i);
		k = map__key(&s->sched.threads, i);
		table__add(t, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(s->args->names, k->pid, k->tid)),
			   V_U64(thread->run_ns), V_U64(thread->runnable_ns), V_U64(thread->switches));
	}
	table__sort(t, "run_ns");
}

/* Adds the findings of report gil, unless findings/ has one on the GIL already. */
static void add_gil_findings(const struct summary *s, struct report_output *out)
{
	const struct finding *f;
	bool matters;

	for (u32 i = 0; (f = findings__ranked(s->findings, i)) != NULL; i++)
		if (f->kind == FINDING_GIL)
			return;
	matters = gil_report__matters(&s->gil, query__duration(s->args));
	if (matters)
		gil_blame__add_findings(&s->gil, out);
	gil_report__add_findings(&s->gil, out, query__duration(s->args), matters ? 3 : 0);
}

static int read_all(struct summary *s)
{
	int err = summary_processes__read(&s->processes, s->args);

	if (!err)
		err = gil_report__read(&s->gil, s->args);
	if (!err)
		err = sched_report__read(&s->sched, s->args);
	if (!err)
		err = findings__read(&s->findings, s->args, 0);
	return err ? err :
		     summary_processes__add(&s->processes, findings__input(s->findings)->cuda, &s->gil, &s->sched);
}

static int fill(struct summary *s, struct report_output *out)
{
	const struct finding_input *in = findings__input(s->findings);
	const struct cuda_calls *cuda = in->cuda;
	struct table *calls, *threads;
	u32 shown, uninteresting;
	int err;

	findings__add_to(s->findings, s->args, out);
	err = causes__report(s->findings, out);
	if (err)
		return err;
	uninteresting = summary_processes__table(&s->processes, out, &shown);
	add_gil_findings(s, out);
	calls = cuda_api__table(cuda, out, "cuda_calls");
	calls->limit = 10;
	cuda_api__add_notes(cuda, out);
	if (in->torch)
		steps__add_findings(in->torch, s->args, out, 2);
	err = repeated__add_findings(s->args, out);
	if (!err)
		err = summary_processes__add_unexplained(&s->processes, out);
	summary_processes__add_count(&s->processes, out, shown, uninteresting);
	threads = REPORT_TABLE(out, "threads", "CPU time by thread", thread_columns);
	threads->limit = 10;
	fill_threads(s, threads);
	more__add_notes(s->args, &s->processes.kinds, in->stacks, out);
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct summary s = { .args = args };
	int err = read_all(&s);

	if (!err)
		err = fill(&s, out);
	findings__free(s.findings);
	gil_report__free(&s.gil);
	sched_report__free(&s.sched);
	summary_processes__free(&s.processes);
	return err;
}

REPORT(summary) = {
	.name = "summary",
	.doc = "what ran, and what it waited for, on one page",
	.run = run,
};
