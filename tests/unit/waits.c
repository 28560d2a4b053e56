// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cause of a time of a thread: the span with the highest rank, then the innermost, or none. */
#include "model/waits.h"
#include "test.h"
#include "trace_made.h"

#define FIELDS                                                                               \
	"{\"name\":\"time\",\"type\":\"unsigned\",\"size\":8,\"offset\":0,\"unit\":\"ns\"}," \
	"{\"name\":\"pid\",\"type\":\"unsigned\",\"size\":4,\"offset\":8},"                  \
	"{\"name\":\"tid\",\"type\":\"unsigned\",\"size\":4,\"offset\":12},"                 \
	"{\"name\":\"id\",\"type\":\"unsigned\",\"size\":2,\"offset\":16},"                  \
	"{\"name\":\"probe\",\"type\":\"unsigned\",\"size\":2,\"offset\":18},"               \
	"{\"name\":\"cpu\",\"type\":\"unsigned\",\"size\":2,\"offset\":20},"                 \
	"{\"name\":\"flags\",\"type\":\"unsigned\",\"size\":2,\"offset\":22},"               \
	"{\"name\":\"start\",\"type\":\"unsigned\",\"size\":8,\"offset\":24,\"unit\":\"ns\"}"

static const char schema_json[] =
	"{\"families\":[{\"id\":0,\"name\":\"core\",\"doc\":\"\",\"default\":true}],\"options\":[],\"enums\":[],\"events\":["
	"{\"id\":513,\"name\":\"sched_off\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":769,\"name\":\"cuda_sync\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":770,\"name\":\"cuda_copy\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":1025,\"name\":\"gil_wait\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":1027,\"name\":\"gil_hold\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":1537,\"name\":\"cudadrv_sync\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":2817,\"name\":\"python_gc\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":3841,\"name\":\"cut_log\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":2819,\"name\":\"python_thread_run\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":3074,\"name\":\"sample_off\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":3336,\"name\":\"gpu_call\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":2306,\"name\":\"net_accept\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":2049,\"name\":\"disk_io\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]},"
	"{\"id\":2053,\"name\":\"disk_task\",\"doc\":\"\",\"size\":32,\"fields\":[" FIELDS "]}]}";

struct record {
	u64 time;
	u32 pid, tid;
	u16 id, probe, cpu, flags;
	u64 start;
};

static struct waits *waits;
static struct made_trace made;
static char said[512];

static int feed(const struct rows *rows, void *arg)
{
	return waits__feed(arg, rows);
}

static int say(const struct wait_part *p, void *arg)
{
	size_t used = strlen(said);

	snprintf(said + used, sizeof(said) - used, "%s%llu-%llu %s", used ? ", " : "", p->from, p->to,
		 p->reason ? waits__reason(arg, p->reason) : "-");
	return 0;
}

static const char *explain_state(u32 tid, bool blocked, u64 from, u64 to)
{
	said[0] = 0;
	waits__explain(waits, waits__thread(waits, 1, tid), blocked, from, to, say, waits);
	return said;
}

static const char *explain(u32 tid, u64 from, u64 to)
{
	return explain_state(tid, false, from, to);
}

/* A trace of these spans, read into `waits`. */
static bool prepare(const struct record *records, u32 n)
{
	struct trace_filter filter = {};

	if (!made_trace__of(&made, schema_json, records, sizeof(*records), n) ||
	    waits__new(&waits, trace__schema(made.trace), made.names, NULL, false))
		return false;
	filter.kinds = waits__kinds(waits);
	return !trace__read(made.trace, &filter, feed, waits);
}

