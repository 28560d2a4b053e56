// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Records calls that create, query and destroy communicators and reductions. NVIDIA's nccl.h has the signatures. */
#include "core/args.h"
#include "comm.bpf.h"

enum {
	INIT_RANK,
	INIT_ALL,
	INIT_SCALABLE,
	SPLIT,
	SHRINK,
	GROW,
	DESTROY,
	END,
};

#define ALL_MAX 64 /* assumed maximum of devices of a process: the verifier needs a bound */
/* SPAN_OUT saves one number for the return: an address in its lower bits, and the group of the call in the upper 8. */
#define OUT_GROUP_SHIFT 56
#define OUT_ADDRESS	((1ULL << OUT_GROUP_SHIFT) - 1)

static __always_inline void comm__forget(u64 comm)
{
	struct nccl_comm_key key = comm__key(comm);

	bpf_map_delete_elem(&nccl_comms, &key);
}

static __always_inline void comm__created(u64 comm, s32 rank, s32 size, s32 device)
{
	comm__forget(comm);
	nccl__describe(comm, rank, size, device);
}

/* Returns the handle that a call stored at `where`; 0: the call failed. Result 7, ncclInProgress, is no failure. */
static __always_inline u64 out_handle(const struct call *call, u64 where)
{
	u64 v = 0;

	if ((!call->ret || call->ret == 7) && where)
		bpf_probe_read_user(&v, sizeof(v), (const void *)where);
	return v;
}

/*
 * Emits the communicators of ncclCommInitAll, which creates rank i on device devices[i], or on device i if devices is
 * NULL.
 */
static __noinline int emit_all_ranks(u64 comms, u64 devices, u32 n)
{
	u32 i;

	for (i = 0; i < ALL_MAX && i < n; i++) {
		s32 device = i;
		u64 comm = 0;

		bpf_probe_read_user(&comm, sizeof(comm), (const void *)(comms + i * sizeof(comm)));
		if (devices)
			bpf_probe_read_user(&device, sizeof(device), (const void *)(devices + i * sizeof(device)));
		comm__created(comm, i, n, device);
	}
	return 0;
}

static __always_inline void comm_return(struct nccl_comm *e)
{
	u64 out = SPAN_OUT(e), where = out & OUT_ADDRESS;

	if (!where)
		return;
	e->comm = out_handle(&e->call, where);
	if (!e->comm)
		return;
	if (out >> OUT_GROUP_SHIFT == INIT_ALL) {
		emit_all_ranks(where, e->devices, e->size);
	} else if (e->rank >= 0 && e->size > 0) {
		comm__created(e->comm, e->rank, e->size, -1);
	} else {
		comm__created(e->comm, 0, 0, -1);
	}
}

static __always_inline u64 read_id(u64 where)
{
	u64 id = 0;

	bpf_probe_read_user(&id, sizeof(id), (const void *)where);
	return id;
}

/*
 * The arguments below are in registers, in this order, except `id`: an ncclUniqueId that is passed by value is on the
 * stack and takes no register, so `rank` of ncclCommInitRank is in the third one.
 *
 *	ncclCommInitRank(comm *, size, id, rank), ncclCommInitRankConfig(.., config)
 *	ncclCommInitAll(comms *, size, devices)
 *	ncclCommInitRankScalable(comm *, size, rank, ids, id *, config)
 *	ncclCommSplit(parent, color, key, comm *, config)
 *	ncclCommShrink(parent, excluded, n, comm *, config, flags)
 *	ncclCommGrow(parent, size, id *, rank, comm *, config)
 *	ncclCommDestroy(comm), ncclCommAbort(comm)
 *	ncclCommFinalize(comm), ncclCommRevoke(comm, flags)
 */
