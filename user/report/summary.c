// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report summary, the default: what ran and where its time went, on one page. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/findings.h"
#include "model/facts.h"
#include "output/text.h"
#include "report/causes.h"
#include "report/cuda_api.h"
#include "report/gil.h"
#include "report/gpu.h"
#include "report/more.h"
#include "report/nccl_api.h"
#include "report/sched.h"
#include "report/unexplained.h"
#include "util/array.h"
#include "util/saturate.h"

#define RUNTIMES_LEN 160

struct process {
	u64 events;
	u64 families; /* bit of each family id below 64 that has events */
	u64 cuda_calls, cuda_ns, gil_waits, gil_ns, cpu_ns;
	double gil_busy; /* ns in which a thread waited for the GIL */
	char runtimes[RUNTIMES_LEN]; /* file names of what it mapped, comma-separated */
};

struct summary {
	const struct query *args;
	struct map processes; /* struct process_key -> struct process */
	/* Caches recent pids: events of a process follow each other, and there may be millions. */
	struct {
		u32 pid;
		struct process *process;
	} recent[64];
	struct cuda_api cuda;
	struct nccl_api nccl;
	struct gil_report gil;
	struct sched_report sched;
	struct gpu_report gpu;
	struct findings *findings;
	struct causes *causes;
	struct map kinds; /* keys: u16 id of each kind that occurs */
};

/* Column Container is shown only if a process runs in one. */
#define PROCESS_COLUMNS(show_container)                                                                             \
	{                                                                                                           \
		{ "pid", "PID", VALUE_U64, SHOW_PLAIN }, { "name", "Process", VALUE_TEXT, SHOW_PLAIN },             \
			{ "events", "Events", VALUE_U64, SHOW_COUNT }, { "cpu_ns", "On CPU", VALUE_U64, SHOW_NS },  \
			{ "cuda_calls", "CUDA calls", VALUE_U64, SHOW_COUNT },                                      \
			{ "cuda_ns", "In CUDA calls", VALUE_U64, SHOW_NS },                                         \
			{ "gil_waits", "GIL waits", VALUE_U64, SHOW_NEVER },                                        \
			{ "gil_wait_ns", "Waited for GIL", VALUE_U64, SHOW_NS },                                    \
			{ "start_ns", "Started (s)", VALUE_S64, SHOW_NEVER },                                       \
			{ "end_ns", "Ended (s)", VALUE_S64, SHOW_SECONDS },                                         \
			{ "families", "Seen by", VALUE_TEXT, SHOW_PLAIN },                                          \
			{ "runtimes", "Runtimes", VALUE_TEXT, SHOW_PLAIN },                                         \
			{ "container", "Container", VALUE_TEXT, show_container },                                   \
			{ "pod", "Pod", VALUE_TEXT, SHOW_NEVER }, { "command", "Command", VALUE_TEXT, SHOW_NEVER }, \
	}

static const struct column process_columns[] = PROCESS_COLUMNS(SHOW_NEVER);
static const struct column contained_columns[] = PROCESS_COLUMNS(SHOW_PLAIN);

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	   { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },	   { "run_ns", "On CPU", VALUE_U64, SHOW_NS },
	{ "runnable_ns", "Runnable", VALUE_U64, SHOW_NS }, { "switches", "Switches", VALUE_U64, SHOW_COUNT },
};

/* Pids are reused: processes with one pid are distinguished by time. */
struct process_key {
	const struct task *task; /* NULL: not known to names */
	u64 pid;
};

static struct process *process_at(struct summary *s, u32 pid, u64 time)
{
	struct process_key key = { .task = names__process_at(s->args->names, pid, time), .pid = pid };

	return map__get(&s->processes, &key);
}

/* Returns the process of a row's pid. The reader separates processes that shared a pid, so the first row decides. */
static struct process *process_of_row(struct summary *s, const struct view *v, const struct common_fields *f, u32 pid)
{
	u32 slot = pid % ARRAY_LEN(s->recent);