TEST(splits_a_wait_by_rank)
{
	static const struct record records[] = {
		{ .start = 100, .time = 200, .pid = 1, .tid = 1, .id = 769 },
		{ .start = 120, .time = 150, .pid = 1, .tid = 1, .id = 770 }, /* within it */
		{ .start = 140, .time = 145, .pid = 1, .tid = 1, .id = 1025 }, /* the GIL ranks above both */
		{ .start = 190, .time = 260, .pid = 1, .tid = 1, .id = 1025 },
		{ .start = 0, .time = 1000, .pid = 1, .tid = 2, .id = 770 }, /* another thread */
		{ .start = 10, .time = 20, .pid = 1, .tid = 2, .id = 769 },
		{ .start = 0, .time = 1000, .pid = 1, .tid = 4, .id = 770 },
		{ .start = 110, .time = 150, .pid = 1, .tid = 4, .id = 2049 },
		{ .start = 0, .time = 1000, .pid = 1, .tid = 5, .id = 2053 }, /* counters of a lifetime are no cause */
		{ .start = 0, .time = 1000, .pid = 1, .tid = 1, .id = 513 }, /* the scheduler's spans are no cause */
		/* nor are spans in which a thread may do anything, or that repeat another */
		{ .start = 0, .time = 1000, .pid = 1, .tid = 6, .id = 1027 },
		{ .start = 0, .time = 1000, .pid = 1, .tid = 6, .id = 2819 },
		{ .start = 0, .time = 1000, .pid = 1, .tid = 6, .id = 3074 },
		{ .start = 0, .time = 1000, .pid = 1, .tid = 6, .id = 3336 },
		{ .start = 0,
		  .time = 1000,
		  .pid = 1,
		  .tid = 6,
		  .id = 2306 }, /* a connection in the queue of its listener */
		/* a runtime call is more specific than the driver call in it */
		{ .start = 100, .time = 200, .pid = 1, .tid = 6, .id = 769 },
		{ .start = 110, .time = 190, .pid = 1, .tid = 6, .id = 1537 },
		{ .start = 300, .time = 400, .pid = 1, .tid = 6, .id = 1537 },
		{ .start = 400, .time = 450, .pid = 1, .tid = 6, .id = 2817 },
	};

	REQUIRE(prepare(records, sizeof(records) / sizeof(records[0])));
	CHECK_TEXT(explain(1, 90, 300),
		   "90-100 -, 100-120 cuda_sync, 120-140 cuda_copy, 140-145 GIL, 145-150 cuda_copy, "
		   "150-190 cuda_sync, 190-260 GIL, 260-300 -");
	CHECK_TEXT(explain(1, 130, 131), "130-131 cuda_copy");
	CHECK_TEXT(explain(2, 500, 600), "500-600 cuda_copy");
	CHECK_TEXT(explain(2, 15, 30), "15-20 cuda_sync, 20-30 cuda_copy");
	CHECK_TEXT(explain(3, 1, 9), "1-9 -");
	/* a thread waits for its disk request only while it is uninterruptible */
	CHECK_TEXT(explain_state(4, true, 100, 200), "100-110 cuda_copy, 110-150 disk, 150-200 cuda_copy");
	CHECK_TEXT(explain_state(4, false, 100, 200), "100-200 cuda_copy");
	CHECK_TEXT(explain_state(5, true, 100, 200), "100-200 -");
	CHECK_TEXT(
		explain(6, 0, 500),
		"0-100 -, 100-200 cuda_sync, 200-300 -, 300-400 cudadrv_sync, 400-450 garbage collection, 450-500 -");
	CHECK_TEXT(explain(1, 9, 9), "");
	waits__forget(waits);
	CHECK_TEXT(explain(1, 130, 131), "130-131 -");
	waits__free(waits);
	made_trace__free(&made);
}

static int say_cause(const struct wait_part *p, void *arg)
{
	*(enum activity_cause *)arg = waits__cause(waits, p->reason);
	return 0;
}

static enum activity_cause cause_of(u32 tid)
{
	enum activity_cause cause = ACTIVITY_CAUSES;

	waits__explain(waits, waits__thread(waits, 1, tid), false, 0, 100, say_cause, &cause);
	return cause;
}

TEST(a_call_is_of_cuda_by_its_family_not_by_its_name)
{
	static const struct record records[] = {
		{ .start = 0, .time = 100, .pid = 1, .tid = 1, .id = 769 },
		{ .start = 0, .time = 100, .pid = 1, .tid = 2, .id = 1537 },
		{ .start = 0, .time = 100, .pid = 1, .tid = 3, .id = 3841 }, /* cut_log() of some library */
	};

	REQUIRE(prepare(records, 3));
	CHECK(cause_of(1) == ACTIVITY_CUDA);
	CHECK(cause_of(2) == ACTIVITY_CUDA);
	CHECK(cause_of(3) == ACTIVITY_LIBRARY);
	waits__free(waits);
	made_trace__free(&made);
}

/* The span that counts at a time, by a scan of all spans. */
static const struct record *by_asking(const struct record *records, u32 n, bool blocked, u64 at)
{
	static const u16 by_rank[] = { 3841, 769, 2049, 1025 }; /* ids in the order of their ranks */
	const struct record *best = NULL;
	u32 best_rank = 0;

	for (u32 i = 0; i < n; i++) {
		const struct record *s = &records[i];
		u32 rank = 0;

		if (s->start > at || s->time <= at || (s->id == 2049 && !blocked))
			continue;
		while (by_rank[rank] != s->id)
			rank++;
		/* all calls of libraries have the same rank */
		rank = rank ? rank : 1;
		if (!best || rank > best_rank ||
		    (rank == best_rank &&
		     (s->start > best->start || (s->start == best->start && s->time <= best->time)))) {
			best = s;
			best_rank = rank;
		}
	}
	return best;
}

static const char *name_of_kind(u16 id)
{
	return id == 3841 ? "cut_log" : id == 769 ? "cuda_sync" : id == 2049 ? "disk" : "GIL";
}

