// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls the real NCCL: first each function once with different arguments, then some of
 * them many times from several threads. Communicators are blocks of zeros, which NCCL
 * takes for corrupted ones: nearly all calls fail, and are recorded nevertheless. Writes
 * the expected event of each, one line per call:
 * `TID FUNCTION EVENT RETURNED BEFORE AFTER FIELD=VALUE ..`, times CLOCK_MONOTONIC.
 *
 *	nccl_calls FILE ROUNDS		prints "ready", waits for a line, calls, writes
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <nccl.h>

#define THREADS	  4
#define COMM_SIZE (4 << 20)
#define LIBRARY	  NCCL_VERSION_CODE

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *zeros; /* the communicator */
static int rounds;

#define P(n) ((void *)(uintptr_t)(n))
#define S    ((cudaStream_t)P(0x5100))
#define SEND P(0xa000)
#define RECV P(0xb000)
#define COMM ((ncclComm_t)zeros)
#define H(n) ((unsigned long long)(uintptr_t)(n))

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void note(const char *function, const char *event, int ret, unsigned long long before, unsigned long long after,
		 const char *fields, ...) __attribute__((format(printf, 6, 7)));
static void note(const char *function, const char *event, int ret, unsigned long long before, unsigned long long after,
		 const char *fields, ...)
{
	va_list ap;

	pthread_mutex_lock(&lock);
	fprintf(out, "%ld %s %s %d %llu %llu ", syscall(SYS_gettid), function, event, ret, before, after);
	va_start(ap, fields);
	vfprintf(out, fields, ap);
	va_end(ap);
	fputc('\n', out);
	pthread_mutex_unlock(&lock);
}

