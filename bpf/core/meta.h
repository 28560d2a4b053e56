/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events about the trace itself, family 00. The worker writes them; they are declared like any other event, so that a
 * reader needs no second mechanism.
 */
#pragma once

#include "event.h"

FAMILY(core, 0x00, FAMILY_DEFAULT, "metadata of the trace");

struct meta_string {
	struct event event;
	u32 string DOC("its id in other events' fields of unit `string`; 0 is the empty string");
	char text[];
} EVENT(meta_string, 0x0001, "a text; written once per file, before its first use");

struct meta_clock {
	struct event event;
	u64 monotonic UNIT(moment) DOC("CLOCK_MONOTONIC");
	u64 boottime UNIT(ns) DOC("CLOCK_BOOTTIME of the initial time namespace");
	u64 realtime UNIT(ns) DOC("CLOCK_REALTIME");
	u64 error UNIT(ns) DOC("time between the first and the last of these readings");
} EVENT(meta_clock, 0x0002, "one moment on all clocks, so that traces of several machines merge");

enum loss_reason {
	LOSS_RING_FULL = 1, /* the ring had no room for a record */
	LOSS_STORAGE = 2, /* no memory for the thread's state in the kernel */
	LOSS_DEPTH = 3, /* a thread had more than CALL_DEPTH calls open */
	LOSS_RECURSION = 4, /* the kernel skipped a program because it was already running on that CPU */
	LOSS_RETURN = 5, /* a call's return was not seen, so the end in its record is not the true one */
	LOSS_MAP_FULL = 6, /* a BPF map had no room */
	LOSS_MMAP = 7, /* mmap records were lost: sonde may have missed a library */
	LOSS_ATTACH_GAP = 8, /* attach gap, from a library's first mapping until it was probed; count is libraries */
	LOSS_READ = 9, /* the target's memory could not be read */
	LOSS_REFUSED = 10, /* the record has a kind or size that the schema of the trace does not have */
	LOSS_TORN = 11, /* a stack changed while it was read, or was inconsistent */
	LOSS_NESTED = 12, /* a third stack of one thread was to be read while two were being read */
	LOSS_BUDGET = 13, /* the limit of sonde's memory was reached, or a file can't be parsed */
	LOSS_UNKNOWN =
		/*
		 * the process of a stack was not known yet to run a CPython, or runs one whose stacks can't be walked,
		 * or it had ended before its functions were named
		 */
	14,
	LOSS_UNPROBED = 15, /* functions of a library have no probes; count is libraries */
	LOSS_SHARE =
		/*
		 * a file's examination was postponed: it takes long, or the files of its user have used their share
		 * of a CPU
		 */
	16,
	LOSS_RATE = 17, /* more stacks were to be read than the option --FAMILY-rate allows */
	LOSS_LATE = 18, /* the recording ended before sonde had handled the record */
	LOSS_SOURCE =
		19, /* a library or process outside of sonde that is read at intervals failed; count is readings */
	LOSS_REASONS
};

struct meta_loss {
	struct event event;
	u64 first UNIT(moment) DOC("start of the time range in which the records were lost");
	u64 last UNIT(moment) DOC("its end");
	u64 count DOC("records lost in this range");
	u16 family DOC("family id");
	u16 object DOC("object id for reasons LOSS_ATTACH_GAP and LOSS_UNPROBED, else 0");
	enum loss_reason reason;
} EVENT(meta_loss, 0x0003, "records that are missing; pid is their process, 0: not known, or several");

enum attach_method {
	ATTACH_NONE = 0,
	ATTACH_SESSION = 1, /* one uprobe_session link per program */
	ATTACH_MULTI = 2, /* uprobe_multi links */
	ATTACH_PERF = 3, /* one perf event per site */
	ATTACH_KERNEL = 4, /* a tracepoint */
};

/* How `why` of an object begins that contains a libcudart without symbols. */
#define WHY_HIDDEN_CUDART "libcudart is linked into it and its symbols are stripped"

