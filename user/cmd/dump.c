// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde dump` prints the current stacks of all threads of Python processes. */
#include "cmd/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/dump_tasks.h"
#include "cmd/pids.h"
#include "cmd/scope.h"
#include "kernel/embedded.h"
#include "model/syscalls.h"
#include "output/print.h"
#include "output/table.h"
#include "output/text.h"
#include "process/mounts.h"
#include "python/snapshot.h"
#include "sandbox/bounded.h"
#include "sandbox/memory_limit.h"
#include "sandbox/privileges.h"

static const char help[] =
	"Usage: sonde dump PID.. [--format table|csv|json] [--scope user|all] [--remote-files]\n"
	"\n"
	"Prints what all threads of Python processes do now: their Python stacks, which thread holds the\n"
	"GIL, which ones wait for it, and in which system call the others sleep, and for how long. The\n"
	"processes are neither stopped nor changed: their memory is read while they run. A stack is read until\n"
	"two readings agree; if none do, because the thread runs too fast, the dump says so instead of guessing.\n"
	"For asyncio it also prints the tasks: each one's name, its coroutines, and below it the tasks that it\n"
	"awaits, behind an arrow. Tasks with equal coroutines are printed together.\n"
	"\n"
	"Supports CPython 3.8 and later, in containers too (PID in this machine's numbering). Needs root, or\n"
	"the right to trace the process (its user, where kernel.yama.ptrace_scope is 0).\n"
	"\n"
	"  -p, --pid PIDS      the same as PID..\n"
	"      --format F      table (for people, the default), csv or json\n" SCOPE_HELP
	"  -h, --help          this text\n"
	"\n"
	"Exit status: 0 done, 1 no process could be read, 2 wrong usage, 3 some could not.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde dump 4711\n"
	"  sudo sonde dump $(pgrep -f gunicorn)\n"
	"  sonde dump 4711 --format json | jq '.tables.threads[] | select(.gil == \"holds\")'\n";

struct dump {
	struct output_options options;
	struct snapshot snapshots[PIDS_MAX];
	struct tasks *tasks[PIDS_MAX]; /* NULL: no asyncio, or no memory */
	bool ok[PIDS_MAX];
	u32 n;
	struct scope scope;
	struct schema *schema; /* for the names of system calls */
	const struct schema_field *nr;
};

static const struct column process_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	  { "program", "Program", VALUE_TEXT, SHOW_PLAIN },
	{ "version", "CPython", VALUE_TEXT, SHOW_PLAIN }, { "interpreters", "Interpreters", VALUE_U64, SHOW_COUNT },
	{ "threads", "Threads", VALUE_U64, SHOW_COUNT },
};

static const struct column interpreter_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	 { "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "gil", "GIL", VALUE_U64, SHOW_HEX },		 { "holder_tid", "Held by", VALUE_U64, SHOW_PLAIN },
	{ "waiters", "Waiters", VALUE_U64, SHOW_COUNT },
};

static const struct column thread_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Thread", VALUE_TEXT, SHOW_PLAIN },
	{ "python_name", "Python's name", VALUE_TEXT, SHOW_PLAIN },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "state", "State", VALUE_TEXT, SHOW_PLAIN },
	{ "syscall", "System call", VALUE_TEXT, SHOW_PLAIN },
	{ "sleep_ns", "Asleep", VALUE_U64, SHOW_NS },
	{ "gil", "GIL", VALUE_TEXT, SHOW_PLAIN },
	{ "stack", "Stack", VALUE_TEXT, SHOW_PLAIN },
	{ "frames", "Frames", VALUE_U64, SHOW_COUNT },
};

static const struct column frame_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "interpreter", "Interpreter", VALUE_U64, SHOW_PLAIN },
	{ "depth", "Depth", VALUE_U64, SHOW_PLAIN },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_U64, SHOW_PLAIN },
};

