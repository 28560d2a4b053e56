// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes each kind of event that Nsight has a table for, except GPU work and the calls that launch it. */
#include "export/nsight.h"

#include <string.h>

#include "model/syscalls.h"
#include "util/array.h"

#include "probes/sched/sched.h"

static const struct nsight_table os_calls = {
	"OSRT_API",
	"start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId! argumentsId!",
	"start,end,eventClass,globalTid,nameId,returnValue,nestingLevel,callchainId,argumentsId",
};

static const struct nsight_table cublas = {
	"CUBLAS_EVENTS",
	"start! end! eventClass! globalTid nameId!",
	"start,end,eventClass,globalTid,nameId",
};

static const struct nsight_table cudnn = {
	"CUDNN_EVENTS",
	"start! end! eventClass! globalTid nameId!",
	"start,end,eventClass,globalTid,nameId",
};

static const struct nsight_table switches = {
	"SCHED_EVENTS",
	"start! cpu! isSchedIn! globalTid threadState threadBlock",
	"start,cpu,isSchedIn,globalTid,threadState",
};

static const struct nsight_table samples = {
	"COMPOSITE_EVENTS",
	"id:p start! cpu threadState globalTid cpuCycles!",
	"start,cpu,threadState,globalTid,cpuCycles",
};

enum event_class { CLASS_OS = 27, CLASS_CUDNN = 28, CLASS_CUBLAS = 29 };
enum thread_state { STATE_UNKNOWN, STATE_RUNNING, STATE_SLEEP, STATE_BLOCKED, STATE_STOPPED, STATE_ENDED, STATE_READY };

/* nr */
static int put_syscall(struct nsight *n, const struct nsight_event *e)
{
	char name[128];

	if (e->is_untimed)
		return 0;
	syscalls__title(e->field[0], (u32)e->value[0], name, sizeof(name));
	return NSIGHT_PUT(n, &os_calls, N_TIME(e->start), N_TIME(e->time), N_NUMBER(CLASS_OS),
			  N_THREAD(n, e->pid, e->tid), N_NAME(name), N_NUMBER(e->result), N_NUMBER(0), N_NUMBER(0),
			  N_NUMBER(0));
}

static int put_math(struct nsight *n, const struct nsight_event *e, const struct nsight_table *t,
		    enum event_class class)
{
	if (e->is_open || !e->function)
		return 0;
	return NSIGHT_PUT(n, t, N_TIME(e->start), N_TIME(e->time), N_NUMBER(class), N_THREAD(n, e->pid, e->tid),
			  N_NAME(e->function));
}

static int put_cublas(struct nsight *n, const struct nsight_event *e)
{
	return put_math(n, e, &cublas, CLASS_CUBLAS);
}

static int put_cudnn(struct nsight *n, const struct nsight_event *e)
{
	return put_math(n, e, &cudnn, CLASS_CUDNN);
}

/* state */
static int put_run(struct nsight *n, const struct nsight_event *e)
{
	static const u8 states[] = {
		[SCHED_RUNNABLE] = STATE_READY,	 [SCHED_SLEEP] = STATE_SLEEP,	 [SCHED_BLOCKED] = STATE_BLOCKED,
		[SCHED_STOPPED] = STATE_STOPPED, [SCHED_TRACED] = STATE_STOPPED, [SCHED_DEAD] = STATE_ENDED,
		[SCHED_FROZEN] = STATE_BLOCKED,
	};
	u8 state = (u64)e->value[0] < ARRAY_LEN(states) ? states[e->value[0]] : STATE_UNKNOWN;
	int err = NSIGHT_PUT(n, &switches, N_TIME(e->start), N_NUMBER(e->cpu), N_NUMBER(1), N_THREAD(n, e->pid, e->tid),
			     N_NUMBER(STATE_RUNNING));

	if (err || e->is_open)
		return err;
	return NSIGHT_PUT(n, &switches, N_TIME(e->time), N_NUMBER(e->cpu), N_NUMBER(0), N_THREAD(n, e->pid, e->tid),
			  N_NUMBER(state));
}

