// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What this kernel and user can do, which runtimes run now, what is missing and how to mend it. */
#include "cmd/cmd.h"

#include "attach/embedded.h"
#include "attach/features.h"
#include "attach/procs.h"
#include "record/family.h"
#include "report/table.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char help[] =
	"Usage: sonde doctor [--format table,csv,json]\n"
	"\n"
	"Says what this kernel and user can do, which families of probes are usable, which Python and\n"
	"CUDA runtimes run now, and what to do about what is missing. Changes nothing.\n"
	"\n"
	"Exit status: 0 all families usable, 3 some, 1 none, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde doctor\n"
	"  sonde doctor --format json | jq '.tables.families[] | select(.usable == \"no\")'\n";

static const struct column check_columns[] = {
	{ "check", "Check", VALUE_TEXT, SHOW_PLAIN },
	{ "state", "State", VALUE_TEXT, SHOW_PLAIN },
	{ "what", "What it means here", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column family_columns[] = {
	{ "name", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "usable", "Usable", VALUE_TEXT, SHOW_PLAIN },
	{ "by_default", "Default", VALUE_TEXT, SHOW_PLAIN },
	{ "why", "Why not, or how", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column runtime_columns[] = {
	{ "pid", "Pid", VALUE_U64, SHOW_PLAIN },
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "object", "Library or program", VALUE_TEXT, SHOW_PLAIN },
};

struct doctor {
	struct report_output out;
	struct features features;
	struct embedded embedded;
	struct table *runtimes;
	u32 usable, families;
	/* one object is examined once: what was found for the one before */
	struct seen {
		u64 dev, ino;
		u32 families;
	} * seen;
	u32 n_seen;
};

static void checks(struct doctor *d)
{
	struct table *t = REPORT_TABLE(&d->out, "checks", "This machine", check_columns);
	const struct features *f = &d->features;
	struct utsname un;
	char cost[128];

	uname(&un);
	table__add(t, V_TEXT("kernel"), V_TEXT(un.release),
		   V_TEXT("6.1 is the oldest that sonde knows; all works from 6.13 on"));
	table__add(t, V_TEXT("user"), V_TEXT(geteuid() ? "not root" : "root"),
		   V_TEXT(geteuid() ? "run `sudo sonde doctor`: recording needs root" : "may record"));
	table__add(t, V_TEXT("BPF"), V_TEXT(f->bpf ? "works" : strerror(-f->error)),
		   V_TEXT(f->bpf	     ? "programs load" :
			  f->error == -EPERM ? "recording needs root, or a kernel that is not locked down" :
					       "this kernel loads no BPF programs"));
	table__add(t, V_TEXT("BTF"), V_TEXT(f->btf ? "there" : "missing"),
		   V_TEXT(f->btf ? "/sys/kernel/btf/vmlinux" :
				   "the kernel must be built with CONFIG_DEBUG_INFO_BTF=y"));
	table__add(t, V_TEXT("uprobe_multi"), V_TEXT(f->multi ? "works" : "no"),
		   V_TEXT(f->multi ? "many probes in one link" :
				     "each probe is a perf event: attaching is slow (Linux 6.6 has it)"));
	table__add(t, V_TEXT("uprobe_session"), V_TEXT(f->session ? "works" : "no"),
		   V_TEXT(f->session ? "durations of calls in every process" :
				       "durations of calls only with -p (Linux 6.13 has it)"));
	if (f->multi)
		table__add(
			t, V_TEXT("returns"), V_TEXT(f->returns ? "safe" : "no"),
			V_TEXT(f->returns ?
				       "a probed return passes a strict seccomp filter" :
				       "a strict seccomp filter kills for a probed return: calls have no durations"));
	if (f->entry_ns) {
		snprintf(cost, sizeof(cost),
			 "a probe costs %llu ns, a call with its return %llu ns, and the program's own work",
			 f->entry_ns, f->span_ns);
		table__add(t, V_TEXT("cost"), V_TEXT("measured"), V_TEXT(cost));
	}
}

static void family(struct doctor *d, const struct schema_family *f)
{
	const char *usable = "yes";
	char why[256] = "";

	if (!d->features.bpf || !d->features.btf) {
		usable = "no";
		snprintf(why, sizeof(why), "%s", d->features.bpf ? "no BTF" : "BPF programs cannot be loaded");
	}
	for (u32 i = 0; i < d->embedded.probes.n_programs && !*why; i++) {
		const struct program *p = &d->embedded.probes.programs[i];

		if (p->family != f)
			continue;
		if (p->section.kind == SECTION_TRACEPOINT && !features__tracepoint(p->section.rest)) {
			usable = "no";
			snprintf(why, sizeof(why), "this kernel has no tracepoint %s", p->section.rest);
		} else if (p->section.kind == SECTION_SPAN && !d->features.returns) {
			usable = "partly";
			snprintf(why, sizeof(why), "no durations: see returns");
		} else if (p->section.kind == SECTION_SPAN && !d->features.session) {
			usable = "partly";
			snprintf(why, sizeof(why), "durations only with -p");
		}
	}
	d->families++;
	d->usable += !strcmp(usable, "yes") ? 2 : !strcmp(usable, "partly");
	table__add(d->out.tables->next, V_TEXT(f->name), V_TEXT(usable), V_TEXT(f->by_default ? "yes" : "with -t"),
		   V_TEXT(*why ? why : f->doc));
}

/* Which families would probe this object, as `record` decides it. */
static void examine(struct doctor *d, const struct mapping *m, struct seen *seen)
{
	struct elf *elf = NULL;
	char path[96];
	int fd;

	for (u32 i = 0; i < d->embedded.probes.n_programs; i++)
		if (section__matches_library(&d->embedded.probes.programs[i].section, m->path))
			seen->families |= 1u << d->embedded.probes.programs[i].family->id;
	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", m->pid, m->start, m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (fd = open(m->path, O_RDONLY | O_CLOEXEC)) < 0)
		return;
	if (!elf__open(&elf, fd)) {
		for (u32 i = 0; i < d->embedded.schema->n_families; i++) {
			const struct family_host *h = family_host__find(d->embedded.schema->families[i].name);

			/* families that only follow such processes have nothing in the object */
			if (h && h->is_runtime && h->is_runtime != runtime__is_one && h->is_runtime(elf, m->path))
				seen->families |= 1u << d->embedded.schema->families[i].id;
		}
		elf__close(elf);
	}
	close(fd);
}

static struct seen *look_up(struct doctor *d, const struct mapping *m)
{
	struct seen *bigger;

	for (u32 i = 0; i < d->n_seen; i++)
		if (d->seen[i].ino == m->ino && d->seen[i].dev == m->dev)
			return &d->seen[i];
	bigger = realloc(d->seen, (d->n_seen + 1) * sizeof(*bigger));
	if (!bigger)
		return NULL;
	d->seen = bigger;
	d->seen[d->n_seen] = (struct seen){ .dev = m->dev, .ino = m->ino };
	examine(d, m, &d->seen[d->n_seen]);
	return &d->seen[d->n_seen++];
}

static void comm_of(u32 pid, char *buf, size_t len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	buf[0] = '\0';
	if (f && fgets(buf, len, f))
		buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void on_mapping(const struct mapping *m, void *arg)
{
	struct doctor *d = arg;
	struct seen *seen = look_up(d, m);
	char comm[64];

	for (u32 id = 0; seen && id < 32; id++) {
		const struct schema_family *f = schema__family_by_id(d->embedded.schema, id);

		if (!f || !(seen->families & (1u << id)))
			continue;
		comm_of(m->pid, comm, sizeof(comm));
		table__add(d->runtimes, V_U64(m->pid), V_TEXT(comm), V_TEXT(f->name), V_TEXT(m->path));
	}
}

static void runtimes(struct doctor *d)
{
	int unread;

	d->runtimes = REPORT_TABLE(&d->out, "runtimes", "Runtimes that are mapped now", runtime_columns);
	unread = procs__each_mapping(on_mapping, d);
	if (unread > 0 && geteuid())
		report_output__note(&d->out, "%d processes could not be looked into: run as root", unread);
	if (!d->runtimes->n_rows)
		report_output__note(
			&d->out,
			"No process maps CPython or a CUDA library now; `sonde record` finds them when they start.");
}

static int diagnose(struct doctor *d)
{
	char err[512];
	int ret;

	if (embedded__open(&d->embedded, err, sizeof(err))) {
		cmd__error("%s", err);
		return EXIT_FAILED;
	}
	features__probe(&d->features);
	features__finish(&d->features);
	d->out.name = "doctor";
	checks(d);
	REPORT_TABLE(&d->out, "families", "Families of probes", family_columns);
	for (u32 i = 0; i < d->embedded.schema->n_families; i++)
		if (d->embedded.schema->families[i].id)
			family(d, &d->embedded.schema->families[i]);
	runtimes(d);
	ret = !d->usable ? EXIT_FAILED : d->usable < 2 * d->families ? EXIT_PARTLY : EXIT_DONE;
	report_output__finding(&d->out, "%s",
			       ret == EXIT_DONE	  ? "All families of probes are usable here." :
			       ret == EXIT_PARTLY ? "Some families of probes are not or only partly usable here." :
						    "Nothing can be recorded here: see the table of checks.");
	return ret;
}

static int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'F' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct output_options output = { .rows = -1, .color = cmd__color(stdout) };
	struct doctor d = {};
	int c, ret, printed;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (c != 'F')
			return cmd__usage("doctor", "unknown option");
		if (!cmd__parse_format("doctor", optarg, &output))
			return EXIT_USAGE;
	}
	if (optind < argc)
		return cmd__usage("doctor", "unexpected argument '%s'", argv[optind]);
	ret = diagnose(&d);
	printed = cmd__print(&d.out, &output);
	report_output__free(&d.out);
	embedded__close(&d.embedded);
	free(d.seen);
	return printed ? printed : ret;
}

COMMAND(doctor_command) = {
	.name = "doctor",
	.doc = "say what this machine can trace and what is missing",
	.order = 60,
	.run = cmd_doctor,
};
