// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes of the summary: which families have events of them, their runtimes, and what they spent where. */
#include "report/overview/summary_processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/facts.h"
#include "output/text.h"
#include "report/overview/unexplained.h"
#include "util/array.h"
#include "util/path.h"
#include "util/saturate.h"

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
			{ "families", "Families", VALUE_TEXT, SHOW_PLAIN },                                         \
			{ "runtimes", "Runtimes", VALUE_TEXT, SHOW_PLAIN },                                         \
			{ "container", "Container", VALUE_TEXT, show_container },                                   \
			{ "pod", "Pod", VALUE_TEXT, SHOW_NEVER }, { "command", "Command", VALUE_TEXT, SHOW_NEVER }, \
	}

static const struct column process_columns[] = PROCESS_COLUMNS(SHOW_NEVER);
static const struct column contained_columns[] = PROCESS_COLUMNS(SHOW_PLAIN);

static struct summary_process *process_at(struct summary_processes *s, u32 pid, u64 time)
{
	struct summary_key key = { .task = names__process_at(s->args->names, pid, time), .pid = pid };

	return map__get(&s->processes, &key);
}

/* Returns the process of a row's pid. The reader separates processes that shared a pid, so the first row decides. */
static struct summary_process *process_of_row(struct summary_processes *s, const struct view *v,
					      const struct common_fields *f, u32 pid)
{
	u32 slot = pid % ARRAY_LEN(s->recent);

	if (s->recent[slot].pid != pid || !s->recent[slot].process) {
		s->recent[slot].pid = pid;
		s->recent[slot].process = process_at(s, pid, (u64)view__s64(v, f->time));
	}
	return s->recent[slot].process;
}

/* Returns the last process with this pid, to which sums over the whole time are attributed. */
static struct summary_process *process_of(struct summary_processes *s, u32 pid)
{
	struct summary_key key = { .task = names__task(s->args->names, pid, pid), .pid = pid };

	return map__get(&s->processes, &key);
}

static const struct summary_key *key_of(const struct summary_processes *s, u32 i)
{
	return map__key(&s->processes, i);
}

/* Is it a file of CPython, CUDA or NCCL, by the start of its name? */
static bool is_runtime(const char *file)
{
	return !strncmp(file, "libcudart", 9) || !strncmp(file, "libcuda.so", 10) || !strncmp(file, "libnccl", 7) ||
	       path__is_interpreter(file);
}

