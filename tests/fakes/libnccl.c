// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A libnccl without GPUs: communicators are structs with the members of the real
 * ncclComm, at offsets of their own that only this file's debug information has.
 * Signatures: nccl.h of NCCL 2.32.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	return stream ? 0 : 5;
}

/* As the real one does. */
int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, comm_t comm, stream_t stream)
{
	return 0;
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
	return 0;
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
