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
 *	perfetto_gil.c		who held the GIL while whom waited
 *	perfetto_gpu.c		what GPUs did, and the calls that asked for it
 *	perfetto_gpu_counters.c	how busy they were, their memory, what is not known of them
 *
 * A .zst is a row of zstd frames, each of which stands alone: what a packet
 * refers to (names, tracks, threads) is emitted again in the frame. So everything
 * emitted remembers its last frame.
 */
#ifndef SONDE_EXPORT_PERFETTO_H
#define SONDE_EXPORT_PERFETTO_H

#include <zstd.h>

#include "export/export.h"
#include "export/gpus.h"
#include "export/lane.h"
#include "export/protobuf.h"
#include "export/value.h"
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

/* InternedData: what a text is interned as */
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

/* Texts without a stable address are interned by what they name. */
enum intern_by { BY_ADDRESS, BY_STACK, BY_THREAD };

/* Kinds of tracks beside events' ids */
enum {
	TRACK_PROCESS = 0x10000,
	TRACK_OWN, /* above those up to TRACK_LAST_OWN */
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
};

struct track {
	u64 uuid;
	u32 frame; /* in which it was described last */
	u32 named; /* of a process: the frame in which a thread of it was described last */
	struct lane lane;
};

/* Something that is emitted once per frame. */
struct interned {
	u32 number, frame; /* frame of the file in which it was emitted last */
};

struct clock_step {
	u64 monotonic; /* from here on */
	u64 ahead; /* ns that CLOCK_BOOTTIME is ahead of it */
};

struct perfetto {
	struct export *e;
	const struct schema *schema;
	struct order *order;
	FILE *out;
	int err; /* of a write */
	struct pb packet, interned, descriptor;
	u32 frame; /* its number, from 1 */
	bool fresh; /* nothing was written on the sequence of track events in this frame */
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
	u64 unordered; /* runs left out: they overlap another on their CPU */
	struct gil_counts *gils;
	u64 lost, lost_time;
	struct gpus gpus;
	bool correlates; /* there is work of GPUs: calls say which is theirs */
	struct gpu_drawing *gpu; /* perfetto_gpu.c */
	struct gpu_counters *gpu_counters; /* perfetto_gpu_counters.c */
};

/* perfetto_out.c. A packet is begun and ended; in between, fields go to p->packet. */
int perfetto__open(struct perfetto *p);
int perfetto__close(struct perfetto *p);
/* May begin a new frame, and then a packet; time is CLOCK_MONOTONIC, 0: the packet has none. */
void packet__begin(struct perfetto *p, u64 time);
void packet__end(struct perfetto *p, bool on_sequence);
/* Ends the frame if it is large; what follows is emitted in the next one. Not within a packet. */
void perfetto__maybe_next_frame(struct perfetto *p);
/* The number of a text that stays where it is; valid in this packet. */
u64 perfetto__intern(struct perfetto *p, enum intern what, const char *text, size_t len);
/* The same of a text that does not stay, by a number that does. */
u64 perfetto__intern_by(struct perfetto *p, enum intern what, enum intern_by by, u64 key, const void *data, size_t len);
/* The number of something that is emitted once per frame; *again: emit it in this packet. */
u64 perfetto__number(struct perfetto *p, struct map *interned, const void *key, bool *again);
int perfetto__load_clocks(struct perfetto *p);
u64 perfetto__boottime(const struct perfetto *p, u64 monotonic);
void perfetto__put_clocks(struct perfetto *p, u64 monotonic, u64 realtime);

/* perfetto_tracks.c. NULL: no memory. */
int perfetto__load_containers(struct perfetto *p);
struct track *perfetto__thread(struct perfetto *p, u32 pid, u32 tid);
/* The same, but viewers put the process last as long as nothing else of it is drawn. */
struct track *perfetto__thread_of_instant(struct perfetto *p, u32 pid, u32 tid);
void perfetto__put_root(struct perfetto *p);
/* Describes the frame's processes that hold nothing but instants. */
void perfetto__put_idle_processes(struct perfetto *p);
/* Of a process, 0: of none. name and unit (a counter's, else NULL) are shown to the user. */
struct track *perfetto__track(struct perfetto *p, u32 pid, u32 kind, u32 number, const char *name, const char *unit);
/*
 * A thread's own track if the span fits on it, else one beneath it. perfetto__find_place does not reserve it until
 * perfetto__take_place; all others reserve it at once, and the span has to be written next.
 */