static const char *state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "asleep";
	case 'D':
		return "in the kernel";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'F':
		return "frozen";
	case 'Z':
	case 'X':
		return "ended";
	}
	return "?";
}

static const char *call_name(const struct dump *d, const struct snapshot_task *t)
{
	bool own = t->in_syscall && !syscalls__is_of_probe(d->nr, (s64)t->syscall);

	return own ? syscalls__known_name(d->nr, (s64)t->syscall) : NULL;
}

static const char *gil_text(const struct snapshot_thread *t)
{
	return t->holds ? "holds" : t->waits ? "waits" : NULL;
}

static const char *stack_text(const struct snapshot_thread *t)
{
	return t->torn ? "torn" : t->cut ? "cut" : t->state ? "whole" : NULL;
}

static char *version_of(const struct snapshot *l, char *buf, size_t size)
{
	size_t n = 0;

	for (u32 i = 0; i < l->n_runtimes; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%u.%u", i ? " and " : "",
				      (u32)l->runtimes[i].layout.version >> 8,
				      (u32)l->runtimes[i].layout.version & 0xff);
	return buf;
}

static u64 number_of(const struct snapshot *l, const struct snapshot_thread *t)
{
	return l->interpreters[t->interpreter].number;
}

static const struct snapshot_thread *holder_of(const struct snapshot *l, u32 interpreter)
{
	for (u32 i = 0; i < l->n_threads; i++)
		if (l->threads[i].holds && l->threads[i].interpreter == interpreter)
			return &l->threads[i];
	return NULL;
}

static u32 waiters_of(const struct snapshot *l, u32 interpreter)
{
	u32 n = 0;

	for (u32 i = 0; i < l->n_threads; i++)
		n += l->threads[i].waits && l->threads[i].interpreter == interpreter;
	return n;
}

static void fill_threads(const struct dump *d, const struct snapshot *l, struct table *threads, struct table *frames)
{
	for (u32 i = 0; i < l->n_threads; i++) {
		const struct snapshot_thread *t = &l->threads[i];

		table__add(threads, V_U64(l->pid), V_U64(t->task.tid), V_TEXT(t->task.comm), V_TEXT(t->name),
			   t->state ? V_U64(number_of(l, t)) : V_NONE, V_TEXT(state_name(t->task.state)),
			   V_TEXT(call_name(d, &t->task)),
			   t->task.asleep_ns >= 0 ? V_U64((u64)t->task.asleep_ns) : V_NONE, V_TEXT(gil_text(t)),
			   V_TEXT(stack_text(t)), V_U64(t->n_frames));
		for (u32 k = 0; k < t->n_frames; k++)
			table__add(frames, V_U64(l->pid), V_U64(t->task.tid), V_U64(number_of(l, t)), V_U64(k),
				   V_TEXT(t->frames[k].name), V_TEXT(t->frames[k].file),
				   t->frames[k].line ? V_U64(t->frames[k].line) : V_NONE);
	}
}

static int print_tables(const struct dump *d)
{
	struct report_output out = { .name = "dump" };
	struct table *processes, *interpreters, *threads, *frames;
	struct dump_tasks tasks;
	char version[32];
	int status;

	processes = REPORT_TABLE(&out, "processes", "Processes", process_columns);
	interpreters = REPORT_TABLE(&out, "interpreters", "Interpreters", interpreter_columns);
	threads = REPORT_TABLE(&out, "threads", "Threads", thread_columns);
	frames = REPORT_TABLE(&out, "frames", "Frames, the innermost first", frame_columns);
	dump_tasks__tables(&tasks, &out);
	for (u32 i = 0; i < d->n; i++) {
		const struct snapshot *l = &d->snapshots[i];

		if (!d->ok[i])
			continue;
		table__add(processes, V_U64(l->pid), V_TEXT(l->exe), V_TEXT(version_of(l, version, sizeof(version))),
			   V_U64(l->n_interpreters), V_U64(l->n_tasks));
		for (u32 k = 0; k < l->n_interpreters; k++) {
			const struct snapshot_thread *holder = holder_of(l, k);

			table__add(interpreters, V_U64(l->pid), V_U64(l->interpreters[k].number),
				   l->interpreters[k].gil ? V_U64(l->interpreters[k].gil) : V_NONE,
				   holder ? V_U64(holder->task.tid) : V_NONE, V_U64(waiters_of(l, k)));
		}
		fill_threads(d, l, threads, frames);
		if (d->tasks[i])
			dump_tasks__fill(&tasks, d->tasks[i], l->pid);
	}
	status = cmd__print(&out, &d->options);
	report_output__free(&out);
	return status;
}

