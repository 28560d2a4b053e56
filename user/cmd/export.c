// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/export_ranks.h"
#include "cmd/selection.h"
#include "cmd/table_options.h"
#include "export/export.h"
#include "model/merge.h"
#include "model/rank_processes.h"
#include "output/file.h"
#include "util/array.h"
#include "util/sudo.h"

static const char usage[] =
	"Usage: sonde export FILE.. --to FORMAT [-o OUT] [-f] [--event KIND] [--time A..B] [-p PIDS]\n"
	"                          [--rank N]\n"
	"\n"
	"Converts a trace, or several merged into one time line, to one file. The formats:\n"
	"\n";

static const char options_help[] =
	"\n"
	"  --to FORMAT        what to write\n"
	"  -o, --output OUT   output file (default: standard output), readable only by its owner\n"
	"  -f, --force        overwrite OUT if it exists\n"
	"  --time A..B        only what happened from A to before B: seconds since the trace's start\n"
	"                     (12.5..13, 12.5..) or local wall-clock time (14:03:07..14:03:09)\n"
	"  -p, --pid PIDS     only these processes\n"
	"  --rank N           only the process with this rank in distributed training\n"
	"  --rules FILE       rules on functions of libraries, for findings: docs/adding-a-rule.md\n"
	"  --event KIND       for csv: the kind of event to write; `sonde info FILE` lists those in a trace. For\n"
	"                     folded, flame, pprof and speedscope: on-cpu, off-cpu, gil-wait, gil-blame, or a kind\n"
	"                     of event with a stack, and its field if it has several (gil_drop, gil_wait:holder_stack);\n"
	"                     for cycle: the number of a cycle of --schedule; for kineto: the pid of a process, which\n"
	"                     -p and --rank name, too\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sonde export run.sonde --to text | grep cudaMemcpy\n"
	"  sonde export run.sonde --to perfetto -o run.pftrace      for https://ui.perfetto.dev\n"
	"  sonde export run.sonde --to perfetto -o run.pftrace.zst  the same, compressed\n"
	"  sonde export run.sonde --to html -o run.html             a report for a browser, in one file\n"
	"  sonde export run.sonde --to flame -o flame.html          only the flame graphs\n"
	"  sonde export run.sonde --to folded --event gil-blame | flamegraph.pl > blame.svg\n"
	"  sonde export run.sonde --to pprof -o run.pb.gz           for go tool pprof\n"
	"  sonde export run.sonde --to csv --event cuda_copy -o copies.csv\n"
	"  sonde export run.sonde --to sqlite -o run.db\n"
	"  sonde export run.sonde --to kineto -o ranks/             a folder rank_N with torch.profiler's JSON for each rank\n";

#define NO_RANK ~0u

struct request {
	char *const *files;
	u32 n_files;
	const char *out, *event;
	const char *time; /* NULL: all of it */
	struct pid_list pids;
	u32 rank; /* NO_RANK: all */
	const struct exporter *exporter;
	bool force;
};

static void print_exporter(const struct exporter *x, void *arg)
{
	fprintf(arg, "  %-12s  %s\n", x->name, x->doc);
}

static int help(void)
{
	fputs(usage, stdout);
	exporter__each(print_exporter, stdout);
	fputs(options_help, stdout);
	return EXIT_DONE;
}

static bool parse_rank(const char *text, u32 *rank)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*rank = (u32)number;
	return isdigit((unsigned char)*text) && !*end && number < NO_RANK;
}

static const struct option long_options[] = {
	{ "to", required_argument, NULL, 't' },	  { "output", required_argument, NULL, 'o' },
	{ "force", no_argument, NULL, 'f' },	  { "event", required_argument, NULL, 'e' },
	{ "time", required_argument, NULL, 'T' }, { "pid", required_argument, NULL, 'p' },
	{ "rank", required_argument, NULL, 'r' }, RULES_OPTION,
	{ "help", no_argument, NULL, 'h' },	  { 0 },
};

