// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A libnccl without GPUs: communicators are structs with the members of the real
 * ncclComm, at offsets of their own that only this file's debug information has.
 * Signatures: nccl.h of NCCL 2.32.
 *
 * With the environment variable FAKE_NCCL, the beginning of paths of files that ranks
 * share, collectives launch kernels on the double of libcuda, which end when all
 * ranks have reached them. A group's collectives are fused to one kernel.
 */
#include "cuda/fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns are probed. */
#pragma GCC optimize("no-optimize-sibling-calls")

#define MAGIC 0x0280028002800280ull

typedef struct ncclComm *comm_t;
typedef void *stream_t;
typedef struct {
	char internal[128];
} id_t_;

struct ncclComm {
	uint64_t startMagic;
	char other[70001];
	int cudaDev;
	struct {
		int rank, nRanks; /* not these */
	} inner;
	char more[3000];
	int nRanks;
	struct meeting *meetings;
	unsigned n_met;
	uint64_t commHash;
	int rank;
	uint64_t endMagic;
};

/* A pool, so that the next one made lies where the last one destroyed was. */
static struct ncclComm pool[32];
static unsigned char used[32];
static comm_t waiting; /* made in a group: filled in at its end */
static int grouped, waiting_rank, waiting_size;
static uint64_t waiting_hash;

/* In a file that the ranks of a communicator share: one for each collective */
struct meeting {
	uint64_t latest; /* start of the last rank's kernel */
	uint32_t arrived, unused;
};

#define MEETINGS 4096

/* A kernel that was launched; it lives for as long as the process. */
struct operation {
	struct fake_kernel kernel;
	uint64_t ns; /* after the last rank has come */
	struct meeting *meeting;
	uint32_t ranks;
	char has_arrived;
	char name[96];
};

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra) __attribute__((weak));