static void process__add_runtime(struct summary_process *p, const char *path)
{
	const char *file = path__file_name(path);
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
	/* These kinds are recorded by other families than their own. */
	bool describes = !strcmp(v.event->name, "syscall_file") || !strcmp(v.event->name, "syscall_peer") ||
			 !strcmp(v.event->name, "syscall_title");
	u32 family = EVENT_FAMILY(v.event->id);
	struct summary_processes *s = arg;
	struct summary_process *p;
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
static int read_kinds(struct summary_processes *s, const struct query *args, bool proc)
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

int summary_processes__read(struct summary_processes *s, const struct query *args)
{
	struct query all = *args;
	int err;

	*s = (struct summary_processes){ .args = args };
	map__init(&s->processes, sizeof(struct summary_key), sizeof(struct summary_process));
	map__init(&s->kinds, sizeof(u16), sizeof(u8));
	/* Existing processes and their mappings are recorded once, while probes are still being attached. */
	if (s->args->facts && !s->args->facts->from)
		all.from = 0;
	err = read_kinds(s, &all, true);
	return err ? err : read_kinds(s, s->args, false);
}

void summary_processes__free(struct summary_processes *s)
{
	MAPS_FREE(&s->processes, &s->kinds);
}

int summary_processes__add(struct summary_processes *s, const struct cuda_calls *cuda, const struct gil_report *gil,
			   const struct sched_report *sched)
{
	const struct cuda_group *call;
	const struct gil_thread *thread;
	struct summary_process *p;
	u32 i;

	for (i = 0; i < cuda->by_thread.n; i++) {
		call = map__value(&cuda->by_thread, i);
		p = process_of(s, ((const struct cuda_call_key *)map__key(&cuda->by_thread, i))->pid);
		if (!p)
			return -ENOMEM;
		p->cuda_calls += call->time.count;
		p->cuda_ns += call->time.total - call->inner_ns;
	}
	for (i = 0; i < gil->threads.n; i++) {
		thread = map__value(&gil->threads, i);
		p = process_of(s, ((const struct gil_thread_key *)map__key(&gil->threads, i))->gil.pid);
		if (!p)
			return -ENOMEM;
		p->gil_waits += gil_waits__count(&thread->waits);
		p->gil_ns += gil_waits__ns(&thread->waits);
	}
	for (i = 0; i < gil->interpreters.n; i++) {
		p = process_of(s, ((const struct gil_key *)map__key(&gil->interpreters, i))->pid);
		if (!p)
			return -ENOMEM;
		p->gil_busy += ((const struct gil_interpreter *)map__value(&gil->interpreters, i))->busy;
	}
	for (i = 0; i < sched->threads.n; i++) {
		p = process_of(s, ((const struct sched_key *)map__key(&sched->threads, i))->pid);
		if (!p)
			return -ENOMEM;
		p->cpu_ns += ((const struct sched_thread *)map__value(&sched->threads, i))->run_ns;
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
static bool is_interesting(const struct summary_processes *s, const struct summary_process *p)
{
	const struct schema_family *proc = schema__family(trace__schema(s->args->trace), "proc");

	return *p->runtimes || p->families & ~(proc && proc->id < 64 ? 1ull << proc->id : 0);
}

static bool has_containers(const struct summary_processes *s)
{
	const char *container, *pod;

	for (u32 i = 0; i < s->processes.n; i++) {
		names__container_of(s->args->names, key_of(s, i)->task, &container, &pod);
		if (*container)
			return true;
	}
	return false;
}

u32 summary_processes__table(struct summary_processes *s, struct report_output *out, u32 *shown)
{
	struct table *t = has_containers(s) ? REPORT_TABLE(out, "processes", "Processes", contained_columns) :
					      REPORT_TABLE(out, "processes", "Processes", process_columns);
	const struct query *args = s->args;
	const struct summary_process *p;
	const struct task *task;
	const char *command, *container, *pod;
	char families[128];
	u32 i, pid, uninteresting = 0;

	for (i = 0; i < s->processes.n; i++) {
		task = key_of(s, i)->task;
		/* an executed file is mapped a moment before the program has its id (names.h) */
		if (task)
			process__add_runtime(map__value(&s->processes, i), names__string(args->names, task->exe));
		uninteresting += !is_interesting(s, map__value(&s->processes, i));
	}
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
		table__add(t, V_U64(pid), V_TEXT(task ? NAMES_TITLE(args->names, task->id, 0) : NULL), V_U64(p->events),
			   p->cpu_ns ? V_U64(p->cpu_ns) : V_NONE, p->cuda_calls ? V_U64(p->cuda_calls) : V_NONE,
			   p->cuda_calls ? V_U64(p->cuda_ns) : V_NONE, p->gil_waits ? V_U64(p->gil_waits) : V_NONE,
			   p->gil_waits ? V_U64(p->gil_ns) : V_NONE,
			   task && task->start ? V_S64((s64)(task->start - args->start)) : V_NONE,
			   task && task->end ? V_S64((s64)(task->end - args->start)) : V_NONE, V_TEXT(families),
			   V_TEXT(*p->runtimes ? p->runtimes : NULL), V_TEXT(*container ? container : NULL),
			   V_TEXT(*pod ? pod : NULL), V_TEXT(*command ? command : NULL));
	}
	table__sort(t, "events");
	table__sort(t, "gil_wait_ns");
	table__sort(t, "cuda_ns");
	t->limit = 15;
	*shown = t->n_rows;
	return uninteresting;
}

int summary_processes__add_unexplained(const struct summary_processes *s, struct report_output *out)
{
	struct explained *list = calloc(s->processes.n + 1, sizeof(*list));
	u32 n = 0;

	if (!list)
		return -ENOMEM;
	for (u32 i = 0; i < s->processes.n; i++) {
		const struct summary_process *p = map__value(&s->processes, i);
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

void summary_processes__add_count(const struct summary_processes *s, struct report_output *out, u32 shown,
				  u32 uninteresting)
{
	const struct trace_facts *f = s->args->facts;
	char duration[TEXT_NUMBER];
	u64 ns = query__duration(s->args);

	text__ns(duration, sizeof(duration), ns);
	if (!shown && !ns)
		report_output__finding(out, "None of this time was traced: the trace has %s to %s s.",
				       TEXT_SECONDS(f->live, f->start, 3), TEXT_SECONDS(f->stop, f->start, 3));
	else if (!shown)
		report_output__finding(out, "Nothing was recorded in %s.", duration);
	else if (uninteresting)
		report_output__finding(out, "%u process%s traced for %s; %u other%s had nothing to trace.", shown,
				       shown == 1 ? " was" : "es were", duration, uninteresting,
				       text__s(uninteresting));
	else
		report_output__finding(out, "%u process%s traced for %s.", shown, shown == 1 ? " was" : "es were",
				       duration);
	REPORT_FIGURES(out, FIGURE("duration_ns", V_U64(query__duration(s->args))), FIGURE("processes", V_U64(shown)),
		       FIGURE("others", V_U64(uninteresting)));
}