/* Returns an exit status, or -1 to continue. */
static int parse(struct request *r, int argc, char **argv)
{
	const char *to = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "o:fp:h", long_options, NULL)) != -1) {
		switch (c) {
		case 't':
			to = optarg;
			break;
		case 'o':
			r->out = optarg;
			break;
		case 'f':
			r->force = true;
			break;
		case 'e':
			r->event = optarg;
			break;
		case 'T':
			r->time = optarg;
			break;
		case 'p':
			if (!pid_list__add_option(&r->pids, "export", argv))
				return EXIT_USAGE;
			break;
		case 'r':
			if (!parse_rank(optarg, &r->rank))
				return cmd__usage("export", "--rank takes a number from 0, not '%s'", optarg);
			break;
		case 'h':
			return help();
		default:
			if (!table_options__take(NULL, "export", c, optarg))
				return EXIT_USAGE;
		}
	}
	if (argc == optind)
		return cmd__usage("export", "no trace is named: `sonde export FILE.. --to FORMAT`");
	if (!to)
		return cmd__usage("export", "to which format? `--to text`; `sonde list formats` names them");
	r->files = argv + optind;
	r->n_files = (u32)(argc - optind);
	r->exporter = exporter__find(to);
	if (!r->exporter)
		return cmd__usage("export", "there is no format '%s': `sonde list formats` names them", to);
	if (r->out && (!strcmp(r->out, "-") || output__is_stdout(r->out)))
		r->out = NULL;
	if (!r->out && r->exporter->needs_file)
		return cmd__usage("export", "format %s has to be a file: name one with -o", to);
	if (!r->out && r->exporter->binary && isatty(STDOUT_FILENO))
		return cmd__usage("export", "format %s is not for a terminal: name a file with -o", to);
	if (r->out && r->out[strlen(r->out) - 1] == '/' && !strcmp(to, "kineto"))
		return export_ranks__write(&(struct export_ranks){ r->files, r->n_files, r->out, r->force, r->time,
								   &r->pids, r->rank == NO_RANK ? -1 : (s64)r->rank });
	if (r->event && !r->exporter->one_kind && !r->exporter->check)
		return cmd__usage("export",
				  "format %s takes no --event: csv, cycle, kineto and the formats made of stacks do",
				  to);
	return -1;
}

/* Returns the kind that --event names, also if no such event occurred; NULL after printing an error. */
static const struct schema_event *find_event(const struct request *r, const struct trace *t)
{
	const struct schema_event *e = r->event ? schema__event(trace__schema(t), r->event) : NULL;
	const struct kind_summary *kinds;
	char *list = NULL;
	size_t len;
	FILE *names;
	u32 i, n;

	if (e)
		return e;
	kinds = trace__kinds(t, &n);
	names = open_memstream(&list, &len);
	for (i = 0; names && i < n; i++)
		fprintf(names, " %s", kinds[i].event->name);
	if (names)
		fclose(names);
	if (r->event)
		cmd__usage("export", "%s has no events '%s'; it has%s", r->files[0], r->event, list ? list : "");
	else
		cmd__usage("export", "which events? --event takes one of%s", list ? list : "");
	free(list);
	return NULL;
}

/* Applies --event; returns false after printing an error. */
static bool choose_events(struct export *e, const struct request *r, struct trace *t)
{
	e->trace = t;
	e->choice = r->event;
	if (r->exporter->one_kind)
		e->event = find_event(r, t);
	if (r->exporter->check && r->exporter->check(e)) {
		cmd__usage("export", "%s", e->why);
		return false;
	}
	return e->event || !r->exporter->one_kind;
}

static int run(struct export *e, const struct request *r, struct trace *t)
{
	const struct schema_event *kinds[] = { e->event, NULL };
	struct trace_filter filter = { .kinds = kinds };
	struct trace_facts facts = { 0 };
	struct names *names = NULL;
	struct stacks *stacks = NULL;
	int err;

	err = trace_facts__load(&facts, t, r->files[0], 0, 0);
	facts.path = r->n_files == 1 ? r->files[0] : NULL;
	if (!err)
		err = trace_facts__leave_out_pauses(&facts, t);
	if (!err)
		err = names__create(&names, trace__schema(t));
	if (!err)
		err = names__load(names, t);
	if (!err)
		err = stacks__load(&stacks, t);
	e->facts = &facts;
	e->names = names;
	e->stacks = stacks;
	if (!err)
		err = export__run(e, r->exporter, e->event ? &filter : NULL);
	if (!err && trace__damaged(t))
		cmd__error("%s: damaged: what could be read was exported", r->files[0]);
	if (!err && *e->note)
		cmd__error("%s: %s", r->files[0], e->note);
	stacks__free(stacks);
	names__free(names);
	trace_facts__free(&facts);
	return err;
}

