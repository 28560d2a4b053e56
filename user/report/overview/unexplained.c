// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/overview/unexplained.h"

#include "model/facts.h"
#include "output/text.h"

/* Returns how long the process existed within the measured part of the selected time, ns. */
static u64 lifetime(const struct query *args, u32 pid)
{
	u64 unmeasured = 0;
	const struct task *task = names__task(args->names, pid, pid);
	struct trace_window w = query__window(args);

	if (task && task->start > w.from)
		w.from = task->start;
	if (task && task->end && task->end < w.to)
		w.to = task->end;
	if (args->facts)
		unmeasured = trace_facts__unmeasured(args->facts, w.from, w.to);
	return query__inside(args, w.from, w.to) - unmeasured;
}

/*
 * Returns the time of a process that the trace does not explain, ns: with the scheduler recorded, time on a CPU unless
 * samples show what ran there; otherwise all time outside of recorded calls and waits.
 */
static u64 unexplained_ns(const struct explained *p, u64 life, bool sched, bool sample)
{
	if (sched)
		return sample ? 0 : p->cpu_ns < life ? p->cpu_ns : life;
	return p->ns < life ? life - p->ns : 0;
}

void unexplained__add_findings(const struct query *args, const struct explained *processes, u32 n,
			       struct report_output *out)
{
	bool sched = query__has_family(args, "sched"), sample = query__has_family(args, "sample");
	u64 most = 0, of = 0;
	char process[64], wall[TEXT_NUMBER];
	u32 worst = 0, count = 0;

	for (u32 i = 0; i < n; i++) {
		u64 life = lifetime(args, processes[i].pid), ns = unexplained_ns(&processes[i], life, sched, sample);

		if (ns <= life / 2)
			continue;
		count++;
		if (ns > most) {
			most = ns;
			of = life;
			worst = processes[i].pid;
		}
	}
	if (!count)
		return;
	names__label(args->names, process, sizeof(process), worst, 0);
	text__ns(wall, sizeof(wall), of);
	if (sched)
		report_output__finding(out, "%s ran for %.0f%% of %s: `sonde record -F 99` shows in which functions.",
				       process, table__percent(most, of), wall);
	else
		report_output__finding(out,
				       "What %s did in %.0f%% of %s was not recorded: `sonde record -t "
				       "+syscall,lock` shows what its threads waited for%s.",
				       process, table__percent(most, of), wall,
				       sample ? "" : ", `-F 99` where they ran");
	REPORT_FIGURES(out, FIGURE("pid", V_U64(worst)), FIGURE("ns", V_U64(most)), FIGURE("wall_ns", V_U64(of)),
		       FIGURE("processes", V_U64(count)));
}
