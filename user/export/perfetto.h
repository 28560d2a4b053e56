/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perfetto's trace format, within the exporter. Field numbers are those of its
 * public protos (protos/perfetto/trace/, v58).
 *
 *	perfetto.c		which event is drawn how
 *	perfetto_out.c		packets, frames, interned texts
 *	perfetto_tracks.c	processes, threads and tracks; which spans nest
 *	perfetto_slices.c	spans, instants, their arguments, flows
 *	perfetto_sched.c	the scheduler's own tracks
 *	perfetto_marks.c	losses, counters
 *	perfetto_stacks.c	samples, stacks of slices
 *	perfetto_gil.c		tracks `GIL blame`: which code held the GIL during each wait
 *	perfetto_gpu.c		the work of GPUs, and the calls that launched it
 *	perfetto_gpu_counters.c	counters of GPUs: use, memory, what could not be recorded of them
 *	perfetto_torch.c	memory of tensors, flows to backward nodes, training steps
 *
 * A .zst is a sequence of zstd frames, each of which can be read alone: what a packet refers to (names, tracks,
 * threads) is emitted again in the packet's frame. So for each of these the number of the last frame that has it is
 * stored.
 */
#pragma once

#include <zstd.h>

#include "export/export.h"
#include "export/gpus.h"
#include "export/lane.h"
#include "export/protobuf.h"
#include "export/torch_flows.h"
#include "export/value.h"
#include "model/meaning.h"
#include "model/order.h"
#include "model/sched_span.h"

/* TracePacket */
enum {
	PACKET_FTRACE_EVENTS = 1,
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_SYSTEM_INFO = 45,
	PACKET_GPU_COUNTER = 52,
	PACKET_GPU_STAGE = 53,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	PACKET_TRACE_UUID = 89,
	PACKET_GPU_INFO = 128,
};

/* InternedData: the kinds of interned texts */
enum intern {
	INTERN_CATEGORY = 1,
	INTERN_NAME = 2,
	INTERN_ARGUMENT = 3,
	INTERN_FUNCTION = 5,
	INTERN_BUILD_ID = 16,
	INTERN_PATH = 17, /* of a mapping */
	INTERN_SOURCE = 18,
	INTERN_STRING = 29,
	INTERN_LAUNCH_ARGUMENT = 1001,
};

/* The key of an interned text: its address, or if that is not stable, the stack or thread that it names or its hash. */
enum intern_by { BY_ADDRESS, BY_STACK, BY_THREAD, BY_TEXT };

/* Kinds of tracks, beside the ids of events */
enum {
	TRACK_PROCESS = 0x10000,
	TRACK_OWN, /* parent of the tracks up to TRACK_LAST_OWN */
	TRACK_LOSSES,
	TRACK_LOST_RECORDS,
	TRACK_CPU_TIME,
	TRACK_PROBES_TIME,
	TRACK_MEMORY,
	TRACK_WRITTEN,
	TRACK_LAST_OWN = TRACK_WRITTEN,
	TRACK_GIL_WAITERS,
	TRACK_GIL_BLAME,
	TRACK_RELEASED,
	TRACK_GPU_MEMORY,
	TRACK_GPU_CLOCK,
	TRACK_GPU_LOST,
	TRACK_GPU_HOST_TIME,
	TRACK_TORCH_MEMORY,
	TRACK_TORCH_STEPS,
	TRACK_FINDINGS,
};

struct track {
	u64 uuid;
	u32 frame; /* frame in which it was last described */
	u32 named; /* of a process: frame in which one of its threads was last described */
	struct lane lane;
};

/* Something that is emitted once per frame. */
struct interned {
	u32 number, frame; /* frame in which it was last emitted */
};

struct clock_step {
	u64 monotonic; /* time from which it holds */
	u64 ahead; /* ns by which CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC */
};

