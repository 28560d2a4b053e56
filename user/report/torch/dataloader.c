// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Report dataloader: how long training waited for PyTorch's data loaders, what their workers did meanwhile, and what to
 * change.
 */
#include "findings/compute.h"
#include "findings/findings.h"
#include "findings/loaders.h"
#include "output/text.h"
#include "report/report.h"

/* A part of the training thread's time in the loader below which training is not starved */
#define STARVED_PERCENT 10
/* If workers were idle for this part of their time, the batches were ready: what took time was receiving them. */
#define READY_PERCENT 75
/* If workers waited for CPUs for this part of their time, more of them would not help. */
#define CPU_PERCENT 15
/* Loaders for which sentences are written */
#define SENTENCES_MAX 4

static const struct column loader_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_NEVER },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "workers", "Workers", VALUE_U64, SHOW_COUNT },
	{ "started", "Started meanwhile", VALUE_U64, SHOW_COUNT },
	{ "batches", "Batches", VALUE_U64, SHOW_COUNT },
	{ "loader_ns", "In the loader", VALUE_U64, SHOW_NS },
	{ "loader_percent", "of its time (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "bound", "Workers were held up by", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column worker_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Worker", VALUE_TEXT, SHOW_PLAIN },
	{ "trainer_pid", "Started by", VALUE_U64, SHOW_PLAIN },
	{ "wall_ns", "Time", VALUE_U64, SHOW_NS },
	{ "run_percent", "On CPU %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "disk_percent", "Disk %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "runnable_percent", "Runnable %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "peer_percent", "Other processes %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "other_percent", "Other waits %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "idle_percent", "Idle %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "pickle_percent", "Pickling %", VALUE_DOUBLE, SHOW_PERCENT },
};

/* What kept the workers from delivering more batches */
enum bound {
	BOUND_NONE,
	BOUND_RUN,
	BOUND_DISK,
	BOUND_CPU,
	BOUND_NET,
	BOUND_OTHER,
	BOUND_START,
	BOUND_PICKLE,
	BOUND_IDLE
};

static const char *const bounds[] = {
	[BOUND_RUN] = "computing",     [BOUND_DISK] = "the disk",
	[BOUND_CPU] = "too few CPUs",  [BOUND_NET] = "other processes",
	[BOUND_OTHER] = "other waits", [BOUND_START] = "being started",
	[BOUND_PICKLE] = "pickling",   [BOUND_IDLE] = "nothing: they were idle",
};

static double in_loader(const struct loader *l)
{
	return table__percent(l->wait_ns, l->wall_ns);
}

static double share_of(const struct loader *l, enum loader_part part)
{
	return table__percent(l->ns[part], l->workers_ns);
}

static bool is_starved(const struct loader *l)
{
	return in_loader(l) >= STARVED_PERCENT && (!l->n_workers || share_of(l, LOADER_IDLE) < READY_PERCENT);
}

/* Were workers replaced again and again? Each lived for less than a third of the time. */
static bool is_restarted(const struct loader *l, u64 duration)
{
	return l->n_started >= 4 && 3 * (l->workers_ns / l->n_workers) < duration;
}

static enum bound bound_of(const struct loader *l, u64 duration)
{
	static const enum bound by_part[LOADER_PARTS] = {
		[LOADER_RUN] = BOUND_RUN, [LOADER_DISK] = BOUND_DISK,	[LOADER_CPU] = BOUND_CPU,
		[LOADER_NET] = BOUND_NET, [LOADER_OTHER] = BOUND_OTHER, [LOADER_IDLE] = BOUND_IDLE,
	};
	u32 most = LOADER_RUN;

	if (!l->n_workers || !is_starved(l))
		return BOUND_NONE;
	if (is_restarted(l, duration))
		return BOUND_START;
	for (u32 part = 0; part < LOADER_PARTS; part++)
		if (l->ns[part] > l->ns[most])
			most = part;
	if (l->pickle_ns > l->ns[most] || (most == LOADER_OTHER && l->pickle_ns > l->ns[LOADER_RUN]))
		return BOUND_PICKLE;
	return by_part[most];
}