SPAN_EXIT(nccl_comm,
	  "libnccl.so:"
	  "ncclCommInitRank,ncclCommInitRankConfig;"
	  "ncclCommInitAll;"
	  "ncclCommInitRankScalable;"
	  "ncclCommSplit;"
	  "ncclCommShrink;"
	  "ncclCommGrow;"
	  "ncclCommDestroy,ncclCommAbort;"
	  "ncclCommFinalize,ncclCommRevoke",
	  nccl_comm, comm_return)
{
	struct args a = args__read(ctx);
	u64 out = group <= INIT_SCALABLE ? a.a1 : group <= SHRINK ? a.a4 : group == GROW ? a.a5 : 0;

	SPAN_OUT(e) = out ? (out & OUT_ADDRESS) | (u64)group << OUT_GROUP_SHIFT : 0;
	e->rank = -1;
	e->size = -1;
	if (group <= INIT_SCALABLE)
		e->size = a.a2;
	if (group >= SPLIT && group <= GROW)
		e->parent = a.a1;
	if (group >= DESTROY)
		e->comm = a.a1;
	if (group == INIT_RANK) {
		e->rank = a.a3;
		e->unique_id = read_id(a.sp + 8);
	} else if (group == INIT_ALL) {
		e->devices = a.a3;
	} else if (group == INIT_SCALABLE) {
		e->rank = a.a3;
		e->unique_id = read_id(a.a5);
	} else if (group == SPLIT) {
		e->color = a.a2;
		e->key = a.a3;
	} else if (group == SHRINK) {
		e->api_flags = a.a6;
	} else if (group == GROW) {
		e->size = a.a2;
		e->rank = a.a4;
		e->unique_id = a.a3 ? read_id(a.a3) : 0;
	} else if (group == END) {
		e->api_flags = a.a2;
	}
	comm__used(group >= DESTROY ? e->comm : group == INIT_ALL ? 0 : e->parent);
	if (group == DESTROY)
		comm__forget(e->comm);
}

static __always_inline void query_return(struct nccl_query *e)
{
	if (!e->call.ret)
		bpf_probe_read_user(&e->value, sizeof(e->value), (const void *)SPAN_OUT(e));
}

/* Each of these functions has the parameters (comm, int *). */
SPAN_EXIT(nccl_query, "libnccl.so:ncclCommGetAsyncError,ncclCommCount,ncclCommCuDevice,ncclCommUserRank", nccl_query,
	  query_return)
{
	SPAN_OUT(e) = ARG2(ctx);
	e->comm = ARG1(ctx);
	comm__used(e->comm);
}

static __always_inline void reduction_return(struct nccl_reduction *e)
{
	if (SPAN_OUT(e) && !e->call.ret)
		bpf_probe_read_user(&e->op, sizeof(e->op), (const void *)SPAN_OUT(e));
}

/* ncclRedOpCreatePreMulSum(op *, scalar, type, residence, comm), ncclRedOpDestroy(op, comm) */
SPAN_EXIT(nccl_reduction, "libnccl.so:ncclRedOpCreatePreMulSum;ncclRedOpDestroy", nccl_reduction, reduction_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group == 0 ? a.a1 : 0;
	e->op = group == 0 ? NCCL_OP_NONE : (u32)a.a1;
	e->datatype = group == 0 ? a.a3 : 0;
	e->comm = group == 0 ? a.a5 : a.a2;
	comm__used(e->comm);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(nccl_process_exit, struct task_struct *task)
{
	u32 tgid = task->tgid;

	if (!task__live_threads(task))
		bpf_map_delete_elem(&nccl_processes, &tgid);
	return 0;
}

/* A child is a copy of its parent: its library and communicators have the same addresses. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(nccl_process_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, to = child->tgid, *index;

	if (from == to)
		return 0;
	index = bpf_map_lookup_elem(&nccl_processes, &from);
	if (index && bpf_map_update_elem(&nccl_processes, &to, index, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_nccl_communicator), LOSS_MAP_FULL, bpf_ktime_get_ns());
	return 0;
}