struct perfetto {
	struct export *e;
	const struct schema *schema;
	struct order *order;
	FILE *out;
	int err; /* of a write */
	struct pb packet, interned, descriptor;
	u32 frame; /* its number, from 1 */
	bool is_frame_new; /* this frame has no packet on the track events' sequence yet */
	u64 frame_bytes;
	ZSTD_CCtx *zstd; /* NULL: no compression */
	char *compressed;
	struct clock_step *clocks; /* by time */
	u32 n_clocks;
	struct {
		u64 monotonic, realtime;
	} clock; /* the snapshot written last */
	struct map interns; /* struct intern_key -> struct interned */
	struct map tracks; /* struct track_key -> struct track */
	struct map mappings, frames, callstacks; /* perfetto_stacks.c */
	u32 defaults_frame; /* frame in which the samples' defaults were emitted last */
	struct map containers; /* u32 pid -> u32 string id */
	struct map build_ids; /* u64 hash of a path -> const char *, hexadecimal */
	struct sched_span_fields run_fields, off_fields;
	struct sched_cpu *cpus; /* by number */
	u32 n_cpus;
	u64 unordered; /* number of runs left out, which overlap another on their CPU */
	struct gil_counts *gils;
	u64 lost, lost_time;
	struct gpus gpus;
	bool correlates; /* the trace has GPU work, to which calls refer */
	struct gpu_drawing *gpu; /* perfetto_gpu.c */
	struct gpu_counters *gpu_counters; /* perfetto_gpu_counters.c */
	struct perfetto_torch *torch; /* perfetto_torch.c */
};

/* perfetto_out.c. Between the begin and end of a packet, fields are added to p->packet. */
int perfetto__open(struct perfetto *p);
int perfetto__close(struct perfetto *p);
/* Begins a packet; time is CLOCK_MONOTONIC, 0: the packet has none. */
void packet__begin(struct perfetto *p, u64 time);
void packet__end(struct perfetto *p, bool on_sequence);
/* Ends the frame if it is large; later packets go into the next one. Not allowed within a packet. */
void perfetto__maybe_next_frame(struct perfetto *p);
/* Returns the number of a text whose address is stable; valid in this packet. */
u64 perfetto__intern(struct perfetto *p, enum intern what, const char *text, size_t len);
/* Returns the number of a text that is identified by key; valid in this packet. */
u64 perfetto__intern_by(struct perfetto *p, enum intern what, enum intern_by by, u64 key, const void *data, size_t len);
/* Returns the number of a key that is emitted once per frame; sets *must_emit if this packet has to contain it. */
u64 perfetto__number(struct perfetto *p, struct map *interned, const void *key, bool *must_emit);
int perfetto__load_clocks(struct perfetto *p);
u64 perfetto__boottime(const struct perfetto *p, u64 monotonic);
void perfetto__put_clocks(struct perfetto *p, u64 monotonic, u64 realtime);

/* perfetto_tracks.c. These return NULL without memory. */
int perfetto__load_containers(struct perfetto *p);
struct track *perfetto__thread(struct perfetto *p, u32 pid, u32 tid);
/* Returns a thread's track for an instant: viewers put processes with only instants last. */
struct track *perfetto__thread_of_instant(struct perfetto *p, u32 pid, u32 tid);
void perfetto__put_root(struct perfetto *p);
/* Describes the frame's processes that have only instants. */
void perfetto__put_idle_processes(struct perfetto *p);
/* Returns a track of a process (pid 0: of none). name and unit (of a counter, else NULL) are shown to users. */
struct track *perfetto__track(struct perfetto *p, u32 pid, u32 kind, u32 number, const char *name, const char *unit);
/*
 * Returns the thread's own track if the span fits on it, or one beneath it. perfetto__find_track does not reserve the
 * span's time on the track; perfetto__reserve does. The others reserve it at once, and the span must be written next.
 */
struct track *perfetto__find_track(struct perfetto *p, u32 pid, u32 tid, const struct schema_event *e,
				   const struct interval *span);
void perfetto__reserve(struct perfetto *p, struct track *t, const struct interval *span);
struct track *perfetto__reserve_track(struct perfetto *p, u32 pid, u32 tid, const struct schema_event *e,
				      const struct interval *span);
/* Returns t if the span fits on it, or a track of that kind and name beneath the thread's. */
struct track *perfetto__reserve_near(struct perfetto *p, struct track *t, u32 pid, u32 tid, u32 kind, const char *name,
				     const struct interval *span);
struct track *perfetto__reserve_thread(struct perfetto *p, u32 pid, u32 tid, u32 kind, const char *name,
				       const struct interval *span);
struct track *perfetto__reserve_process(struct perfetto *p, u32 pid, u32 kind, const char *name,
					const struct interval *span);
struct track *perfetto__reserve_global(struct perfetto *p, u32 kind, const char *name, const struct interval *span);
void perfetto__free_tracks(struct perfetto *p);