static const char *advice_of(const struct loader *l, enum bound bound)
{
	bool lacks_cpus = share_of(l, LOADER_CPU) >= CPU_PERCENT;

	if (l->is_own)
		return " `DataLoader(num_workers=N)` loads in other processes meanwhile.";
	switch (bound) {
	case BOUND_RUN:
		return lacks_cpus ?
			       " The CPUs are busy, so more workers would not help: make that code faster, or store its results." :
			       " More workers (`num_workers`) run it in parallel, if there are CPUs for them; else make that code faster, or store its results.";
	case BOUND_DISK:
		return " More workers (`num_workers`) read in parallel; fewer, larger files or a copy in memory need fewer reads.";
	case BOUND_CPU:
		return " There are more threads than CPUs: fewer workers, or fewer threads in each, would not be slower.";
	case BOUND_NET:
		return " More workers (`num_workers`) wait in parallel; a local copy needs no wait.";
	case BOUND_START:
		return " `persistent_workers=True` starts them once.";
	case BOUND_PICKLE:
		return " Tensors are passed in shared memory, other objects are pickled: return tensors.";
	case BOUND_IDLE:
		return " A larger `prefetch_factor` lets them work ahead.";
	default:
		return "";
	}
}

/* "99% on a CPU, most often in __getitem__ (train.py:27)" */
static void write_activity(const struct loader *l, const struct finding_input *in, u32 pid, struct text_buffer *text)
{
	static const char *const names[LOADER_PARTS] = {
		[LOADER_RUN] = "on a CPU",	   [LOADER_DISK] = "waiting for the disk",
		[LOADER_CPU] = "runnable",	   [LOADER_NET] = "waiting for other processes",
		[LOADER_OTHER] = "in other waits", [LOADER_IDLE] = "idle",
	};
	const char *before = "";
	struct finding_code code = { 0 };
	struct computed c;

	for (u32 part = 0; part < LOADER_PARTS; part++) {
		if (share_of(l, part) < 5)
			continue;
		text__add(text, "%s%.0f%% %s", before, share_of(l, part), names[part]);
		before = ", ";
		if (part != LOADER_RUN)
			continue;
		computed__of(&c, in, pid, 0);
		if (c.samples)
			finding_code__fill(&code, in->stacks, c.stack);
		finding_code__add(text, " (most often in ", &code);
		text__add(text, *code.function || *code.native ? ")" : "");
	}
	if (table__percent(l->pickle_ns, l->workers_ns) >= 5)
		text__add(text, "; another thread of each pickled for %.0f%% of the time",
			  table__percent(l->pickle_ns, l->workers_ns));
}

static void add_sentence(const struct loader *l, const struct loaders *all, const struct finding_input *in,
			 struct report_output *out)
{
	u64 duration = query__duration(in->q);
	enum bound bound = bound_of(l, duration);
	char who[64], buf[512] = "";
	struct text_buffer text = { .buf = buf, .size = sizeof(buf) };

	if (l->n_workers) {
		const struct loader_worker *busiest = map__value(&all->workers, l->busiest);

		text__add(&text, l->n_workers == 1 ? " Its worker was " : " Its %u workers were ", l->n_workers);
		write_activity(l, in, busiest->pid, &text);
		text__add(&text, ".");
	}
	report_output__finding(out, "%s %s: it was in its data loader for %.1f%% of %s%s.%s%s",
			       names__label(in->q->names, who, sizeof(who), l->pid, 0),
			       is_starved(l)		      ? "is starved of data" :
			       in_loader(l) < STARVED_PERCENT ? "has its data in time" :
								"takes long to receive batches that are ready",
			       in_loader(l), TEXT_NS(l->wall_ns), l->has_steps ? " of its steps" : "", buf,
			       is_starved(l) ? advice_of(l, bound) : "");
	REPORT_FIGURES(out, FIGURE("pid", V_U64(l->pid)), FIGURE("loader_percent", V_DBL(in_loader(l))),
		       FIGURE("workers", V_U64(l->n_workers)), FIGURE("starved", V_U64(is_starved(l))));
}