	if (s->recent[slot].pid != pid || !s->recent[slot].process) {
		s->recent[slot].pid = pid;
		s->recent[slot].process = process_at(s, pid, (u64)view__s64(v, f->time));
	}
	return s->recent[slot].process;
}

/* Returns the last process with this pid, to which sums over the whole time are attributed. */
static struct process *process_of(struct summary *s, u32 pid)
{
	struct process_key key = { .task = names__task(s->args->names, pid, pid), .pid = pid };

	return map__get(&s->processes, &key);
}

static const struct process_key *key_of(const struct summary *s, u32 i)
{
	return map__key(&s->processes, i);
}

/* Is it a file of CPython, CUDA or NCCL, by the start of its name? */
static bool is_runtime(const char *file)
{
	return !strncmp(file, "libcudart", 9) || !strncmp(file, "libcuda.so", 10) || !strncmp(file, "libnccl", 7) ||
	       !strncmp(file, "libpython", 9) || !strncmp(file, "python", 6);
}

static void process__add_runtime(struct process *p, const char *path)
{
	const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = strlen(p->runtimes);

	if (!is_runtime(file) || strstr(p->runtimes, file))
		return;
	snprintf(p->runtimes + len, sizeof(p->runtimes) - len, "%s%s", len ? ", " : "", file);
}

static int on_rows(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct common_fields f = common_fields__of(v.event);
	const struct schema_field *path = strcmp(v.event->name, "proc_map") ? NULL :
									      schema_event__field(v.event, "path");
	/* These two kinds are recorded by other families than their own. */
	bool describes = !strcmp(v.event->name, "syscall_file") || !strcmp(v.event->name, "syscall_peer");
	u32 family = EVENT_FAMILY(v.event->id);
	struct summary *s = arg;
	struct process *p;
	u32 pid;

	if (rows__count(rows) && !map__get(&s->kinds, &v.event->id))
		return -ENOMEM;
	for (; v.i < rows__count(rows); v.i++) {
		pid = (u32)view__s64(&v, f.pid);
		p = pid ? process_of_row(s, &v, &f, pid) : NULL;
		if (pid && !p)
			return -ENOMEM;
		if (!p)
			continue;
		p->events++;
		if (!describes)
			p->families |= FAMILY_BIT(family);
		if (path)
			process__add_runtime(p, names__string(s->args->names, (u32)view__s64(&v, path)));
	}
	return 0;
}

/* Reads the kinds of family proc, or those of all other families except metadata. */
static int read_kinds(struct summary *s, const struct query *args, bool proc)
{
	const struct schema *schema = trace__schema(s->args->trace);
	const struct schema_event **kinds = calloc(schema->n_events + 1, sizeof(*kinds));
	const struct schema_family *processes = schema__family(schema, "proc");
	u32 i, n = 0;
	int err = 0;

	if (!kinds)
		return -ENOMEM;
	for (i = 0; i < schema->n_events; i++) {
		u32 family = EVENT_FAMILY(schema->events[i].id);

		if (family && (processes && family == processes->id) == proc)
			kinds[n++] = &schema->events[i];
	}
	if (n)
		err = query__read(args, kinds, on_rows, s);
	free(kinds);
	return err;
}

static int read_events(struct summary *s)
{
	struct query all = *s->args;
	int err;

	/* Existing processes and their mappings are recorded once, while probes are still being attached. */
	if (s->args->facts && !s->args->facts->from)
		all.from = 0;
	err = read_kinds(s, &all, true);
	return err ? err : read_kinds(s, s->args, false);
}