struct meta_object {
	struct event event;
	u64 first UNIT(moment) DOC("first mapping seen; equal to live if that was before tracing began");
	u64 live UNIT(moment) DOC("every call that begins later is counted; 0: nothing was attached");
	u64 dev UNIT(hex) DOC("device of the backing inode, kernel encoding (major << 20 | minor)");
	u64 ino DOC("backing inode");
	u32 path UNIT(string) DOC("as the first process that mapped it sees it");
	u32 build_id UNIT(string) DOC("GNU build id, hexadecimal");
	u32 why UNIT(string) DOC("what could not be attached, and the reason; empty if all could");
	u32 sites DOC("number of probed sites");
	u16 object DOC("id of this object");
	u16 family DOC("family id; an object that serves two families has a record for each");
	enum attach_method method;
	u8 ahead DOC("1: found on disk and probed at the start, before any process mapped it");
} EVENT(meta_object, 0x0004, "a mapped file that was probed");

struct meta_probe {
	struct event event;
	u32 name UNIT(string) DOC("the function's name, or the tracepoint's");
	u32 program UNIT(string) DOC("BPF program");
	u32 section UNIT(string) DOC("where the program says it attaches to");
	u16 number DOC("number in the field `probe` of events");
	u16 family DOC("family id");
} EVENT(meta_probe, 0x0005, "one attach point by name");

struct meta_hits {
	struct event event;
	u64 hits DOC("times the probe ran, whole trace");
	u64 skipped DOC("of these, times it recorded nothing: the process is not selected, or the call is nested");
	u16 number DOC("probe");
} EVENT(meta_hits, 0x0006, "how often a probe ran, written at the end");

struct meta_cost {
	struct event event;
	u64 wall UNIT(ns) DOC("time since tracing was live: since what was found at the start was attached");
	u64 user UNIT(ns) DOC("CPU time in user space of the process that writes the trace");
	u64 system UNIT(ns) DOC("its CPU time in the kernel");
	u64 probes UNIT(ns) DOC("estimated: hits of each probe times its calibrated cost");
	u64 memory UNIT(bytes) DOC("peak resident memory of sonde");
	u64 written UNIT(bytes) DOC("trace file so far");
	u64 hits DOC("probe hits, all probes");
	u64 children UNIT(ns) DOC("CPU time of sonde's other processes: those that attach, open and parse files");
} EVENT(meta_cost, 0x0007, "what tracing cost so far");

enum end_reason {
	END_SIGNAL = 1,
	END_DURATION = 2,
	END_TARGETS = 3, /* every -p target has ended */
	END_COMMAND = 4,
	END_ERROR = 5,
	END_SCHEDULE = 6, /* --schedule: all cycles are over */
	END_RANGES = 7, /* --capture-range: all requested ranges have ended */
};

struct meta_end {
	struct event event;
	enum end_reason reason;
	u64 stop UNIT(moment)
		DOC("the end of the traced time, after which probes were detached; 0: tracing never was live");
} EVENT(meta_end, 0x0008, "the recording was stopped in order; absent from a trace that was cut off");

struct meta_member {
	struct event event;
	u8 member DOC("1: it is recorded from this time on, 0: no longer");
	u8 exec DOC("1: because it executed another program, whose name comm is");
	char comm[16] DOC("its name from this time on");
} EVENT(meta_member, 0x0009,
	"the filters select a process from this time on, or no longer, because its name or cgroup changed");

/*
 * Stacks form a tree: a field of unit `stack` holds the id of the innermost frame (0: no stack), and each frame names
 * its caller. Equal stacks usually have the same id, but a stack or function may get a second id, as the tables in
 * BPF and in the worker evict entries that are not used. Two functions are the same if all fields except the id are
 * equal. A reader reads all frames and code before the events that refer to them.
 */
enum frame_kind {
	FRAME_PYTHON = 1,
	FRAME_NATIVE = 2, /* user-space native code: C, C++, ... */
	FRAME_KERNEL = 3,
	FRAME_CUT = 4, /* stands for frames that are left out because the stack is deeper than the walk's limit */
};

/* The name of the function that stands for native frames that could not be found on top of a Python stack. */
#define FRAMES_MISSING "[frames missing]"