static void fill(const struct loaders *all, const struct finding_input *in, struct report_output *out)
{
	struct table *loaders = REPORT_TABLE(out, "loaders", "Training processes and their loaders", loader_columns);
	struct table *workers = REPORT_TABLE(out, "workers", "Workers: what their main threads did", worker_columns);
	bool lacks_steps = false;

	workers->limit = 20;
	MAP_EACH(const struct loader *l, &all->list) {
		table__add(loaders, V_U64(l->pid), l->tid ? V_U64(l->tid) : V_NONE,
			   V_TEXT(NAMES_TITLE(in->q->names, l->pid, 0)),
			   l->n_workers || l->is_own ? V_U64(l->n_workers) : V_NONE, V_U64(l->n_started),
			   l->batches ? V_U64(l->batches) : V_NONE, l->tid ? V_U64(l->wait_ns) : V_NONE,
			   l->tid ? V_DBL(in_loader(l)) : V_NONE, V_TEXT(bounds[bound_of(l, query__duration(in->q))]));
		lacks_steps |= !l->has_steps;
	}
	MAP_EACH(const struct loader_worker *w, &all->workers) {
		double part[LOADER_PARTS];

		for (u32 k = 0; k < LOADER_PARTS; k++)
			part[k] = table__percent(w->ns[k], w->wall_ns);
		table__add(workers, V_U64(w->pid), V_TEXT(NAMES_TITLE(in->q->names, w->pid, 0)), V_U64(w->trainer),
			   V_U64(w->wall_ns), V_DBL(part[LOADER_RUN]), V_DBL(part[LOADER_DISK]),
			   V_DBL(part[LOADER_CPU]), V_DBL(part[LOADER_NET]), V_DBL(part[LOADER_OTHER]),
			   V_DBL(part[LOADER_IDLE]), V_DBL(table__percent(w->pickle_ns, w->wall_ns)));
	}
	table__sort(loaders, "loader_ns");
	table__sort(workers, "wall_ns");
	if (loaders->n_rows && lacks_steps)
		report_output__note(
			out,
			"Time in the loader is from stacks: short waits are missing. `sonde record -t +torch` records each request.");
}

/* Sentences for those that were in their loader longest */
static void add_sentences(const struct loaders *all, const struct finding_input *in, struct report_output *out)
{
	const struct loader *said[SENTENCES_MAX] = { NULL };
	u32 n = 0;

	while (n < SENTENCES_MAX) {
		const struct loader *most = NULL;

		MAP_EACH(const struct loader *l, &all->list) {
			bool is_said = !l->tid;

			for (u32 k = 0; k < n; k++)
				is_said |= said[k] == l;
			if (!is_said && (!most || l->wait_ns > most->wait_ns))
				most = l;
		}
		if (!most)
			return;
		said[n++] = most;
		add_sentence(most, all, in, out);
	}
}

static int run(const struct query *args, struct report_output *out)
{
	struct findings *findings = NULL;
	struct loaders loaders = { 0 };
	int err = findings__read(&findings, args, 0);

	if (!err)
		err = loaders__read(&loaders, findings__input(findings));
	if (!err) {
		add_sentences(&loaders, findings__input(findings), out);
		fill(&loaders, findings__input(findings), out);
		if (!loaders.list.n)
			report__nothing(args, out, "No data loader of PyTorch was recorded", "sample");
	}
	loaders__free(&loaders);
	findings__free(findings);
	return err;
}

REPORT(dataloader) = {
	.name = "dataloader",
	.doc = "data loaders of PyTorch: how long training waited for them, and what their workers did",
	.kinds = "torch_range",
	.run = run,
};
