/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Traces of scheduler spans and waits, and the intervals that model/activity.h makes of them as text and sums. */
#pragma once

#include "model/activity.h"
#include "test.h"
#include "trace_made.h"

/* clang-format off */
#define FIELD(name, size, offset, unit) \
	"{\"name\":\"" name "\",\"type\":\"unsigned\",\"size\":" #size ",\"offset\":" #offset ",\"unit\":\"" unit "\"}"
#define FIELDS \
	FIELD("time", 8, 0, "ns") "," FIELD("pid", 4, 8, "") "," FIELD("tid", 4, 12, "") "," FIELD("id", 2, 16, "") "," \
	FIELD("probe", 2, 18, "") "," FIELD("cpu", 2, 20, "") "," FIELD("flags", 2, 22, "") "," FIELD("start", 8, 24, "ns")
/* One struct for all kinds: each kind lists the fields that it uses. */
#define KIND(id, name, more) \
	"{\"id\":" #id ",\"name\":\"" name "\",\"doc\":\"\",\"size\":64,\"fields\":[" FIELDS more "]}"
#define SCHED "," FIELD("state", 4, 32, "") "," FIELD("waker_pid", 4, 36, "") "," FIELD("waker_tid", 4, 40, "")
#define WAIT  "," FIELD("stack", 4, 44, "stack")

static const char schema_json[] =
	"{\"families\":[{\"id\":0,\"name\":\"core\",\"doc\":\"\",\"default\":true},"
	"{\"id\":2,\"name\":\"sched\",\"doc\":\"\",\"default\":false}],\"options\":[],\"enums\":[],\"events\":["
	"{\"id\":3,\"name\":\"meta_loss\",\"doc\":\"\",\"size\":64,\"fields\":["
	FIELD("time", 8, 0, "ns") "," FIELD("pid", 4, 8, "") "," FIELD("tid", 4, 12, "") "," FIELD("id", 2, 16, "") ","
	FIELD("probe", 2, 18, "") "," FIELD("cpu", 2, 20, "") "," FIELD("flags", 2, 22, "") "," FIELD("first", 8, 24, "moment") "," FIELD("last", 8, 48, "moment") "," FIELD("family", 4, 32, "") ","
	FIELD("reason", 4, 36, "") "," FIELD("count", 4, 40, "") "]},"
	KIND(513, "sched_run", SCHED) ","
	KIND(514, "sched_off", SCHED "," FIELD("wake", 8, 48, "moment")) ","
	KIND(515, "sched_throttle", "," FIELD("periods", 4, 32, "") "," FIELD("throttled_periods", 4, 36, "") ","
				    FIELD("since", 8, 48, "moment")) ","
	KIND(769, "cuda_sync", WAIT) ","
	KIND(1025, "gil_wait", WAIT "," FIELD("gil", 8, 48, "hex") "," FIELD("dropper", 4, 36, "") "," FIELD("holder", 4, 40, "")
			       "," FIELD("result", 4, 32, "") "," FIELD("number", 4, 56, "") "," FIELD("locked", 4, 60, ""))
	"]}";
/* clang-format on */

enum { LOSS = 3, RUN = 513, OFF = 514, THROTTLE = 515, CUDA = 769, GIL = 1025 };
enum { RUNNABLE, SLEEP, BLOCKED };
enum { RING_FULL = 1, READ = 9 }; /* enum loss_reason */
#define LOST(at, first, until, family, why)                                                                 \
	.time = (at), .id = LOSS, .start = (first), .wake = (until), .state = (family), .waker_pid = (why), \
	.waker_tid = 1

struct record {
	u64 time;
	u32 pid, tid;
	u16 id, probe, cpu, flags;
	u64 start;
	u32 state, waker_pid, waker_tid, stack;
	u64 wake;
	u32 number, locked;
};

static struct made_trace made;
static struct trace_facts facts;
static struct query query;

static inline void forget(void)
{
	made_trace__free(&made);
}

/* A trace of these events, read for its whole time. */
static inline bool prepare(const struct record *records, u32 n)
{
	if (!made_trace__of(&made, schema_json, records, sizeof(*records), n))
		return false;
	facts = (struct trace_facts){ 0 };
	query = (struct query){ .trace = made.trace, .names = made.names, .facts = &facts };
	return true;
}

/* The result of reading a trace */
static struct read {
	struct activity *activity;
	char text[4096];
	u32 tid; /* of the text */
	u64 at[8], sum[8]; /* of each thread: the end of the last interval, and the total */
	u64 states[8][4];
	u32 begun[8];
	u64 held[8]; /* of waits for a GIL, by the thread that held it */
	bool torn; /* an interval did not begin at the end of the last one, or was empty */
} r;

static int take(const struct activity_interval *i, void *arg)
{
	static const char *const states[] = { "run", "want", "wait", "?" };
	u32 t = i->thread.tid % 8;
	size_t used = strlen(r.text);

	r.torn |= i->from >= i->to || (r.at[t] && r.at[t] != i->from);
	r.at[t] = i->to;
	r.sum[t] += i->to - i->from;
	r.states[t][i->state] += i->to - i->from;
	r.begun[t] += i->is_first_part;
	if (i->cause == ACTIVITY_GIL)
		r.held[i->caused_by.tid % 8] += i->to - i->from;
	if (i->thread.tid != r.tid)
		return 0;
	snprintf(r.text + used, sizeof(r.text) - used, "%s%llu-%llu %s %s%s%s", used ? ", " : "", i->from, i->to,
		 states[i->state], activity__name(r.activity, i->reason), i->call ? " after " : "",
		 i->call ? activity__name(r.activity, i->call) : "");
	used = strlen(r.text);
	if (i->caused_by.tid)
		snprintf(r.text + used, sizeof(r.text) - used, " by %u/%u", i->caused_by.tid, i->caused_by_stack);
	if (i->stack)
		snprintf(r.text + used + strlen(r.text + used), 32, " at %u", i->stack);
	return 0;
}

static inline const char *read_all(u32 tid, u32 flags, u32 window)
{
	u32 before = activity_window, most = activity_windows_max;
	int err;

	r = (struct read){ .tid = tid };
	activity_window = window;
	activity_windows_max = ~0u;
	err = activity__new(&r.activity, &query, flags);
	if (!err)
		err = activity__read(r.activity, take, NULL);
	activity__free(r.activity);
	activity_window = before;
	activity_windows_max = most;
	return err ? "failed" : r.text;
}