/* Prints why the output can't be created; below sudo the user's rights may be the reason. */
static void print_refusal(int err, const char *why)
{
	uid_t uid;
	gid_t gid;

	if ((err == -EACCES || err == -EPERM) && sudo__user(&uid, &gid))
		cmd__error(
			"%s\nbelow sudo it is created with the rights of the user who called it (uid %u): name a file "
			"with -o where that user may create one",
			why, uid);
	else
		cmd__error("%s", why);
}

/* Creates the output as the user who called sudo. Returns NULL after printing an error. */
static FILE *open_output(struct output *output, const struct request *r)
{
	char why[8192];
	FILE *out;
	int err = sudo__use_files_of_user();

	if (err)
		snprintf(why, sizeof(why), "cannot create %s: %s", r->out, strerror(-err));
	else
		err = output__create(output, r->out, r->force, why, sizeof(why));
	if (err) {
		print_refusal(err, why);
		output__close(output);
		return NULL;
	}
	out = fdopen(output->fd, "w");
	if (!out) {
		cmd__error("%s: %s", r->out, strerror(errno));
		output__discard(output);
	}
	return out;
}

/* Names the file only once it is complete, because a partial file would look complete. Returns the exit status. */
static int finish_output(FILE *out, struct output *output, int status)
{
	char why[8192];
	int err = status == EXIT_DONE ? output__publish(output, why, sizeof(why)) : 0;

	if (err) {
		print_refusal(err, why);
		status = EXIT_FAILED;
	}
	if (fclose(out) && status == EXIT_DONE) {
		cmd__error("%s: %s", output->path, strerror(errno));
		status = EXIT_FAILED;
	}
	/* fclose() has closed the descriptor. */
	output->fd = -1;
	if (status != EXIT_DONE)
		output__discard(output);
	output__close(output);
	return status;
}

/* Is the output one of the traces? -f would replace it. */
static bool is_same_file(const struct request *r)
{
	char a[4096], b[4096];
	bool same = false;

	for (u32 i = 0; i < r->n_files && r->out && !same; i++)
		same = realpath(r->files[i], a) && realpath(r->out, b) && !strcmp(a, b);
	return same;
}

struct chosen {
	u32 *list;
	u32 n;
};

/* Lists the selected processes that have the rank of --rank. Returns 0 or negative errno. */
static int find_rank(const struct request *r, const struct query *q, struct chosen *out)
{
	struct rank_processes ranks;
	int err = rank_processes__list(&ranks, q->trace, q->names);

	for (u32 i = 0; !err && i < ranks.n; i++)
		if (ranks.list[i].rank == r->rank && trace_ids__have(&q->pids, ranks.list[i].task->id) &&
		    !array__push(out->list, out->n, ranks.list[i].task->id))
			err = -ENOMEM;
	free(ranks.list);
	return err;
}

/*
 * Sets *pids to the processes that -p and --rank select, and of a format of one process e->pid instead. Returns
 * EXIT_DONE, or EXIT_USAGE or EXIT_FAILED after printing what is wrong. Free out->list in any case.
 */
static int select_processes(struct export *e, const struct request *r, const struct query *q, struct chosen *out,
			    struct trace_ids *pids)
{
	int err = r->rank == NO_RANK ? 0 : find_rank(r, q, out);

	*pids = q->pids;
	if (err) {
		cmd__error("%s: cannot read its ranks: %s", r->files[0], cmd__reason(err));
		return EXIT_FAILED;
	}
	if (r->rank != NO_RANK && !out->n)
		return cmd__usage("export", "%s: no selected process has rank %u", r->files[0], r->rank);
	if (r->rank != NO_RANK)
		*pids = (struct trace_ids){ out->list, out->n };
	if (!r->exporter->one_process || !pids->n)
		return EXIT_DONE;
	if (pids->n > 1)
		return cmd__usage("export", "format %s has one process, but several are selected", r->exporter->name);
	/* the numbers of guessed ranks depend on the other processes, which remain in the trace */
	e->pid = pids->list[0];
	*pids = (struct trace_ids){ 0 };
	return EXIT_DONE;
}

