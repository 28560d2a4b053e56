// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measures the cost of tracepoint programs. The programs run for all processes once they are attached, and the kernel
 * only has one sum of time and runs for each program. So the measurement has three parts, in turns: the hits of other
 * processes alone (their rate); the same with a child that is not followed (the cost of such a hit); and a child that
 * is followed. The hits of others in the third part are subtracted, as estimated from the first two at the lowest
 * rate seen. On a busy machine the result is therefore rather too low, closer to the cost of a hit that is not
 * followed, and if most hits are those of others, there is no result.
 */
#include "record/load/calibrate.h"

#include "record/parts.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS	  1000000ULL
#define FEW_HITS  10
#define ROUNDS	  5
#define ALONE_NS  (2 * MS)
#define WITH_WORK (4 * MS)

/* One program's totals so far, as the kernel reports them. */
struct sums {
	u64 ns, hits;
};

enum part { ALONE, UNFOLLOWED, FOLLOWED, PARTS };

/* One program's totals in each part, over all rounds. */
struct parts {
	struct sums last;
	struct sums rounds[ROUNDS][PARTS];
	u64 round_ns[ROUNDS]; /* duration of the followed part */
	double rate; /* hits per ns in the quietest part without the child's work */
};

static struct sums read_sums(const struct program *p)
{
	struct bpf_prog_info info = {};
	u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(p->prog), &info, &size))
		return (struct sums){};
	return (struct sums){ info.run_time_ns, info.run_cnt };
}

/* Programs that only options need are loaded but not run. */
static bool is_tried(struct session *s, const struct program *p)
{
	return p->enabled && p->section.kind == SECTION_TRACEPOINT && load__is_needed(s, p);
}

/* Attaches the core's programs first: the others need them to know which threads are followed. */
static int attach_all(struct session *s, char *err, size_t len)
{
	const struct probes *probes = &s->embedded.probes;

	for (u32 i = 0; i < 2 * probes->n_programs; i++) {
		struct program *p = &probes->programs[i % probes->n_programs];
		int ret = 0;

		if (!is_tried(s, p) || (p->family->id == 0) != (i < probes->n_programs))
			continue;
		if (test_switch__matches("refuse-attach", p->name))
			ret = -EINVAL;
		else if (bpf_raw_tracepoint_open(NULL, bpf_program__fd(p->prog)) < 0)
			ret = -errno;
		if (ret)
			ret = refused__unattached(s, p, ret, err, len);
		if (ret)
			return ret;
	}
	return 0;
}

/* Adds the totals since the last call to a part that took this long. */
static void note_sums(struct session *s, struct parts *parts, enum part part, u32 round, u64 took)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		struct parts *p = &parts[i];
		struct sums now;
		u64 hits;

		if (!is_tried(s, &s->embedded.probes.programs[i]))
			continue;
		now = read_sums(&s->embedded.probes.programs[i]);
		hits = now.hits - p->last.hits;
		p->rounds[round][part] = (struct sums){ now.ns - p->last.ns, hits };
		if (part == FOLLOWED)
			p->round_ns[round] = took;
		if (part == ALONE && took && (p->rate < 0 || hits < p->rate * took))
			p->rate = (double)hits / took;
		p->last = now;
	}
}