struct track *perfetto__find_place(struct perfetto *p, u32 pid, u32 tid, const struct schema_event *e,
				   const struct interval *span);
void perfetto__take_place(struct perfetto *p, struct track *t, const struct interval *span);
struct track *perfetto__place(struct perfetto *p, u32 pid, u32 tid, const struct schema_event *e,
			      const struct interval *span);
/* t if the span fits on it, else a track of that kind and name beneath the thread's. */
struct track *perfetto__place_on(struct perfetto *p, struct track *t, u32 pid, u32 tid, u32 kind, const char *name,
				 const struct interval *span);
struct track *perfetto__place_thread(struct perfetto *p, u32 pid, u32 tid, u32 kind, const char *name,
				     const struct interval *span);
struct track *perfetto__place_process(struct perfetto *p, u32 pid, u32 kind, const char *name,
				      const struct interval *span);
struct track *perfetto__place_global(struct perfetto *p, u32 kind, const char *name, const struct interval *span);
void perfetto__free_tracks(struct perfetto *p);

/* perfetto_slices.c */
enum event_type { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_INSTANT = 3, EVENT_COUNTER = 4 };
void perfetto__slice(struct perfetto *p, const struct view *v);
/* A packet that holds a track event, up to its name; put more into p->packet, then event__end. */
size_t event__begin(struct perfetto *p, u64 time, const struct track *t, enum event_type type);
void event__end(struct perfetto *p, size_t at);
/* Fields of the event: a name that is copied; an argument whose name must outlive the export; 0: no callstack. */
void event__name(struct perfetto *p, const char *name);
void event__argument(struct perfetto *p, const char *name, const char *text);
void event__callstack(struct perfetto *p, u64 callstack);
void event__category(struct perfetto *p, const char *category);

/* perfetto_stacks.c */
int perfetto__open_stacks(struct perfetto *p);
int perfetto__sample(struct perfetto *p, const struct view *v);
/* The number of a stack, which is not 0; valid in this packet. 0: the trace does not have it. */
u64 perfetto__callstack(struct perfetto *p, u32 stack);
void perfetto__free_stacks(struct perfetto *p);

/* perfetto_gil.c: reads the trace once more. */
int perfetto__blame(struct perfetto *p);

/* perfetto_sched.c */
int perfetto__run(struct perfetto *p, const struct view *v);
int perfetto__off(struct perfetto *p, const struct view *v);
/* Says that a number is another thread's from now on. 0 or -ENOMEM. */
int perfetto__fork(struct perfetto *p, const struct view *v);
/* Writes what waits. last: there is no more, in the whole trace. */
void perfetto__flush_sched(struct perfetto *p, bool last);
void perfetto__free_sched(struct perfetto *p);

/* perfetto_gpu.c: reads the trace once more. */
void perfetto__put_gpus(struct perfetto *p);
int perfetto__gpu_work(struct perfetto *p);
/* Field of a slice: it may have launched GPU work. */
void event__submission(struct perfetto *p, u32 pid, u32 tid, u64 start);
void perfetto__free_gpu(struct perfetto *p);

/* perfetto_gpu_counters.c */
void perfetto__gpu_busy(struct perfetto *p, u32 gpu, const struct interval *span);
int perfetto__gpu_memory(struct perfetto *p, const struct gpu_allocation *a);
int perfetto__gpu_host_time(struct perfetto *p, const struct gpu_work *w);
void perfetto__gpu_clock(struct perfetto *p, const struct view *v);
void perfetto__gpu_dropped(struct perfetto *p, const struct view *v);
void perfetto__gpu_shim(struct perfetto *p, const struct view *v);
void perfetto__finish_gpu_counters(struct perfetto *p, const struct gpu_coverage *coverage);
void perfetto__free_gpu_counters(struct perfetto *p);

/* perfetto_marks.c */
void perfetto__mark(struct perfetto *p, const struct interval *span, const char *text);
void perfetto__counter(struct perfetto *p, u64 time, const struct track *t, u64 value);
void perfetto__loss(struct perfetto *p, const struct view *v);
void perfetto__cost(struct perfetto *p, const struct view *v);
int perfetto__count_gil(struct perfetto *p, const struct view *v);
/* At the end: what is missing there, and the counters' rest. */
void perfetto__finish_marks(struct perfetto *p);
void perfetto__free_marks(struct perfetto *p);

#endif