/* perfetto_slices.c */
enum track_event_type { TRACK_EVENT_BEGIN = 1, TRACK_EVENT_END = 2, TRACK_EVENT_INSTANT = 3, TRACK_EVENT_COUNTER = 4 };
void perfetto__slice(struct perfetto *p, const struct view *v);
/* Begins a packet with a track event; add fields to p->packet, then call track_event__end. */
size_t track_event__begin(struct perfetto *p, u64 time, const struct track *t, enum track_event_type type);
void track_event__end(struct perfetto *p, size_t at);
/* Add fields: the event's name, copied; an argument, whose name must outlive the export; a callstack, 0: none. */
void track_event__name(struct perfetto *p, const char *name);
void track_event__argument(struct perfetto *p, const char *name, const char *text);
void track_event__callstack(struct perfetto *p, u64 callstack);
void track_event__category(struct perfetto *p, const char *category);
/* Adds an end of the flow that begins at the slice or wait which began there. */
void track_event__flow(struct perfetto *p, const struct drawn_place *from, bool is_last);

/* perfetto_stacks.c */
int perfetto__open_stacks(struct perfetto *p);
int perfetto__sample(struct perfetto *p, const struct view *v);
/* Returns the number of a stack, valid in this packet; 0: the trace does not have the stack. */
u64 perfetto__callstack(struct perfetto *p, u32 stack);
void perfetto__free_stacks(struct perfetto *p);

/* perfetto_gil.c: reads the trace once more. */
int perfetto__blame(struct perfetto *p);

/* perfetto_findings.c */
int perfetto__findings(struct perfetto *p);

/* perfetto_sched.c */
int perfetto__run(struct perfetto *p, const struct view *v);
int perfetto__off(struct perfetto *p, const struct view *v);
/* Emits that a number belongs to a new thread. Returns 0 or -ENOMEM. */
int perfetto__fork(struct perfetto *p, const struct view *v);
/* The same if the process has another id from this exec on */
int perfetto__exec(struct perfetto *p, const struct view *v);
/* Writes the buffered switches. last: at the end of the trace. */
void perfetto__flush_sched(struct perfetto *p, bool last);
void perfetto__free_sched(struct perfetto *p);

/* perfetto_gpu.c: reads the trace once more. */
void perfetto__put_gpus(struct perfetto *p);
int perfetto__gpu_work(struct perfetto *p);
/* Marks a slice as a possible launch of GPU work. */
void track_event__submission(struct perfetto *p, u32 pid, u32 tid, u64 start);
void perfetto__free_gpu(struct perfetto *p);

/* perfetto_gpu_counters.c */
void perfetto__gpu_busy(struct perfetto *p, u32 gpu, const struct interval *span);
int perfetto__gpu_memory(struct perfetto *p, const struct gpu_allocation *a);
int perfetto__gpu_host_time(struct perfetto *p, const struct gpu_work *w);
void perfetto__gpu_clock(struct perfetto *p, const struct view *v);
void perfetto__gpu_dropped(struct perfetto *p, const struct view *v);
void perfetto__gpu_shim(struct perfetto *p, const struct view *v);
/* Writes a value of event nvml_value as a counter of its GPU. 0 or -ENOMEM */
int perfetto__gpu_metric(struct perfetto *p, const struct view *v);
void perfetto__finish_gpu_counters(struct perfetto *p, const struct gpu_coverage *coverage);
void perfetto__free_gpu_counters(struct perfetto *p);

/* perfetto_torch.c */
int perfetto__torch_alloc(struct perfetto *p, const struct view *v);
/* Adds the begin or end of a flow to the slice of an operator or backward node, which begins there. */
void track_event__torch_flow(struct perfetto *p, const struct view *v, const struct drawn_place *at);
/* Reads the trace once more, and writes training steps. 0 or negative errno. */
int perfetto__torch_steps(struct perfetto *p);
void perfetto__free_torch(struct perfetto *p);

/* perfetto_marks.c */
void perfetto__mark(struct perfetto *p, const struct interval *span, const char *text);
void perfetto__counter(struct perfetto *p, u64 time, const struct track *t, u64 value);
void perfetto__loss(struct perfetto *p, const struct view *v);
void perfetto__cost(struct perfetto *p, const struct view *v);
int perfetto__count_gil(struct perfetto *p, const struct view *v);
/* Writes the marks and counters that are known only at the end. */
void perfetto__finish_marks(struct perfetto *p);
void perfetto__free_marks(struct perfetto *p);
