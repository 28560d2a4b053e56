// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metadata of a trace: the machine, the clocks, the probes, the costs. */
#include "record/metadata.h"

#include "record/parts.h"
#include "sandbox/usage.h"
#include "sonde.skel.h"
#include "util/file.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/*
 * MONOTONIC and BOOTTIME are read in BPF (a time namespace shifts clock_gettime), REALTIME between two readings of
 * MONOTONIC. BOOTTIME is read right after MONOTONIC, so an interrupt between the two can only make their difference
 * larger; the smallest one is used.
 */
static int read_clocks(struct session *s, u64 *mono, u64 *boot, u64 *real, u64 *error)
{
	int fd = bpf_program__fd(s->embedded.skel->progs.core_clock);
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	u64 best = ~0ULL, ahead = ~0ULL;

	for (int i = 0; i < 5; i++) {
		u64 before, r, width, apart;

		if (bpf_prog_test_run_opts(fd, &opts))
			return -errno;
		before = s->embedded.skel->bss->clock_monotonic;
		r = timing__clock(CLOCK_REALTIME);
		if (bpf_prog_test_run_opts(fd, &opts))
			return -errno;
		width = s->embedded.skel->bss->clock_monotonic - before;
		apart = s->embedded.skel->bss->clock_boottime - s->embedded.skel->bss->clock_monotonic;
		if (apart < ahead)
			ahead = apart;
		if (width >= best)
			continue;
		best = width;
		*mono = before + width / 2;
		*real = r;
		*error = width;
	}
	*boot = *mono + ahead;
	s->time.offset = s->embedded.skel->bss->clock_monotonic - timing__clock(CLOCK_MONOTONIC);
	/* a small difference is the time between the two readings */
	if (s->time.offset > -1000000 && s->time.offset < 1000000)
		s->time.offset = 0;
	return 0;
}

void metadata__clock(struct session *s)
{
	struct meta_clock r = { .event = session__event(s, ID_meta_clock) };
	u64 mono, boot, real, error;

	if (read_clocks(s, &mono, &boot, &real, &error))
		return;
	r.monotonic = mono;
	r.boottime = boot;
	r.realtime = real;
	r.error = error;
	session__emit(s, &r, sizeof(r));
}

/* Returns whether the family was requested, even if the kernel refused its programs. */
static bool was_requested(const struct session *s, const struct schema_family *f)
{
	return s->load.family_on[f->id] || refused__concerns(s, f);
}

void metadata__head(struct session *s, struct trace_head *head, char *buf, size_t len)
{
	static struct utsname un;
	static char hostname[256], machine[64], boot[64];
	size_t used = 0;

	uname(&un);
	gethostname(hostname, sizeof(hostname) - 1);
	*head = (struct trace_head){
		.hostname = hostname,
		.machine_id = file__first_line("/etc/machine-id", machine, sizeof(machine)),
		.boot_id = file__first_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)),
		.kernel = un.release,
		.arch = un.machine,
		.sonde_version = SONDE_VERSION,
		.command = s->args->command,
		.families = buf,
		.cpus = libbpf_num_possible_cpus(),
	};
	buf[0] = '\0';
	for (u32 i = 0; i < s->embedded.schema->n_families && used < len; i++)
		if (s->embedded.schema->families[i].id && was_requested(s, &s->embedded.schema->families[i]))
			used += snprintf(buf + used, len - used, "%s%s", used ? "," : "",
					 s->embedded.schema->families[i].name);
	read_clocks(s, &head->monotonic, &head->boottime, &head->realtime, &head->clock_error);
	s->time.head = head->monotonic;
}

void metadata__probes(struct session *s, u32 from)
{
	for (u32 i = from; i < s->embedded.probes.n; i++) {
		const struct probe *p = &s->embedded.probes.list[i];
		struct meta_probe r = {
			.event = session__event(s, ID_meta_probe),
			.name = session__intern(s, p->name),
			.program = session__intern(s, p->program->name),
			.section = session__intern(s, p->program->full_section),
			.number = p->number,
			.family = p->program->family->id,
		};

		session__emit(s, &r, sizeof(r));
	}
}

/* buf: the block that has the probe, of each CPU. */
static void add_hits(const struct hits_block *buf, u32 number, u32 cpus, u64 *hits, u64 *skipped)
{
	*hits = *skipped = 0;
	for (u32 i = 0; i < cpus; i++) {
		*hits += buf[i].probes[number % HITS_BLOCK].hits;
		*skipped += buf[i].probes[number % HITS_BLOCK].skipped;
	}
}

/* Returns the number of all hits; *skipped: the number of those that the process filter rejected. */
static u64 sum_hits(struct session *s, bool write, u64 *skipped)
{
	u32 cpus = libbpf_num_possible_cpus(), last = ~0U;
	struct hits_block *buf = calloc(cpus, sizeof(*buf));
	u64 total = 0, hits, rejected;

	*skipped = 0;
	for (u32 i = 0; buf && i < s->embedded.probes.n; i++) {
		u32 number = s->embedded.probes.list[i].number, block = number / HITS_BLOCK;
		struct meta_hits r = {};

		if (block != last && bpf_map_lookup_elem(bpf_map__fd(s->embedded.skel->maps.probe_hits), &block, buf))
			continue;
		last = block;
		add_hits(buf, number, cpus, &hits, &rejected);
		total += hits;
		*skipped += rejected;
		if (!write || !hits)
			continue;
		r.event = session__event(s, ID_meta_hits);
		r.hits = hits;
		r.skipped = rejected;
		r.number = number;
		session__emit(s, &r, sizeof(r));
	}
	free(buf);
	return total;
}

u64 metadata__total_hits(struct session *s, u64 *skipped)
{
	return sum_hits(s, false, skipped);
}

void metadata__hits(struct session *s)
{
	u64 skipped;

	sum_hits(s, true, &skipped);
}

/*
 * Estimates what the probes cost the targets. The trap of a hit is calibrated on this machine; the work of the program
 * is not included (`make bench`: for a span a quarter of the trap's cost).
 */
u64 metadata__probes_ns(struct session *s, u64 hits)
{
	return hits * (s->load.method.spans == SPAN_SESSION ? s->features.span_ns : s->features.entry_ns);
}

void metadata__cost(struct session *s)
{
	struct meta_cost r = { .event = session__event(s, ID_meta_cost) };
	struct rusage u;
	u64 skipped;

	getrusage(RUSAGE_SELF, &u);
	/* take both at the same moment: readers subtract one from the other to find when tracing was live */
	r.wall = r.event.time - s->time.started;
	r.user = u.ru_utime.tv_sec * 1000000000ULL + u.ru_utime.tv_usec * 1000ULL;
	r.system = u.ru_stime.tv_sec * 1000000000ULL + u.ru_stime.tv_usec * 1000ULL;
	r.children = usage__ns();
	r.hits = metadata__total_hits(s, &skipped);
	r.probes = metadata__probes_ns(s, r.hits);
	r.memory = u.ru_maxrss * 1024ULL;
	r.written = trace_writer__bytes(s->writer);
	session__emit(s, &r, sizeof(r));
}