/* Fields may have results of the call. */
#define CALL(event, function, args, ...)                                    \
	do {                                                                \
		unsigned long long before_ = now();                         \
		int ret_ = (int)function args;                              \
		unsigned long long after_ = now();                          \
		note(#function, event, ret_, before_, after_, __VA_ARGS__); \
	} while (0)

/* Functions with another return type have 0 in the trace. */
#define OTHER(function, args)                                               \
	do {                                                                \
		unsigned long long before_ = now();                         \
		(void)function args;                                        \
		note(#function, "nccl_other", 0, before_, now(), "%s", ""); \
	} while (0)

#define COLL(function, args, n, type, size, o, r, from, to)                                                           \
	CALL("nccl_collective", function, args,                                                                       \
	     "count=%llu bytes=%llu datatype=%d op=%u root=%d send=%llu recv=%llu comm=%llu stream=%llu", (n) + 0ull, \
	     (n) * (size##ull), type, (unsigned)(o), r, H(from), H(to), H(COMM), H(S))

static void collectives(void)
{
	COLL(ncclAllReduce, (SEND, RECV, 101, ncclInt8, ncclSum, COMM, S), 101, 0, 1, 0, -1, SEND, RECV);
	COLL(ncclAllReduce, (SEND, RECV, 1ull << 33, ncclUint8, ncclProd, COMM, S), 1ull << 33, 1, 1, 1, -1, SEND,
	     RECV);
	COLL(ncclReduceScatter, (SEND, RECV, 103, ncclInt32, ncclMax, COMM, S), 103, 2, 4, 2, -1, SEND, RECV);
	COLL(ncclReduceScatter, (SEND, RECV, 104, ncclUint32, ncclMin, COMM, S), 104, 3, 4, 3, -1, SEND, RECV);
	COLL(ncclReduce, (SEND, RECV, 105, ncclInt64, ncclAvg, 7, COMM, S), 105, 4, 8, 4, 7, SEND, RECV);
	COLL(ncclReduce, (SEND, RECV, 106, ncclUint64, (ncclRedOp_t)9, 8, COMM, S), 106, 5, 8, 9, 8, SEND, RECV);
	COLL(ncclBroadcast, (SEND, RECV, 107, ncclFloat16, 9, COMM, S), 107, 6, 2, -1, 9, SEND, RECV);
	COLL(ncclBcast, (SEND, 108, ncclFloat32, 10, COMM, S), 108, 7, 4, -1, 10, SEND, SEND);
	COLL(ncclAllGather, (SEND, RECV, 109, ncclFloat64, COMM, S), 109, 8, 8, -1, -1, SEND, RECV);
	COLL(ncclAllGather, (SEND, RECV, 110, (ncclDataType_t)9, COMM, S), 110, 9, 2, -1, -1, SEND, RECV);
	COLL(ncclAllReduce, (SEND, RECV, 111, (ncclDataType_t)10, ncclSum, COMM, S), 111, 10, 1, 0, -1, SEND, RECV);
	COLL(ncclAllReduce, (SEND, RECV, 112, (ncclDataType_t)11, ncclSum, COMM, S), 112, 11, 1, 0, -1, SEND, RECV);
	COLL(ncclAllReduce, (SEND, RECV, 113, (ncclDataType_t)12, ncclSum, COMM, S), 113, 12, 0, 0, -1, SEND, RECV);
#if LIBRARY >= 22800
	COLL(ncclAlltoAll, (SEND, RECV, 114, ncclFloat64, COMM, S), 114, 8, 8, -1, -1, SEND, RECV);
	COLL(ncclGather, (SEND, RECV, 115, ncclFloat64, 11, COMM, S), 115, 8, 8, -1, 11, SEND, RECV);
	COLL(ncclScatter, (SEND, RECV, 116, ncclFloat64, 12, COMM, S), 116, 8, 8, -1, 12, SEND, RECV);
#endif
}

#if LIBRARY >= 23200
static void configured(void)
{
	ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;

	COLL(ncclAllReduceConfig, (SEND, RECV, 1, ncclFloat, ncclMax, COMM, S, &c), 1, 7, 4, 2, -1, SEND, RECV);
	COLL(ncclReduceScatterConfig, (SEND, RECV, 2, ncclFloat, ncclMin, COMM, S, &c), 2, 7, 4, 3, -1, SEND, RECV);
	COLL(ncclReduceConfig, (SEND, RECV, 3, ncclFloat, ncclSum, 5, COMM, S, &c), 3, 7, 4, 0, 5, SEND, RECV);
	COLL(ncclBroadcastConfig, (SEND, RECV, 4, ncclFloat, 6, COMM, S, &c), 4, 7, 4, -1, 6, SEND, RECV);
	COLL(ncclGatherConfig, (SEND, RECV, 5, ncclFloat, 7, COMM, S, &c), 5, 7, 4, -1, 7, SEND, RECV);
	COLL(ncclScatterConfig, (SEND, RECV, 6, ncclFloat, 8, COMM, S, &c), 6, 7, 4, -1, 8, SEND, RECV);
	COLL(ncclAllGatherConfig, (SEND, RECV, 7, ncclFloat, COMM, S, &c), 7, 7, 4, -1, -1, SEND, RECV);
	COLL(ncclAlltoAllConfig, (SEND, RECV, 8, ncclFloat, COMM, S, &c), 8, 7, 4, -1, -1, SEND, RECV);
}
#endif

static void point_to_point(void)
{
#define P2P \
	"count=%d bytes=%d datatype=%d direction=%d peer=%d buffer=%llu comm=%llu stream=%llu window=%llu window_offset=%llu"
	CALL("nccl_p2p", ncclSend, (SEND, 201, ncclFloat, 3, COMM, S), P2P, 201, 804, 7, 0, 3, H(SEND), H(COMM), H(S),
	     0ull, 0ull);
	CALL("nccl_p2p", ncclRecv, (RECV, 202, ncclHalf, 4, COMM, S), P2P, 202, 404, 6, 1, 4, H(RECV), H(COMM), H(S),
	     0ull, 0ull);
#if LIBRARY >= 23200
	ncclWaitSignalDesc_t wait[2] = { { 1, 0, 0, 0 }, { 1, 1, 0, 0 } };

	CALL("nccl_p2p", ncclPutSignal, (SEND, 203, ncclInt64, 5, (ncclWindow_t)P(0xc100), 77, 0, 0, 0, COMM, S), P2P,
	     203, 1624, 4, 2, 5, H(SEND), H(COMM), H(S), 0xc100ull, 77ull);
	CALL("nccl_p2p", ncclSignal, (6, 0, 0, 0, COMM, S), P2P, 0, 0, 0, 3, 6, 0ull, H(COMM), H(S), 0ull, 0ull);
	CALL("nccl_p2p", ncclWaitSignal, (2, wait, COMM, S), P2P, 2, 0, 0, 4, -1, 0ull, H(COMM), H(S), 0ull, 0ull);
#endif
}

static void communicators(void)
{
	int devices[2] = { 0, 0 };
	ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
	ncclComm_t made = NULL, two[2] = { NULL };
	ncclUniqueId id = { "" };
	unsigned long long first;

	CALL("nccl_call", ncclGetUniqueId, (&id), "%s", "");
	memset(&id, 0x11, sizeof(id));
	memcpy(&first, &id, sizeof(first));
#define INIT "comm=%llu parent=%llu unique_id=%llu rank=%d size=%d color=%d key=%d api_flags=%d"
	/* a rank that is too large fails before any device is used */
	CALL("nccl_comm", ncclCommInitRank, (&made, 4, id, 9), INIT, 0ull, 0ull, first, 9, 4, 0, 0, 0);
	CALL("nccl_comm", ncclCommInitRankConfig, (&made, 5, id, 10, &c), INIT, 0ull, 0ull, first, 10, 5, 0, 0, 0);
	CALL("nccl_comm", ncclCommInitAll, (two, 2, devices), INIT " devices=%llu", 0ull, 0ull, 0ull, -1, 2, 0, 0, 0,
	     H(devices));
	CALL("nccl_comm", ncclCommSplit, (COMM, 3, 4, &made, &c), INIT, 0ull, H(COMM), 0ull, -1, -1, 3, 4, 0);
#if LIBRARY >= 22300
	CALL("nccl_comm", ncclCommInitRankScalable, (&made, 6, 11, 1, &id, &c), INIT, 0ull, 0ull, first, 11, 6, 0, 0,
	     0);
#endif
#if LIBRARY >= 23200
	CALL("nccl_comm", ncclCommGrow, (NULL, 7, &id, 12, &made, &c), INIT, 0ull, 0ull, first, 12, 7, 0, 0, 0);
	CALL("nccl_comm", ncclCommRevoke, (NULL, 1), INIT, 0ull, 0ull, 0ull, -1, -1, 0, 0, 1);
#endif
	CALL("nccl_comm", ncclCommFinalize, (NULL), INIT, 0ull, 0ull, 0ull, -1, -1, 0, 0, 0);
	CALL("nccl_comm", ncclCommDestroy, (NULL), INIT, 0ull, 0ull, 0ull, -1, -1, 0, 0, 0);
	CALL("nccl_comm", ncclCommAbort, (NULL), INIT, 0ull, 0ull, 0ull, -1, -1, 0, 0, 0);
}

static void queries(void)
{
	int n = 5;
	ncclResult_t r;

	CALL("nccl_query", ncclCommCount, (COMM, &n), "comm=%llu value=0", H(COMM));
	CALL("nccl_query", ncclCommCuDevice, (COMM, &n), "comm=%llu value=0", H(COMM));
	CALL("nccl_query", ncclCommUserRank, (COMM, &n), "comm=%llu value=0", H(COMM));
	CALL("nccl_query", ncclCommGetAsyncError, (COMM, &r), "comm=%llu value=0", H(COMM));
}

static void memory(void)
{
	void *handle = NULL, *buffer = NULL;
	ncclRedOp_t op;
	float one = 1;

#define MEM "comm=%llu address=%llu bytes=%d handle=%llu api_flags=%d"
	CALL("nccl_memory", ncclCommRegister, (COMM, SEND, 301, &handle), MEM, H(COMM), H(SEND), 301, 0ull, 0);
	CALL("nccl_memory", ncclCommDeregister, (COMM, P(0xd00d)), MEM, H(COMM), 0ull, 0, 0xd00dull, 0);
#if LIBRARY >= 22700
	ncclWindow_t window = NULL;

	CALL("nccl_memory", ncclCommWindowRegister, (COMM, SEND, 302, &window, 1), MEM, H(COMM), H(SEND), 302, 0ull, 1);
#endif
	CALL("nccl_memory", ncclMemAlloc, (&buffer, 303), MEM, 0ull, H(buffer), 303, 0ull, 0);
	CALL("nccl_memory", ncclMemFree, (NULL), MEM, 0ull, 0ull, 0, 0ull, 0);
	CALL("nccl_reduction", ncclRedOpCreatePreMulSum, (&op, &one, ncclFloat, ncclScalarHostImmediate, COMM),
	     "comm=%llu op=4294967295 datatype=7", H(COMM));
	CALL("nccl_reduction", ncclRedOpDestroy, ((ncclRedOp_t)6, COMM), "comm=%llu op=6 datatype=0", H(COMM));
}

static void others(void)
{
	int version;

	CALL("nccl_call", ncclGetVersion, (&version), "%s", "");
	CALL("nccl_call", pncclGetVersion, (&version), "%s", "");
	CALL("nccl_call", ncclGroupStart, (), "%s", "");
	CALL("nccl_call", ncclGroupEnd, (), "%s", "");
	OTHER(ncclGetErrorString, (ncclSystemError));
	OTHER(ncclGetLastError, (NULL));
}

static void *worker(void *arg)
{
	int i, version, n;

	for (i = 0; i < rounds; i++) {
		CALL("nccl_call", ncclGetVersion, (&version), "%s", "");
		COLL(ncclAllReduce, (SEND, RECV, 1000ull + i, ncclFloat, ncclSum, COMM, S), 1000ull + i, 7, 4, 0, -1,
		     SEND, RECV);
		CALL("nccl_p2p", ncclSend, (SEND, i, ncclFloat, 3, COMM, S), P2P, i, 4 * i, 7, 0, 3, H(SEND), H(COMM),
		     H(S), 0ull, 0ull);
		if (i % 3 == 0)
			CALL("nccl_query", ncclCommCount, (COMM, &n), "comm=%llu value=0", H(COMM));
		if (i % 5 == 0)
			OTHER(ncclGetErrorString, (ncclSystemError));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char line[8];

	if (argc != 3)
		return 2;
	out = fopen(argv[1], "w");
	if (out)
		setlinebuf(out);
	zeros = calloc(1, COMM_SIZE);
	rounds = atoi(argv[2]);
	if (!out || !zeros)
		return 1;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	others();
	collectives();
#if LIBRARY >= 23200
	configured();
#endif
	point_to_point();
	queries();
	memory();
	communicators();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* gives sonde the time to read the library's debug information */
	sleep(1);
	return fclose(out) ? 1 : 0;
}