static int add_up(struct summary *s)
{
	const struct cuda_group *call;
	const struct gil_thread *thread;
	struct process *p;
	u32 i;

	for (i = 0; i < s->cuda.by_thread.n; i++) {
		call = map__value(&s->cuda.by_thread, i);
		p = process_of(s, ((const struct cuda_call_key *)map__key(&s->cuda.by_thread, i))->pid);
		if (!p)
			return -ENOMEM;
		p->cuda_calls += call->time.count;
		p->cuda_ns += call->time.total - call->inner_ns;
	}
	for (i = 0; i < s->gil.threads.n; i++) {
		thread = map__value(&s->gil.threads, i);
		p = process_of(s, ((const struct gil_thread_key *)map__key(&s->gil.threads, i))->gil.pid);
		if (!p)
			return -ENOMEM;
		p->gil_waits += gil_waits__count(&thread->waits);
		p->gil_ns += gil_waits__ns(&thread->waits);
	}
	for (i = 0; i < s->gil.interpreters.n; i++) {
		p = process_of(s, ((const struct gil_key *)map__key(&s->gil.interpreters, i))->pid);
		if (!p)
			return -ENOMEM;
		p->gil_busy += ((const struct gil_interpreter *)map__value(&s->gil.interpreters, i))->busy;
	}
	for (i = 0; i < s->sched.threads.n; i++) {
		p = process_of(s, ((const struct sched_key *)map__key(&s->sched.threads, i))->pid);
		if (!p)
			return -ENOMEM;
		p->cpu_ns += ((const struct sched_thread *)map__value(&s->sched.threads, i))->run_ns;
	}
	return 0;
}

static void family_list(const struct schema *schema, u64 families, char *buf, size_t size)
{
	size_t len = 0;
	u32 i;

	buf[0] = '\0';
	for (i = 0; i < schema->n_families && len < size; i++) {
		if (schema->families[i].id < 64 && families & 1ull << schema->families[i].id)
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? "," : "",
						schema->families[i].name);
	}
}

/* Does the process have a runtime, or events of a family other than proc? */
static bool is_interesting(const struct summary *s, const struct process *p)
{
	const struct schema_family *proc = schema__family(trace__schema(s->args->trace), "proc");

	return *p->runtimes || p->families & ~(proc && proc->id < 64 ? 1ull << proc->id : 0);
}

static bool has_containers(const struct summary *s)
{
	const char *container, *pod;

	for (u32 i = 0; i < s->processes.n; i++) {
		names__container_of(s->args->names, key_of(s, i)->task, &container, &pod);
		if (*container)
			return true;
	}
	return false;
}

/* Returns how many processes were left out; if that would be all, none is. */
static u32 fill_processes(struct summary *s, struct table *t)
{
	const struct query *args = s->args;
	const struct process *p;
	const struct task *task;
	const char *command, *container, *pod;
	char title[64];
	char families[128];
	u32 i, pid, uninteresting = 0;

	for (i = 0; i < s->processes.n; i++)
		uninteresting += !is_interesting(s, map__value(&s->processes, i));
	if (uninteresting == s->processes.n)
		uninteresting = 0;
	for (i = 0; i < s->processes.n; i++) {
		pid = (u32)key_of(s, i)->pid;
		p = map__value(&s->processes, i);
		if (uninteresting && !is_interesting(s, p))
			continue;
		task = key_of(s, i)->task;
		command = task ? names__string(args->names, task->command) : "";
		names__container_of(args->names, task, &container, &pod);
		family_list(trace__schema(args->trace), p->families, families, sizeof(families));
		table__add(t, V_U64(pid),
			   V_TEXT(task ? names__title(args->names, title, sizeof(title), task->id, 0) : NULL),
			   V_U64(p->events), p->cpu_ns ? V_U64(p->cpu_ns) : V_NONE,
			   p->cuda_calls ? V_U64(p->cuda_calls) : V_NONE, p->cuda_calls ? V_U64(p->cuda_ns) : V_NONE,
			   p->gil_waits ? V_U64(p->gil_waits) : V_NONE, p->gil_waits ? V_U64(p->gil_ns) : V_NONE,
			   task && task->start ? V_S64((s64)(task->start - args->start)) : V_NONE,
			   task && task->end ? V_S64((s64)(task->end - args->start)) : V_NONE, V_TEXT(families),
			   V_TEXT(*p->runtimes ? p->runtimes : NULL), V_TEXT(*container ? container : NULL),
			   V_TEXT(*pod ? pod : NULL), V_TEXT(*command ? command : NULL));
	}
	table__sort(t, "events");
	table__sort(t, "gil_wait_ns");
	table__sort(t, "cuda_ns");
	return uninteresting;
}

