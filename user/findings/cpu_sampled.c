// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What processes computed where only samples show that they ran. */
#include <errno.h>

#include "findings/compute.h"
#include "findings/cpu_private.h"

/* A thread with less than a twentieth of the time does not count, as in groups__make. */
#define THREAD_SHARE 20

static int sum_threads(const struct finding_input *in, struct map *threads)
{
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples) {
		u64 *ns = map__get(threads, &key->thread);

		if (!ns)
			return -ENOMEM;
		*ns += s->ns;
	}
	return 0;
}

static int sum_processes(const struct map *threads, u64 duration, struct map *processes)
{
	MAP_EACH_ENTRY(const u64 *ns, const struct thread_key *key, threads) {
		struct group *g;

		if (*ns < duration / THREAD_SHARE)
			continue;
		g = map__get(processes, &key->pid);
		if (!g)
			return -ENOMEM;
		g->pid = key->pid;
		g->threads++;
		/* the samples of a thread may represent one period more than the time */
		g->ns += *ns < duration ? *ns : duration;
		g->wall_ns += duration;
	}
	return 0;
}

/* Do the scheduler's events show less than half of what samples show? */
static bool is_unobserved(const struct finding_input *in, const struct group *g)
{
	const struct on_cpus *p = map__find(&in->cpus->processes, &g->pid);
	u64 measured = query__measured(in->q);

	return !p || !measured ||
	       2.0 * (double)p->run_ns * (double)query__duration(in->q) / (double)measured < (double)g->ns;
}

int cpu__add_sampled(const struct finding_input *in, struct map *pids, struct findings *out)
{
	struct map threads, processes;
	struct finding *f;
	int err;

	map__init(&threads, sizeof(struct thread_key), sizeof(u64));
	map__init(&processes, sizeof(u32), sizeof(struct group));
	err = sum_threads(in, &threads);
	if (!err)
		err = sum_processes(&threads, query__duration(in->q), &processes);
	for (u32 i = 0; !err && i < processes.n; i++) {
		const struct group *g = map__value(&processes, i);

		f = is_unobserved(in, g) ? group__add_finding(in, g, FINDING_COMPUTE, out) : NULL;
		if (!f)
			continue;
		/* the clock of the samples is not stopped by --cost-limit */
		f->is_measured_part = false;
		computed__complete(in, f);
		err = map__get(pids, &g->pid) ? 0 : -ENOMEM;
	}
	MAPS_FREE(&threads, &processes);
	return err;
}