/* period. The id is the number of the row in sonde's own table, too. */
static int put_sample(struct nsight *n, const struct nsight_event *e)
{
	return NSIGHT_PUT(n, &samples, N_TIME(e->time), N_NUMBER(e->cpu), N_NUMBER(STATE_RUNNING),
			  N_THREAD(n, e->pid, e->tid), N_NUMBER(e->value[0]));
}

struct kind {
	const char *event;
	const char *fields[8];
	int (*put)(struct nsight *n, const struct nsight_event *e);
};

static const struct kind kinds[] = {
	{ "syscall", { "nr" }, put_syscall },
	{ "sched_run", { "state" }, put_run },
	{ "sample_cpu", { "period" }, put_sample },
	{ "cublas_call", { NULL }, put_cublas },
	{ "cudnn_call", { NULL }, put_cudnn },
	{ "nvtx_range",
	  { "name", "domain", "category", "payload", "color", "payload_kind", "kind", "end_ns_tid" },
	  nsight__put_range },
	{ "nvtx_mark", { "name", "domain", "category", "payload", "color", "payload_kind" }, nsight__put_mark },
	{ "nvtx_category", { "name", "domain", "category" }, nsight__put_category },
	{ "torch_op", { NULL }, nsight__put_torch },
	{ "torch_node", { NULL }, nsight__put_torch },
	{ "torch_range", { NULL }, nsight__put_torch },
	{ "torch_step", { NULL }, nsight__put_torch },
	{ "nccl_collective", { NULL }, nsight__put_nccl },
	{ "nccl_p2p", { NULL }, nsight__put_nccl },
	{ "gil_wait", { NULL }, nsight__put_gil_wait },
	{ "gil_hold", { NULL }, nsight__put_gil_hold },
	{ "gpu_device", { NULL }, nsight__put_device },
	{ "gpu_context", { "context", "device", "null_stream" }, nsight__put_context },
	{ "gpu_stream", { "context", "stream", "priority", "stream_kind" }, nsight__put_stream },
	{ "gpu_sync", { "context", "stream", "correlation", "kind", "cuda_event", "event_sync" }, nsight__put_sync },
	{ "gpu_memory",
	  { "device", "context", "stream", "address", "bytes", "memory", "operation", "correlation" },
	  nsight__put_memory },
};

static const struct kind *find_kind(const char *event)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].event, event))
			return &kinds[i];
	return NULL;
}

int nsight__rows(struct nsight *n, const struct rows *rows)
{
	const struct schema_event *event = rows__event(rows);
	const struct kind *k = find_kind(event->name);
	struct common_fields f = common_fields__of(event);
	const struct schema_field *fields[8] = { NULL };
	int err = 0;

	if (!k)
		return 0;
	for (int i = 0; i < 8 && k->fields[i]; i++)
		fields[i] = schema_event__field(event, k->fields[i]);
	ROWS_WHILE(!err, v, rows) {
		u16 flags = (u16)view__s64(&v, f.flags);
		struct nsight_event e = {
			.view = &v,
			.time = (u64)view__s64(&v, f.time),
			.pid = (u32)view__s64(&v, f.pid),
			.tid = (u32)view__s64(&v, f.tid),
			.cpu = (u16)view__s64(&v, f.cpu),
			.is_open = flags & EVENT_OPEN,
			.is_untimed = flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION),
			.function = names__probe(n->s->e->names, (u16)view__s64(&v, f.probe)),
			.result = view__s64(&v, f.ret),
			.field = fields,
		};

		e.start = f.start ? (u64)view__s64(&v, f.start) : e.time;
		for (int i = 0; i < 8 && k->fields[i]; i++)
			e.value[i] = view__s64(&v, fields[i]);
		err = k->put(n, &e);
	}
	return err;
}