/* Replaces the trace by a copy in memory of a part of it. Returns 0, or negative errno with a message in why. */
static int copy_part(struct trace **t, const struct merge_part *part, char *why, size_t size)
{
	struct trace *copy = NULL;
	int fd = memfd_create("sonde-part", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;

	snprintf(why, size, "cannot make a file in memory: %s", strerror(errno));
	if (!err)
		err = merge__part(*t, part, fd, why, size);
	if (!err)
		err = trace__open_fd(&copy, fd, why, size);
	else if (fd >= 0)
		close(fd);
	trace__close(*t);
	*t = copy;
	return err;
}

/*
 * Replaces the trace by a copy of what --time, -p and --rank select. Returns EXIT_DONE, or another status after
 * printing what is wrong.
 */
static int cut(struct export *e, const struct request *r, struct trace **t)
{
	const struct selection_request request = { .command = "export",
						   .label = r->files[0],
						   .time = r->time,
						   .pids = &r->pids,
						   /* a format of one process refuses it */
						   .may_lack = r->exporter->one_process };
	struct merge_part part = { .time.to = ~0ULL };
	struct chosen chosen = { 0 };
	struct selection s;
	char why[512];
	int status = selection__load(&s, *t, &request);

	/* spans are written as they were recorded, and a reader of the copy cuts them */
	trace__set_windows(*t, NULL, 0);
	if (!status)
		status = select_processes(e, r, &s.query, &chosen, &part.pids);
	if (r->time)
		part.time = (struct trace_window){ s.query.from, s.query.to ? s.query.to : ~0ULL };
	if (!status && (r->time || part.pids.n) && copy_part(t, &part, why, sizeof(why))) {
		cmd__error("%s: %s", r->files[0], why);
		status = EXIT_FAILED;
	}
	free(chosen.list);
	selection__free(&s);
	return status;
}

/* Gives up all rights, then reads and converts the traces. Returns the exit status. */
static int convert(struct export *e, const struct request *r, struct inputs *in)
{
	char *notes = NULL;
	struct trace *t;
	int err;

	in->sources = r->exporter->reads_sources;
	t = inputs__read(in, &notes);
	if (notes && *notes)
		cmd__error("%s", notes);
	free(notes);
	if (!t)
		return EXIT_FAILED;
	if (r->time || r->pids.n || r->rank != NO_RANK) {
		err = cut(e, r, &t);
		if (err) {
			trace__close(t);
			return err;
		}
	}
	if (!choose_events(e, r, t)) {
		trace__close(t);
		return EXIT_USAGE;
	}
	err = run(e, r, t);
	if (fflush(e->out) && !err)
		err = -errno;
	trace__close(t);
	if (!err || (!r->out && (err == -EPIPE || errno == EPIPE)))
		return EXIT_DONE;
	cmd__error("%s: export to %s failed: %s", r->files[0], r->out ? r->out : "standard output",
		   *e->why && err != -ENOMEM ? e->why : cmd__reason(err));
	return EXIT_FAILED;
}

/* Converts in a child: a process that reads traces may not name files, and this one has yet to name the output. */
static int convert_apart(struct export *e, const struct request *r, struct inputs *in)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		status = cmd__check_calls(convert(e, r, in));
		fflush(NULL);
		_exit(status);
	}
	inputs__close(in);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status))
		return WEXITSTATUS(status);
	cmd__error("%s: export to %s failed: %s", r->files[0], r->out,
		   child < 0 ? "cannot fork" : strsignal(WTERMSIG(status)));
	return EXIT_FAILED;
}

static int cmd_export(int argc, char **argv)
{
	struct request r = { .rank = NO_RANK };
	int status = parse(&r, argc, argv);
	struct export e = { .out = stdout };
	struct output output = { .fd = -1, .dir = -1 };
	struct inputs in;

	if (status >= 0)
		return status;
	if (is_same_file(&r))
		return cmd__usage("export", "%s is the trace itself", r.out);
	if (!inputs__open(&in, r.files, r.n_files))
		return EXIT_FAILED;
	if (!r.out)
		return convert(&e, &r, &in);
	e.out = open_output(&output, &r);
	if (!e.out) {
		inputs__close(&in);
		return EXIT_FAILED;
	}
	e.path = r.out;
	e.fd = output.fd;
	return finish_output(e.out, &output, convert_apart(&e, &r, &in));
}

COMMAND(export) = {
	.name = "export",
	.doc = "convert a trace to another format",
	.order = 30,
	.run = cmd_export,
};