void dump__print_frame(const struct snapshot_frame *f, u32 indent)
{
	printf("%*s", (int)indent, "");
	print__clean(stdout, f->name);
	fputs(" (", stdout);
	print__clean(stdout, f->file);
	if (f->line)
		printf(":%u", f->line);
	puts(")");
}

static void print_title(const struct snapshot_thread *t)
{
	printf("%u ", t->task.tid);
	print__clean(stdout, t->name ? t->name : t->task.comm);
}

static void print_thread(const struct dump *d, const struct snapshot *l, const struct snapshot_thread *t)
{
	const char *call = call_name(d, &t->task);

	puts("");
	print_title(t);
	fputs(": ", stdout);
	if (t->waits)
		printf("waits for the GIL");
	else
		printf("%s%s%s", state_name(t->task.state), call ? " in " : "", call ? call : "");
	/* Each timed wait for the GIL is a sleep of its own, so only the last one's start is visible. */
	if (t->task.asleep_ns >= 0)
		printf(t->waits ? " (in this timed wait for %s)" : " for %s", TEXT_NS((u64)t->task.asleep_ns));
	printf("%s%s", t->holds ? ", holds the GIL" : "", t->state ? "" : "; not Python's");
	if (t->state && l->n_interpreters > 1)
		printf("; interpreter %llu", number_of(l, t));
	puts("");
	if (t->torn)
		puts("    (its stack changed at each reading: it runs)");
	for (u32 i = 0; i < t->n_frames; i++)
		dump__print_frame(&t->frames[i], 4);
	if (t->cut)
		puts("    (and more)");
}

/* The GIL's holder comes first, then its waiters, other Python threads, other threads. */
static u32 rank_of(const struct snapshot_thread *t)
{
	return t->holds ? 0 : t->waits ? 1 : t->state ? 2 : 3;
}

/* Are both threads in the same call, at the same place of the same functions? */
static bool is_equal(const struct snapshot_thread *a, const struct snapshot_thread *b)
{
	if (rank_of(a) != rank_of(b) || a->interpreter != b->interpreter || a->torn || b->torn || a->cut || b->cut ||
	    a->n_frames != b->n_frames || a->task.state != b->task.state || a->task.in_syscall != b->task.in_syscall ||
	    (a->task.in_syscall && a->task.syscall != b->task.syscall))
		return false;
	for (u32 i = 0; i < a->n_frames; i++)
		if (a->frames[i].line != b->frames[i].line || strcmp(a->frames[i].name, b->frames[i].name) ||
		    strcmp(a->frames[i].file, b->frames[i].file))
			return false;
	return true;
}

#define LISTED_MAX 12

/* Names the later threads that are equal to this one, and sets their `printed`. */
static void print_equal(const struct snapshot *l, u32 k, bool *printed)
{
	u32 n = 0;

	for (u32 i = k + 1; i < l->n_threads; i++) {
		const struct snapshot_thread *t = &l->threads[i];

		if (printed[i] || !is_equal(&l->threads[k], t))
			continue;
		printed[i] = true;
		if (n++ < LISTED_MAX) {
			fputs(n == 1 ? "    the same: " : ", ", stdout);
			print_title(t);
		}
	}
	if (n > LISTED_MAX)
		printf(" and %u more", n - LISTED_MAX);
	if (n)
		puts("");
}