static uint64_t end_of(const struct fake_kernel *k, uint64_t start)
{
	struct operation *o = (struct operation *)k;
	struct meeting *m = o->meeting;
	uint64_t latest = __atomic_load_n(&m->latest, __ATOMIC_ACQUIRE);

	if (!o->has_arrived) {
		while (latest < start &&
		       !__atomic_compare_exchange_n(&m->latest, &latest, start, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			;
		o->has_arrived = 1;
		__atomic_add_fetch(&m->arrived, 1, __ATOMIC_ACQ_REL);
	}
	if (__atomic_load_n(&m->arrived, __ATOMIC_ACQUIRE) < o->ranks)
		return 0;
	return __atomic_load_n(&m->latest, __ATOMIC_ACQUIRE) + o->ns;
}

static struct meeting *meetings_of(uint64_t hash)
{
	char path[256];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s.%lx", getenv("FAKE_NCCL"), hash);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, MEETINGS * sizeof(struct meeting)))
		abort();
	at = mmap(NULL, MEETINGS * sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		abort();
	return at;
}

/* 10 us, and 100 ps a byte */
static uint64_t duration(size_t bytes)
{
	return 10000 + bytes / 10;
}

static int launch(comm_t comm, const char *kernel, size_t bytes, stream_t stream)
{
	struct operation *o;

	if (!cuLaunchKernel || !getenv("FAKE_NCCL"))
		return 0;
	o = calloc(1, sizeof(*o));
	if (!comm->meetings)
		comm->meetings = meetings_of(comm->commHash);
	o->meeting = &comm->meetings[comm->n_met++ % MEETINGS];
	o->ranks = comm->nRanks;
	snprintf(o->name, sizeof(o->name), "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE", strlen(kernel), kernel);
	o->ns = duration(bytes);
	o->kernel = (struct fake_kernel){ .name = o->name, .ns = FAKE_WAITS, .end = end_of };
	return cuLaunchKernel(&o->kernel, 4, 1, 1, 512, 1, 1, 0, stream, NULL, NULL);
}

/* What a group has stored */
static struct {
	comm_t comm;
	const char *kernel;
	size_t bytes;
	stream_t stream;
} stored;

/* All types of this double's programs have this size. */
#define TYPE_SIZE 4

static void fill(comm_t c, int rank, int size, int device, uint64_t hash)
{
	c->rank = rank;
	c->nRanks = size;
	c->cudaDev = device;
	c->commHash = hash;
}

static comm_t make(void)
{
	int i;

	for (i = 0; used[i]; i++)
		;
	used[i] = 1;
	memset(&pool[i], 0, sizeof(pool[i]));
	pool[i].startMagic = pool[i].endMagic = MAGIC;
	return &pool[i];
}

int ncclGroupStart(void)
{
	grouped = 1;
	return 0;
}

int ncclGroupEnd(void)
{
	grouped = 0;
	if (waiting)
		fill(waiting, waiting_rank, waiting_size, 6, waiting_hash);
	waiting = NULL;
	if (stored.comm)
		launch(stored.comm, stored.kernel, stored.bytes, stored.stream);
	stored.comm = NULL;
	return 0;
}

static int operate(comm_t comm, const char *kernel, size_t count, stream_t stream)
{
	if (!grouped)
		return launch(comm, kernel, count * TYPE_SIZE, stream);
	stored.bytes = (stored.comm ? stored.bytes : 0) + count * TYPE_SIZE;
	stored.comm = comm;
	stored.kernel = kernel;
	stored.stream = stream;
	return 0;
}

/* The device is 6, the hash the id's first half. */
static int init(comm_t *comm, int size, id_t_ id, int rank)
{
	uint64_t hash;

	if (rank >= size)
		return 4;
	memcpy(&hash, &id, sizeof(hash));
	*comm = make();
	if (!grouped) {
		fill(*comm, rank, size, 6, hash);
		return 0;
	}
	waiting = *comm;
	waiting_rank = rank;
	waiting_size = size;
	waiting_hash = hash;
	return 7;
}

int ncclCommInitRank(comm_t *comm, int size, id_t_ id, int rank)
{
	return init(comm, size, id, rank);
}

int ncclCommInitAll(comm_t *comms, int n, const int *devices)
{
	for (int i = 0; i < n; i++) {
		comms[i] = make();
		fill(comms[i], i, n, devices ? devices[i] : i, 0xa11);
	}
	return 0;
}

int ncclCommInitRankScalable(comm_t *comm, int size, int rank, int n, id_t_ *ids, void *config)
{
	return init(comm, size, ids[0], rank);
}

/* Half the ranks, the key's; none for a negative color. */
int ncclCommSplit(comm_t parent, int color, int key, comm_t *comm, void *config)
{
	*comm = NULL;
	if (color < 0)
		return 0;
	*comm = make();
	fill(*comm, key, parent->nRanks / 2, parent->cudaDev, parent->commHash + color);
	return 0;
}

int ncclCommShrink(comm_t parent, int *excluded, int n, comm_t *comm, void *config, int flags)
{
	*comm = make();
	fill(*comm, parent->rank - n, parent->nRanks - n, parent->cudaDev, parent->commHash + 100);
	return 0;
}

int ncclCommGrow(comm_t parent, int size, const id_t_ *id, int rank, comm_t *comm, void *config)
{
	*comm = make();
	fill(*comm, rank < 0 ? parent->rank : rank, size, 5, 0x9109);
	return 0;
}

int ncclCommFinalize(comm_t comm)
{
	return 0;
}

int ncclCommDestroy(comm_t comm)
{
	comm->startMagic = comm->endMagic = 0;
	used[comm - pool] = 0;
	return 0;
}

int ncclCommGetAsyncError(comm_t comm, int *error)
{
	*error = 6;
	return 0;
}

int ncclCommRegister(comm_t comm, void *buffer, size_t size, void **handle)
{
	*handle = (void *)0x4a4d;
	return 0;
}

int ncclMemAlloc(void **address, size_t size)
{
	*address = (void *)0x7000;
	return 0;
}

int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, comm_t comm)
{
	*op = 5;
	return 0;
}

/* Never returns for a count of 666. A null stream is an error. */
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, comm_t comm, stream_t stream)
{
	while (count == 666)
		pause();
	return stream ? operate(comm, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", count, stream) : 5;
}

int ncclAllGather(const void *send, void *recv, size_t count, int type, comm_t comm, stream_t stream)
{
	return operate(comm, "ncclDevKernel_AllGather_RING_LL", count, stream);
}

int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, comm_t comm, stream_t stream)
{
	return operate(comm, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", count, stream);
}

int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root, comm_t comm, stream_t stream)
{
	return operate(comm, "ncclDevKernel_Reduce_Sum_f32_TREE_LL", count, stream);
}

/* As the real one does. */
int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, comm_t comm, stream_t stream)
{
	return operate(comm, "ncclDevKernel_Broadcast_RING_LL", count, stream);
}

int ncclBcast(void *buffer, size_t count, int type, int root, comm_t comm, stream_t stream)
{
	int ret = ncclBroadcast(buffer, buffer, count, type, root, comm, stream);

	/* no tail call */
	__asm__ volatile("" : "+r"(ret));
	return ret;
}

int ncclSend(const void *buffer, size_t count, int type, int peer, comm_t comm, stream_t stream)
{
	return operate(comm, "ncclDevKernel_SendRecv", count, stream);
}

int ncclRecv(void *buffer, size_t count, int type, int peer, comm_t comm, stream_t stream)
{
	return operate(comm, "ncclDevKernel_SendRecv", count, stream);
}

/* One that sonde has never heard of. */
int ncclNotYetKnown(int a)
{
	return a;
}

const char *ncclGetErrorString(int error)
{
	return "unhandled cuda error";
}