static void fill_threads(struct summary *s, struct table *t)
{
	const struct sched_thread *thread;
	const struct sched_key *k;
	char title[64];
	u32 i;

	for (i = 0; i < s->sched.threads.n; i++) {
		thread = map__value(&s->sched.threads, i);
		k = map__key(&s->sched.threads, i);
		table__add(t, V_U64(k->pid), V_U64(k->tid),
			   V_TEXT(names__title(s->args->names, title, sizeof(title), k->pid, k->tid)),
			   V_U64(thread->run_ns), V_U64(thread->runnable_ns), V_U64(thread->switches));
	}
	table__sort(t, "run_ns");
}

static int read_all(struct summary *s)
{
	int err = read_events(s);

	if (!err)
		err = cuda_api__read(&s->cuda, s->args);
	if (!err)
		err = nccl_api__read(&s->nccl, s->args);
	if (!err)
		err = gil_report__read(&s->gil, s->args);
	if (!err)
		err = sched_report__read(&s->sched, s->args);
	if (!err)
		err = gpu_report__read(&s->gpu, s->args, 0);
	return err ? err : add_up(s);
}

#define REPEATED_MAX 32

struct repeated {
	const struct report *list[REPEATED_MAX]; /* by .summary, then by name */
	u32 n;
};

static void add_repeated(const struct report *report, void *arg)
{
	struct repeated *r = arg;
	u32 i;

	if (!report->summary || r->n == REPEATED_MAX)
		return;
	for (i = r->n++; i && r->list[i - 1]->summary > report->summary; i--)
		r->list[i] = r->list[i - 1];
	r->list[i] = report;
}

static int repeat_findings(const struct summary *s, const struct report *r, struct report_output *out)
{
	struct report_output own = { .name = r->name };
	bool any = false;
	int err = r->run(s->args, &own);

	for (const struct table *t = own.tables; t; t = t->next)
		any = any || t->n_rows;
	for (u32 i = 0; any && i < own.n_findings && i < 2; i++)
		report_output__take(out, &own.findings[i]);
	if (!err && report_output__failed(&own))
		err = -ENOMEM;
	report_output__free(&own);
	return err;
}

/* Adds the first findings of reports with .summary, if they have rows. */
static int add_other_findings(const struct summary *s, struct report_output *out)
{
	struct repeated r = {};
	int err = 0;

	report__each(add_repeated, &r);
	for (u32 i = 0; !err && i < r.n; i++)
		err = repeat_findings(s, r.list[i], out);
	return err;
}

/* Adds a finding on options that would have shown more. */
static int add_unexplained(const struct summary *s, struct report_output *out)
{
	struct explained *list = calloc(s->processes.n + 1, sizeof(*list));
	u32 n = 0;

	if (!list)
		return -ENOMEM;
	for (u32 i = 0; i < s->processes.n; i++) {
		const struct process *p = map__value(&s->processes, i);
		u64 gil = saturate__u64(p->gil_busy);

		if (*p->runtimes)
			list[n++] = (struct explained){ .pid = (u32)key_of(s, i)->pid,
							.cpu_ns = p->cpu_ns,
							.ns = gil > p->cuda_ns ? gil : p->cuda_ns };
	}
	unexplained__add_findings(s->args, list, n, out);
	free(list);
	return 0;
}

