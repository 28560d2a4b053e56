// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One process in the form of torch.profiler's traces (Kineto), which HTA and others read: chrome.c writes the events.
 * Times are on CLOCK_REALTIME, from a base that all traces of three months share, so that those of ranks fit together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome.h"
#include "model/rank_processes.h"
#include "output/json_writer.h"

#define BASE_SECONDS 7889238ull /* of Kineto: three months */
#define NS	     1000000000ull

static int check(struct export *e)
{
	char *end;
	unsigned long pid = e->choice ? strtoul(e->choice, &end, 10) : 0;

	if (pid && !*end && pid <= ~0u) {
		e->pid = (u32)pid;
		e->pids = (struct trace_ids){ &e->pid, 1 };
		return 0;
	}
	snprintf(e->why, sizeof(e->why),
		 "which process? --event takes its pid; -o DIR/ writes all ranks of distributed training");
	return -EINVAL;
}

/* Tools find the rank by a pattern with a space behind the colon. */
static int put_rank(struct export *e, u32 pid)
{
	struct rank_processes ranks;
	int err = rank_processes__list(&ranks, e->trace, e->names);

	for (u32 i = 0; !err && i < ranks.n; i++) {
		const struct rank_process *r = &ranks.list[i];

		if (r->task->id == pid)
			fprintf(e->out, "\"distributedInfo\":{\"rank\": %u,\"world_size\": %u,\"rank_from\":\"%s\"},",
				r->rank, r->world_size,
				r->is_guess ? "the order in which processes started" : "the environment");
	}
	free(ranks.list);
	return err;
}

static int begin(struct export *e)
{
	const struct trace_head *head = e->facts->head;
	u64 base = head->realtime / NS / BASE_SECONDS * BASE_SECONDS * NS;
	const struct task *task = names__task(e->names, e->pid, e->pid);
	/* a trace without family proc names no process */
	const char *host = task ? names__host(e->names, task, head->hostname) : head->hostname;
	int err = chrome__open(e);

	if (!err)
		err = chrome__only_kineto(e, head->realtime - head->monotonic - base);
	if (err)
		return err;
	fputs("{\"schemaVersion\":1,\"deviceProperties\":[],\"host_name\":", e->out);
	json__print_text(e->out, host, strlen(host));
	putc(',', e->out);
	err = put_rank(e, e->pid);
	fprintf(e->out, "\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%llu,\"traceEvents\":[", base);
	return err;
}

EXPORTER(kineto) = {
	.name = "kineto",
	.doc = "torch.profiler's JSON: one process, which --event PID names, or with -o DIR/ each rank of training",
	.check = check,
	.begin = begin,
	.rows = chrome__rows,
	.end = chrome__end,
};