/* Runs a child that works for this long; with `followed` it is in the set of processes before it begins. */
static int run_child(struct session *s, bool followed)
{
	int go[2];
	pid_t pid;
	char byte;

	if (pipe(go))
		return -errno;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		/* the work is done in a child of the child, because threads are followed from their creation on */
		if (read(go[0], &byte, 1) == 1)
			calibrate__work_in_child(WITH_WORK);
		_exit(0);
	}
	close(go[0]);
	if (pid > 0 && followed)
		process__set(s, pid, PROCESS_TREE);
	if (write(go[1], "", 1) != 1)
		pid = -1;
	close(go[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid < 0 ? -EAGAIN : 0;
}

/* Returns `all` hits without those of other processes, at `rate` hits per ns and `each` ns per hit. */
static struct sums own_share(struct sums all, double rate, double each, u64 took)
{
	double others = rate > 0 ? rate * took : 0;

	if (others >= all.hits)
		return (struct sums){};
	return (struct sums){ others * each < all.ns ? all.ns - others * each : 0, all.hits - others };
}

/* Adds a round to the total of hits, and keeps the lowest time per hit, because interruptions only ever add time. */
static void add_round(struct sums round, u64 *hits, double *each)
{
	if (!round.hits)
		return;
	*hits += round.hits;
	if (*each < 0 || (double)round.ns / round.hits < *each)
		*each = (double)round.ns / round.hits;
}

static void add_program(const struct parts *p, struct sums *unfollowed, struct sums *followed)
{
	u64 other_hits = 0, own_hits = 0, all_hits = 0;
	double other_each = -1, own_each = -1;

	for (u32 r = 0; r < ROUNDS; r++)
		add_round(p->rounds[r][UNFOLLOWED], &other_hits, &other_each);
	for (u32 r = 0; r < ROUNDS; r++) {
		struct sums all = p->rounds[r][FOLLOWED];

		all_hits += all.hits;
		add_round(own_share(all, p->rate, other_each < 0 ? 0 : other_each, p->round_ns[r]), &own_hits,
			  &own_each);
	}
	if (other_each > 0)
		*unfollowed = (struct sums){ unfollowed->ns + other_hits * other_each, unfollowed->hits + other_hits };
	/* a smaller share can't be distinguished from the hits of other processes */
	if (own_each > 0 && own_hits * 4 >= all_hits)
		*followed = (struct sums){ followed->ns + own_hits * own_each, followed->hits + own_hits };
}

static void add_up(const struct session *s, const struct parts *parts, struct calibration *a)
{
	struct sums unfollowed[FAMILY_MAX] = {}, followed[FAMILY_MAX] = {};

	PROGRAMS_EACH(p, &s->embedded.probes)
		add_program(parts++, &unfollowed[p->family->id], &followed[p->family->id]);
	for (u32 id = 0; id < FAMILY_MAX; id++) {
		struct family_cost *c = &a->costs[id];

		c->hits = followed[id].hits;
		c->followed = followed[id].hits >= FEW_HITS ? followed[id].ns / followed[id].hits : 0;
		c->unfollowed = unfollowed[id].hits >= FEW_HITS ? unfollowed[id].ns / unfollowed[id].hits : 0;
	}
}

static int run_round(struct session *s, struct parts *parts, u32 round)
{
	u64 start = timing__now();
	int err;

	usleep(ALONE_NS / 1000);
	note_sums(s, parts, ALONE, round, timing__now() - start);
	err = run_child(s, false);
	note_sums(s, parts, UNFOLLOWED, round, 0);
	start = timing__now();
	err = err ?: run_child(s, true);
	note_sums(s, parts, FOLLOWED, round, timing__now() - start);
	return err;
}

static int run_rounds(struct session *s, struct calibration *a)
{
	struct parts *parts = calloc(s->embedded.probes.n_programs, sizeof(*parts));
	int err = 0;

	if (!parts)
		return -ENOMEM;
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		parts[i].rate = -1;
		if (is_tried(s, &s->embedded.probes.programs[i]))
			parts[i].last = read_sums(&s->embedded.probes.programs[i]);
	}
	for (u32 i = 0; i < ROUNDS && !err; i++)
		err = run_round(s, parts, i);
	if (!err)
		add_up(s, parts, a);
	free(parts);
	return err;
}

/* Stores one refusal of each family: one that disables the whole family, else the first. */
static void store_refusals(const struct session *s, struct calibration *a)
{
	for (u32 i = 0; i < s->refused.n; i++) {
		const struct refusal *from = &s->refused.programs[i];
		struct family_refusal *to = &a->refusals[from->family->id];

		if (to->programs++ && (to->is_whole_family || !from->is_whole_family))
			continue;
		to->is_whole_family = from->is_whole_family;
		snprintf(to->text, sizeof(to->text), "%s is missing: %s; reports lack %s", from->program, from->why,
			 from->is_whole_family ? "all of the family" : from->lacks);
	}
}

static int try_families(const struct features *f, struct calibration *a)
{
	const u32 no_process = 0;
	struct session_args args = { .pids = &no_process, .n_pids = 1, .command = "" };
	struct session *s;
	int err = session__open_trial(&s, &args, f, a->failed, sizeof(a->failed));

	if (!s)
		return err;
	if (!err && bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		err = -errno;
	err = err ?: attach_all(s, a->failed, sizeof(a->failed));
	store_refusals(s, a);
	return err ? err : run_rounds(s, a);
}

struct calibration *calibrate__new(const struct features *f)
{
	struct calibration *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err, status;
	pid_t pid;

	if (a == MAP_FAILED)
		return NULL;
	pid = fork();
	if (!pid) {
		err = try_families(f, a);
		if (err && !*a->failed)
			snprintf(a->failed, sizeof(a->failed), "%s", strerror(-err));
		_exit(err ? 1 : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status))
		snprintf(a->failed, sizeof(a->failed), "no child for the trial");
	else if (!WEXITSTATUS(status))
		*a->failed = '\0';
	a->failed[strcspn(a->failed, "\n")] = '\0';
	return a;
}

void calibration__free(struct calibration *c)
{
	if (c)
		munmap(c, sizeof(*c));
}