static int add_interval(const struct activity_interval *i, void *arg)
{
	return causes__add(arg, i);
}

/* Adds the findings of findings/ first, and the table of causes, in one pass over the activity. */
static int add_cause_findings(struct summary *s, struct report_output *out)
{
	struct findings_listener listener = { add_interval, NULL };
	int err = causes__new(&s->causes, s->args);

	listener.arg = s->causes;
	if (!err)
		err = findings__read(&s->findings, s->args, &listener);
	if (err)
		return err;
	findings__add_to(s->findings, s->args, out);
	return causes__report(s->causes, findings__activity(s->findings), s->args, out);
}

/* Adds the finding on how many processes were traced. It is the last one, as it does not explain slowness. */
static void add_processes_finding(const struct summary *s, struct report_output *out, u32 shown, u32 uninteresting)
{
	const struct trace_facts *f = s->args->facts;
	char duration[TEXT_NUMBER], from[TEXT_NUMBER], to[TEXT_NUMBER];
	u64 ns = query__duration(s->args);

	text__ns(duration, sizeof(duration), ns);
	if (!shown && !ns)
		report_output__finding(out, "None of this time was traced: the trace has %s to %s s.",
				       text__seconds(from, sizeof(from), f->live, f->start, 3),
				       text__seconds(to, sizeof(to), f->stop, f->start, 3));
	else if (!shown)
		report_output__finding(out, "%s in which nothing was recorded.", duration);
	else if (uninteresting)
		report_output__finding(out, "%s of %u process%s; %u other%s had nothing to trace.", duration, shown,
				       text__es(shown), uninteresting, text__s(uninteresting));
	else
		report_output__finding(out, "%s of %u process%s.", duration, shown, text__es(shown));
	REPORT_FIGURES(out, FIGURE("duration_ns", V_U64(query__duration(s->args))), FIGURE("processes", V_U64(shown)),
		       FIGURE("others", V_U64(uninteresting)));
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

static int fill(struct summary *s, struct report_output *out)
{
	struct table *processes, *calls, *threads;
	u32 uninteresting;
	int err;

	/* A GPU's idle time comes first. */
	gpu_report__add_findings(&s->gpu, out, 2);
	err = add_cause_findings(s, out);
	if (err)
		return err;
	processes = has_containers(s) ? REPORT_TABLE(out, "processes", "Processes", contained_columns) :
					REPORT_TABLE(out, "processes", "Processes", process_columns);
	processes->limit = 15;
	uninteresting = fill_processes(s, processes);
	add_gil_findings(s, out);
	calls = cuda_api__table(&s->cuda, out, "cuda_calls");
	calls->limit = 10;
	cuda_api__add_findings(&s->cuda, out, calls);
	nccl_api__add_findings(&s->nccl, out);
	err = add_other_findings(s, out);
	if (!err)
		err = add_unexplained(s, out);
	add_processes_finding(s, out, processes->n_rows, uninteresting);
	threads = REPORT_TABLE(out, "threads", "CPU time by thread", thread_columns);
	threads->limit = 10;
	fill_threads(s, threads);
	more__add_notes(s->args, &s->kinds, out);
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct summary s = { .args = args };
	int err;

	map__init(&s.processes, sizeof(struct process_key), sizeof(struct process));
	map__init(&s.kinds, sizeof(u16), sizeof(u8));
	err = read_all(&s);
	if (!err)
		err = fill(&s, out);
	causes__free(s.causes);
	findings__free(s.findings);
	cuda_api__free(&s.cuda);
	nccl_api__free(&s.nccl);
	gil_report__free(&s.gil);
	sched_report__free(&s.sched);
	gpu_report__free(&s.gpu);
	map__free(&s.processes);
	map__free(&s.kinds);
	return err;
}

REPORT(summary) = {
	.name = "summary",
	.doc = "what ran, and what it waited for, on one page",
	.run = run,
};