struct meta_code {
	struct event event;
	u32 code UNIT(code) DOC("id that meta_frame's code holds");
	u32 name UNIT(string) DOC("Python: qualified name; native: symbol; empty: not known");
	u32 file UNIT(string) DOC("Python: source file; native: object file");
	u32 line DOC("first line in the file; 0: not known");
	enum frame_kind kind;
	u32 source UNIT(string) DOC("native: source file, from the object file's debug information; empty: not known");
	u64 start UNIT(hex) DOC("native: address of the function's first instruction in its file; Python: 0");
} EVENT(meta_code, 0x000a, "a function that stacks go through");

struct meta_frame {
	struct event event;
	u64 offset UNIT(hex) DOC("of the instruction: Python: in the bytecode, native: in the object file; bytes");
	u32 frame UNIT(stack) DOC("id of this frame, and of the stack that ends with it");
	u32 caller UNIT(stack) DOC("the frame that called it, 0: it is the outermost");
	u32 code UNIT(code) DOC("function; 0: not known");
	u32 line DOC("being executed: of the Python file, of the native function's source; 0: not known");
	enum frame_kind kind;
} EVENT(meta_frame, 0x000b, "a frame of a stack");

struct meta_refused {
	struct event event;
	u32 program UNIT(string) DOC("BPF program");
	u32 why UNIT(string) DOC("the kernel's reason: the end of its verifier's log, or the error");
	u32 lacks UNIT(string) DOC("what the trace lacks without it");
	u16 family DOC("family id");
	u8 all DOC("1: the family records nothing without it");
} EVENT(meta_refused, 0x000c, "a program that this kernel refused, or has no tracepoint for");

struct meta_table {
	struct event event;
	u64 entries DOC("entries that there are now");
	u64 max DOC("entries at most; 0: bounded by the processes and threads that there are, or by bytes");
	u64 bytes UNIT(bytes) DOC("memory that the entries take, approximately");
	u64 evicted DOC("entries removed since the recording began");
	u32 table UNIT(string) DOC("what the table contains");
} EVENT(meta_table, 0x000d, "the size of one of sonde's own tables");

struct meta_pause {
	struct event event;
	u64 start UNIT(moment) DOC("nothing of targets was recorded from here to the event's time");
} EVENT(meta_pause, 0x000e, "a part of the traced time in which the recording was paused");

struct meta_mark {
	struct event event;
	u32 text UNIT(string) DOC("what the user marks");
} EVENT(meta_mark, 0x0013, "a moment that the user marked (sonde control PID mark TEXT)");

/* What the record of a capture range states. */
enum range_change {
	RANGE_BEGINS = 1,
	RANGE_ENDS = 2,
	RANGE_UNSEEN = 3, /* a range ends whose begin was not seen: nothing of it was recorded */
};

struct meta_range {
	struct event event;
	u64 since UNIT(moment) DOC("when a range that ends began; 0: it begins, or its begin was not seen");
	u32 number DOC("of the process's ranges, from 1 on; 0: its begin was not seen");
	enum range_change change;
} EVENT(meta_range, 0x0012, "a capture range of a process begins or ends (record --capture-range)");

struct meta_unmeasured {
	struct event event;
	u64 start UNIT(moment) DOC("no sched_run, sched_off, sample_off and sample_wake from here to the event's time");
} EVENT(meta_unmeasured, 0x000f,
	"a part of the traced time without switches, waits and wake-ups of families sched and sample, to limit their cost");

/* Warnings that a trace holds; further ones are only printed while it is recorded. */
#define WARNINGS_MAX 256

struct meta_warning {
	struct event event;
	u32 text UNIT(string) DOC("what could not be read, examined or attached, and why");
} EVENT(meta_warning, 0x0010, "a warning that the recording printed");

/* Bytes of a line of source text in a trace; a longer one is cut. */
#define SOURCE_LINE_MAX 200

struct meta_source {
	struct event event;
	u32 file UNIT(string) DOC("source file, as in meta_code");
	u32 line DOC(
		"of the file; 0: the texts of its lines are not valid, as processes have different files of this path");
	u32 text UNIT(string) DOC("the line without indentation, cut if it is long");
} EVENT(meta_source, 0x0011, "the text of a line of the user's code that a frame is in");