/* Prints for people: a heading, then the GIL's holder, its waiters, other Python threads, other threads. */
static int print_people(const struct dump *d)
{
	char version[32];
	bool first = true, *printed;

	for (u32 i = 0; i < d->n; i++) {
		const struct snapshot *l = &d->snapshots[i];

		if (!d->ok[i])
			continue;
		printf("%sProcess %u: ", first ? "" : "\n\n", l->pid);
		print__clean(stdout, l->exe);
		printf(", CPython %s, %u thread%s", version_of(l, version, sizeof(version)), l->n_tasks,
		       text__s(l->n_tasks));
		if (*l->frozen) {
			fputs("; frozen with its cgroup ", stdout);
			print__clean(stdout, l->frozen);
		}
		first = false;
		for (u32 k = 0; k < l->n_interpreters; k++) {
			const struct snapshot_thread *holder = holder_of(l, k);
			u32 waiters = waiters_of(l, k);

			if (l->n_interpreters > 1)
				printf("\n  interpreter %llu", l->interpreters[k].number);
			if (holder)
				printf("; the GIL is held by %u", holder->task.tid);
			else
				printf("; %s", l->interpreters[k].gil	  ? "no thread holds the GIL" :
					       l->layout.is_free_threaded ? "free-threaded: it uses no GIL by default" :
									    "its GIL is not known");
			if (waiters)
				printf(", %u wait%s for it", waiters, waiters == 1 ? "s" : "");
		}
		puts("");
		printed = calloc(l->n_threads + 1, sizeof(*printed));
		if (!printed)
			return EXIT_FAILED;
		for (u32 rank = 0; rank < 4; rank++)
			for (u32 k = 0; k < l->n_threads; k++) {
				if (printed[k] || rank != rank_of(&l->threads[k]))
					continue;
				print_thread(d, l, &l->threads[k]);
				print_equal(l, k, printed);
			}
		free(printed);
		if (d->tasks[i])
			dump_tasks__print(d->tasks[i]);
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
}

static int parse(struct dump *d, int argc, char **argv)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'F' },
		{ "pid", required_argument, NULL, 'p' },
		SCOPE_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct pid_list pids = {};
	int c, taken;

	opterr = 0;
	optind = 0;
	d->options.rows = -1;
	while ((c = getopt_long(argc, argv, ":p:h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (c == ':')
			return cmd__usage("dump", "option '%s' needs a value", argv[optind - 1]);
		if (c == 'p') {
			if (!pid_list__add(&pids, "dump", "-p", optarg))
				return EXIT_USAGE;
			continue;
		}
		taken = scope__option(&d->scope, "dump", c, optarg);
		if (taken < 0)
			return EXIT_USAGE;
		if (taken)
			continue;
		if (c != 'F')
			return cmd__usage("dump", "unknown option '%s'", argv[optind - 1]);
		if (!cmd__parse_format("dump", optarg, &d->options))
			return EXIT_USAGE;
	}
	for (; optind < argc; optind++)
		if (!pid_list__add(&pids, "dump", "PID", argv[optind]))
			return EXIT_USAGE;
	if (!pids.n)
		return cmd__usage("dump", "which process? `sonde dump PID`");
	if (!scope__apply_to_processes(&d->scope, "dump"))
		return EXIT_USAGE;
	for (; d->n < pids.n; d->n++)
		d->snapshots[d->n] = (struct snapshot){
			.pid = pids.list[d->n],
			.mem = -1,
			.remote_files = d->scope.remote_files == ANSWER_YES,
		};
	return -1;
}

/* Reads what needs privileges: opens the memory, and reads the protected files of /proc. */
static void open_all(struct dump *d)
{
	char err[512];

	for (u32 i = 0; i < d->n; i++) {
		struct snapshot *l = &d->snapshots[i];

		d->ok[i] = scope__allows(&d->scope, l->pid, err, sizeof(err)) &&
			   !snapshot__open(l, l->pid, err, sizeof(err));
		if (!d->ok[i])
			cmd__error("%s", err);
	}
	for (u32 i = 0; i < d->n; i++) {
		if (!d->ok[i] || !snapshot__read_tasks(&d->snapshots[i]))
			continue;
		cmd__error("process %u has ended meanwhile", d->snapshots[i].pid);
		d->ok[i] = false;
	}
}

static void take_snapshot(struct dump *d, u32 i)
{
	struct snapshot *l = &d->snapshots[i];
	char err[512];
	int ret = snapshot__identify(l, err, sizeof(err));

	if (!ret) {
		ret = snapshot__threads(l);
		if (ret == -ESRCH)
			snprintf(err, sizeof(err),
				 "process %u has ended meanwhile, or executes another program: try again", l->pid);
		else if (ret == -EAGAIN)
			snprintf(
				err, sizeof(err),
				"process %u: its list of threads changes too fast to be read, or its Python is just starting or ending: try again",
				l->pid);
		else if (ret)
			snprintf(err, sizeof(err), "process %u: %s", l->pid, strerror(-ret));
	}
	if (ret)
		cmd__error("%s", err);
	d->ok[i] = !ret;
	d->tasks[i] = ret ? NULL : calloc(1, sizeof(*d->tasks[i]));
	if (!d->tasks[i])
		return;
	d->tasks[i]->has_all = true;
	ret = snapshot__tasks(l, d->tasks[i]);
	if (ret == -ENOTSUP)
		cmd__error("process %u: its asyncio tasks are not printed: " TASKS_UNKNOWN, l->pid);
	if (ret) {
		tasks__free(d->tasks[i]);
		d->tasks[i] = NULL;
	}
}

/* Loads the names of system calls; without them the dump omits which call a thread is in. */
static void open_names(struct dump *d)
{
	const struct schema_event *e;
	char err[512];

	if (embedded__schema(&d->schema, err, sizeof(err)))
		return;
	e = schema__event(d->schema, "syscall");
	d->nr = e ? schema_event__field(e, "nr") : NULL;
}

static int dump_processes(struct dump *d)
{
	u32 done = 0;
	int status = EXIT_DONE, err;

	open_names(d);
	open_all(d);
	/* The processes choose the bytes that are read from here on. */
	mounts__forget();
	bounded__forget();
	memory_limit__set(0);
	err = privileges__reader(false);
	if (err) {
		cmd__error("cannot drop privileges: %s", cmd__reason(err));
		return EXIT_FAILED;
	}
	for (u32 i = 0; i < d->n; i++) {
		if (d->ok[i])
			take_snapshot(d, i);
		done += d->ok[i];
	}
	if (done)
		status = d->options.format == OUTPUT_TABLE ? print_people(d) : print_tables(d);
	for (u32 i = 0; i < d->n; i++) {
		snapshot__free(&d->snapshots[i]);
		tasks__free(d->tasks[i]);
	}
	schema__free(d->schema);
	if (!done)
		return EXIT_FAILED;
	return status == EXIT_DONE && done < d->n ? EXIT_PARTLY : status;
}

static int cmd_dump(int argc, char **argv)
{
	/* It has 4 MiB; a static variable would count towards the memory of every command. */
	struct dump *d = calloc(1, sizeof(*d));
	int status;

	if (!d) {
		cmd__error("%s", cmd__reason(-ENOMEM));
		return EXIT_FAILED;
	}
	status = parse(d, argc, argv);
	if (status < 0)
		status = dump_processes(d);
	free(d);
	return status;
}

COMMAND(dump) = {
	.name = "dump",
	.doc = "print what all threads of Python processes do now, without stopping them",
	.order = 25,
	.run = cmd_dump,
};
