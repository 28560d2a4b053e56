// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Collectives, point to point and memory. Signatures: nccl.h. */
#include "core/args.h"
#include "comm.bpf.h"

struct nccl_processes_map nccl_processes SEC(".maps");
struct nccl_layouts_map nccl_layouts SEC(".maps");
struct nccl_comms_map nccl_comms SEC(".maps");

/* Bytes of an element by ncclDataType_t, a nibble each; 0: there is no such type. */
#define TYPE_SIZES 0x112842884411ULL
#define TYPES	   12

static __always_inline u64 type_size(u32 type)
{
	return type < TYPES ? TYPE_SIZES >> type * 4 & 15 : 0;
}

enum {
	ALL_REDUCE,
	REDUCE,
	BROADCAST,
	BCAST,
	ALL_GATHER,
};

/*
 * All begin with (send, recv, count, type), except for ncclBcast(buffer, count, type, root, comm, stream). Then
 * follow:
 *
 *	ALL_REDUCE	op, comm, stream
 *	REDUCE		op, root, comm, stream
 *	BROADCAST	root, comm, stream
 *	ALL_GATHER	comm, stream
 *
 * Functions whose name ends in Config have one more argument, the last.
 */
SPAN(nccl_collective,
     "libnccl.so:"
     "ncclAllReduce,ncclAllReduceConfig,ncclReduceScatter,ncclReduceScatterConfig;"
     "ncclReduce,ncclReduceConfig;"
     "ncclBroadcast,ncclBroadcastConfig,ncclGather,ncclGatherConfig,ncclScatter,ncclScatterConfig;"
     "ncclBcast;"
     "ncclAllGather,ncclAllGatherConfig,ncclAlltoAll,ncclAlltoAllConfig",
     nccl_collective)
{
	struct args a = args__read(ctx);
	u64 s[2] = {};

	bpf_probe_read_user(s, sizeof(s), (const void *)(a.sp + 8));
	e->op = group <= REDUCE ? (u32)a.a5 : NCCL_OP_NONE;
	e->root = group == REDUCE ? (s32)a.a6 : group == BROADCAST ? (s32)a.a5 : group == BCAST ? (s32)a.a4 : -1;
	e->send = a.a1;
	e->recv = group == BCAST ? a.a1 : a.a2;
	e->count = group == BCAST ? a.a2 : a.a3;
	e->datatype = group == BCAST ? a.a3 : a.a4;
	e->bytes = e->count * type_size(e->datatype);
	if (group == REDUCE) {
		e->comm = s[0];
		e->stream = s[1];
	} else if (group == ALL_REDUCE || group == BROADCAST) {
		e->comm = a.a6;
		e->stream = s[0];
	} else {
		e->comm = a.a5;
		e->stream = a.a6;
	}
	comm__used(e->comm);
}

/*
 * ncclSend(buffer, count, type, peer, comm, stream), ncclRecv likewise,
 * ncclPutSignal(buffer, count, type, peer, window, offset, signal, context, flags, comm, stream),
 * ncclSignal(peer, signal, context, flags, comm, stream), ncclWaitSignal(n, peers, comm, stream).
 * The direction is the group.
 */
SPAN(nccl_p2p,
     "libnccl.so:"
     "ncclSend;"
     "ncclRecv;"
     "ncclPutSignal;"
     "ncclSignal;"
     "ncclWaitSignal",
     nccl_p2p)
{
	struct args a = args__read(ctx);
	u64 s[5] = {};

	e->direction = group;
	if (group == NCCL_WAIT) {
		e->count = (u32)a.a1;
		e->peer = -1;
		e->comm = a.a3;
		e->stream = a.a4;
	} else if (group == NCCL_SIGNAL) {
		e->peer = a.a1;
		e->comm = a.a5;
		e->stream = a.a6;
	} else {
		e->buffer = a.a1;
		e->count = a.a2;
		e->datatype = a.a3;
		e->bytes = a.a2 * type_size(a.a3);
		e->peer = a.a4;
		e->comm = a.a5;
		e->stream = a.a6;
	}
	if (group == NCCL_PUT) {
		bpf_probe_read_user(s, sizeof(s), (const void *)(a.sp + 8));
		e->window = a.a5;
		e->window_offset = a.a6;
		e->comm = s[3];
		e->stream = s[4];
	}
	comm__used(e->comm);
}

enum {
	COMM_REGISTER,
	WINDOW_REGISTER,
	DEREGISTER,
	MEM_ALLOC,
	MEM_FREE,
};

#define OUT_IS_ADDRESS (1ULL << 63)

static __always_inline void memory_return(struct nccl_memory *e)
{
	u64 out = SPAN_OUT(e), v = 0;

	/* 7: ncclInProgress */
	if (!out || (e->call.ret && e->call.ret != 7))
		return;
	bpf_probe_read_user(&v, sizeof(v), (const void *)(out & ~OUT_IS_ADDRESS));
	if (out & OUT_IS_ADDRESS)
		e->address = v;
	else
		e->handle = v;
}

/*
 * ncclCommRegister(comm, buffer, size, handle *), ncclCommWindowRegister(comm, buffer, size, window *, flags),
 * nccl..Deregister(comm, handle), ncclMemAlloc(address *, size), ncclMemFree(address)
 */
SPAN_EXIT(nccl_memory,
	  "libnccl.so:"
	  "ncclCommRegister;"
	  "ncclCommWindowRegister;"
	  "ncclCommDeregister,ncclCommWindowDeregister;"
	  "ncclMemAlloc;"
	  "ncclMemFree",
	  nccl_memory, memory_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group == MEM_ALLOC ? a.a1 | OUT_IS_ADDRESS : group <= WINDOW_REGISTER ? a.a4 : 0;
	if (group <= DEREGISTER)
		e->comm = a.a1;
	if (group == DEREGISTER)
		e->handle = a.a2;
	if (group <= WINDOW_REGISTER) {
		e->address = a.a2;
		e->bytes = a.a3;
	}
	if (group == WINDOW_REGISTER)
		e->api_flags = a.a5;
	if (group == MEM_ALLOC)
		e->bytes = a.a2;
	if (group == MEM_FREE)
		e->address = a.a1;
	comm__used(e->comm);
}

/*
 * All other functions that return an ncclResult_t: functions that another program names are not matched by this glob.
 */
SPAN(nccl_call, "libnccl.so:nccl*", nccl_call)
{
}

static __always_inline void other_return(struct nccl_other *e)
{
	/* these return a pointer, a struct, a number or nothing */
	e->call.ret = 0;
}

SPAN_EXIT(nccl_other,
	  "libnccl.so:"
	  "ncclGetErrorString,ncclGetLastError,ncclResetDebugInit,ncclResetDebugInitInternal,ncclParamDumpAll,"
	  "ncclTeamWorld,ncclTeamLsa,ncclTeamRail,ncclTeamCft,ncclTeamCftMultimem,ncclTeamRankToWorld,"
	  "ncclTeamRankToLsa,ncclLLA2ACalcSlots",
	  nccl_other, other_return)
{
}