TEST(any_spans_are_split_as_a_scan_of_all_says)
{
	static const u16 ids[] = { 3841, 769, 2049, 1025 };
	static struct record records[60];
	u32 n = sizeof(records) / sizeof(*records), seed = 7, wrong = 0;

	for (u32 i = 0; i < n; i++) {
		seed = seed * 1103515245 + 12345;
		records[i] = (struct record){ .pid = 1, .tid = 1, .id = ids[(seed >> 16) % 4] };
		seed = seed * 1103515245 + 12345;
		records[i].start = 1 + (seed >> 16) % 300;
		seed = seed * 1103515245 + 12345;
		records[i].time = records[i].start + 1 + (seed >> 16) % (i % 5 ? 20 : 150);
	}
	REQUIRE(prepare(records, n));
	for (u64 at = 0; at < 480; at++)
		for (u32 blocked = 0; blocked < 2; blocked++) {
			const struct record *s = by_asking(records, n, blocked, at);
			char expected[64];

			snprintf(expected, sizeof(expected), "%llu-%llu %s", at, at + 1, s ? name_of_kind(s->id) : "-");
			wrong += strcmp(explain_state(1, blocked, at, at + 1), expected) != 0;
		}
	CHECK(wrong == 0);
	waits__free(waits);
	made_trace__free(&made);
}

static const char sample_schema[] =
	"{\"families\":[{\"id\":0,\"name\":\"core\",\"doc\":\"\",\"default\":true}],\"options\":[],"
	"\"enums\":[{\"name\":\"syscall_nr\",\"values\":[{\"name\":\"SYS_futex\",\"value\":202},"
	"{\"name\":\"SYS_recvfrom\",\"value\":45}]}],\"events\":["
	"{\"id\":3074,\"name\":\"sample_off\",\"doc\":\"\",\"size\":64,\"fields\":[" FIELDS ","
	"{\"name\":\"futex\",\"type\":\"unsigned\",\"size\":8,\"offset\":32},"
	"{\"name\":\"reason\",\"type\":\"unsigned\",\"size\":4,\"offset\":40},"
	"{\"name\":\"nr\",\"type\":\"enum\",\"enum\":\"syscall_nr\",\"size\":4,\"offset\":44},"
	"{\"name\":\"in_call\",\"type\":\"unsigned\",\"size\":4,\"offset\":48},"
	"{\"name\":\"file\",\"type\":\"unsigned\",\"size\":4,\"offset\":52},"
	"{\"name\":\"lock\",\"type\":\"unsigned\",\"size\":8,\"offset\":56}]},"
	"{\"id\":1793,\"name\":\"syscall\",\"doc\":\"\",\"size\":64,\"fields\":[" FIELDS ","
	"{\"name\":\"nr\",\"type\":\"enum\",\"enum\":\"syscall_nr\",\"size\":4,\"offset\":44}]}]}";

struct sample_record {
	struct record span;
	u64 futex;
	u32 reason, nr, in_call, file;
	u64 lock;
};

static int say_object(const struct wait_part *p, void *arg)
{
	size_t used = strlen(said);

	snprintf(said + used, sizeof(said) - used, "%s%s %d %llu", used ? ", " : "",
		 p->reason ? waits__reason(arg, p->reason) : "-", p->reason ? (int)waits__cause(arg, p->reason) : -1,
		 p->detail ? p->detail->object : 0);
	return 0;
}

TEST(a_sample_names_the_wait_if_no_call_was_recorded)
{
	static const struct sample_record records[] = {
		{ .span = { .start = 0, .time = 10, .pid = 1, .tid = 1, .id = 3074 },
		  .reason = 8,
		  .nr = 45,
		  .in_call = 1,
		  .file = 3 },
		{ .span = { .start = 10, .time = 20, .pid = 1, .tid = 1, .id = 3074 },
		  .reason = 3,
		  .nr = 202,
		  .in_call = 1,
		  .futex = 77 },
		{ .span = { .start = 20, .time = 30, .pid = 1, .tid = 1, .id = 3074 },
		  .reason = 2,
		  .nr = 202,
		  .in_call = 1 },
		{ .span = { .start = 30, .time = 40, .pid = 1, .tid = 1, .id = 3074 }, .reason = 10 },
		{ .span = { .start = 40, .time = 50, .pid = 1, .tid = 1, .id = 3074 },
		  .reason = 1,
		  .nr = 45,
		  .in_call = 1 },
		{ .span = { .start = 50, .time = 60, .pid = 1, .tid = 1, .id = 3074 },
		  .reason = 3,
		  .nr = 202,
		  .in_call = 1 },
		{ .span = { .start = 49, .time = 61, .pid = 1, .tid = 1, .id = 1793 }, .nr = 45 },
	};
	struct trace_filter filter = {};
	char expected[256];

	REQUIRE(made_trace__of(&made, sample_schema, records, sizeof(*records), sizeof(records) / sizeof(*records)));
	REQUIRE(!waits__new(&waits, trace__schema(made.trace), made.names, NULL, true));
	filter.kinds = waits__kinds(waits);
	REQUIRE(!trace__read(made.trace, &filter, feed, waits));
	said[0] = 0;
	waits__explain(waits, waits__thread(waits, 1, 1), false, 0, 60, say_object, waits);
	snprintf(expected, sizeof(expected),
		 "recvfrom %d 3, futex %d 77, GIL %d 0, page fault %d 0, - -1 0, recvfrom %d 0", ACTIVITY_RECEIVE,
		 ACTIVITY_FUTEX, ACTIVITY_GIL, ACTIVITY_FAULT, ACTIVITY_RECEIVE);
	CHECK_TEXT(said, expected);
	waits__free(waits);
	made_trace__free(&made);
}

TEST_MAIN()
