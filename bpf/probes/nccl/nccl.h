/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of NVIDIA's NCCL. Its functions and numbers are those of nccl.h of NCCL 2.21.5, 2.27.7 and 2.32.3.
 * docs/nccl.md defines the bytes of a call, and describes how the rank in a communicator is found.
 *
 * The event's probe says which function was called. pnccl* are other names of the same functions: a call by either
 * name is recorded under the name without the p.
 */
#pragma once

#include "core/event.h"

FAMILY(nccl, 0x05, FAMILY_DEFAULT, "calls of NCCL (libnccl)");

/* ncclDataType_t */
enum nccl_datatype {
	NCCL_INT8 = 0,
	NCCL_UINT8 = 1,
	NCCL_INT32 = 2,
	NCCL_UINT32 = 3,
	NCCL_INT64 = 4,
	NCCL_UINT64 = 5,
	NCCL_FLOAT16 = 6,
	NCCL_FLOAT32 = 7,
	NCCL_FLOAT64 = 8,
	NCCL_BFLOAT16 = 9,
	NCCL_FLOAT8E4M3 = 10,
	NCCL_FLOAT8E5M2 = 11,
};

/* ncclRedOp_t; from NCCL_OP_USER on, operations created by ncclRedOpCreatePreMulSum (event nccl_reduction) */
enum nccl_op {
	NCCL_OP_SUM = 0,
	NCCL_OP_PROD = 1,
	NCCL_OP_MAX = 2,
	NCCL_OP_MIN = 3,
	NCCL_OP_AVG = 4,
	NCCL_OP_USER = 5,
	NCCL_OP_NONE = 0xffffffff,
};

struct nccl_collective {
	struct call call;
	u64 bytes UNIT(bytes)
		DOC("count times the type's size; of one rank's part if NCCL's count is per rank (docs/nccl.md)");
	u64 count DOC("elements, as passed");
	u64 send UNIT(hex) DOC("send buffer: address on the device");
	u64 recv UNIT(hex) DOC("receive buffer: address on the device");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 comm UNIT(hex) DOC("communicator");
	enum nccl_datatype datatype;
	enum nccl_op op DOC("reduction; numbers from 5 on were created by the program");
	s32 root DOC("rank, -1: the function has none");
} EVENT(nccl_collective, 0x0501, "a collective operation");

enum nccl_direction {
	NCCL_SEND = 0,
	NCCL_RECV = 1,
	NCCL_PUT = 2, /* ncclPutSignal */
	NCCL_SIGNAL = 3,
	NCCL_WAIT = 4, /* ncclWaitSignal */
};

struct nccl_p2p {
	struct call call;
	u64 bytes UNIT(bytes) DOC("count times the type's size");
	u64 count DOC("elements, as passed; of ncclWaitSignal, peers waited for");
	u64 buffer UNIT(hex) DOC("address on the device");
	u64 window UNIT(hex) DOC("the peer's window, of a put");
	u64 window_offset UNIT(bytes) DOC("where in that window");
	u64 stream UNIT(hex) DOC("stream handle, 0: the default stream");
	u64 comm UNIT(hex) DOC("communicator");
	enum nccl_datatype datatype;
	enum nccl_direction direction;
	s32 peer DOC("rank, -1: several");
} EVENT(nccl_p2p, 0x0502, "a send to one rank, or a receive from it");

struct nccl_comm {
	struct call call;
	u64 comm UNIT(hex) DOC(
		"communicator created, finalized or destroyed, the first of ncclCommInitAll; 0 if creating it failed");
	u64 parent UNIT(hex) DOC("communicator from which it was created");
	u64 unique_id UNIT(hex) DOC("first 8 bytes of the id: a random number, the same in all its ranks");
	u64 devices UNIT(hex) DOC("address of the list of devices, of ncclCommInitAll; 0: device i has rank i");
	s32 rank DOC("as passed, -1: the function takes none");
	s32 size DOC("ranks, as passed, -1: the function takes none");
	s32 color DOC("of a split");
	s32 key DOC("of a split");
	u32 api_flags DOC("of ncclCommShrink and ncclCommRevoke");
} EVENT(nccl_comm, 0x0503, "a communicator created, finalized or destroyed");

struct nccl_query {
	struct call call;
	u64 comm UNIT(hex) DOC("communicator");
	s32 value DOC("the result: asynchronous error, ranks, device or rank; 0 if the call failed");
} EVENT(nccl_query, 0x0504, "a query of a communicator's error, size, device or rank");

struct nccl_memory {
	struct call call;
	u64 address UNIT(hex) DOC("buffer; 0 if its allocation failed");
	u64 bytes UNIT(bytes) DOC("requested; 0 when it is freed or deregistered");
	u64 comm UNIT(hex) DOC("communicator, of a registration");
	u64 handle UNIT(hex) DOC("registration or window; 0 if creating it failed");
	u32 api_flags DOC("of ncclCommWindowRegister");
} EVENT(nccl_memory, 0x0505, "memory allocated, freed, registered or deregistered");

struct nccl_reduction {
	struct call call;
	u64 comm UNIT(hex) DOC("communicator");
	enum nccl_op op DOC("its number; NCCL_OP_NONE if creating it failed");
	enum nccl_datatype datatype DOC("of one that is created");
} EVENT(nccl_reduction, 0x0506, "a reduction created or destroyed");

struct nccl_call {
	struct call call;
} EVENT(nccl_call, 0x0507, "any other call of NCCL: groups, versions, parameters, windows");

struct nccl_other {
	struct call call;
} EVENT(nccl_other, 0x0508, "a call that returns no ncclResult_t; its ret is always 0");

enum nccl_source {
	NCCL_FROM_CALL = 1, /* the arguments of the call that created it; device and hash are unknown */
	NCCL_FROM_MEMORY = 2, /* the communicator's memory */
};

/* Emitted after the call that created a communicator, and at the first use of one not yet described from its memory. */
struct nccl_communicator {
	struct event event;
	u64 comm UNIT(hex) DOC("communicator: identifies it in its process until it is destroyed");
	u64 hash UNIT(hex) DOC("the same in all its ranks; 0: not known");
	s32 rank DOC("this process's rank in it");
	s32 size DOC("ranks");
	s32 device DOC("CUDA device number, -1: not known");
	enum nccl_source source;
} EVENT(nccl_communicator, 0x0509, "rank, size and device of a communicator");

/* Byte offsets of members in struct ncclComm. */
struct nccl_layout {
	u64 start_magic;
	u64 end_magic;
	u64 hash;
	u64 rank;
	u64 size;
	u64 device;
};

struct nccl_library {
	struct event event;
	struct nccl_layout layout;
	u64 dev UNIT(hex) DOC("device of the backing inode, as in meta_object");
	u64 ino DOC("backing inode");
	u64 took UNIT(ns) DOC("time that reading its debug information took");
	u32 path UNIT(string) DOC("as the first process that mapped it sees it");
	u32 why UNIT(string) DOC("why the layout of its communicators is not known; empty: it is known");
} EVENT(nccl_library, 0x050a, "a mapped libnccl, and the offsets in its struct ncclComm that sonde reads");

#define NCCL_MAGIC 0x0280028002800280ULL /* comm.h: the first and last member of a valid struct ncclComm */

/* The size of the maps that nccl.c and the programs share. */
#define NCCL_LAYOUTS 64
