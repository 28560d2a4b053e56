/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of NVTX that the shim makes in the threads that call it, handed over at its site sonde_cupti_nvtx. The
 * numbers are those of nvToolsExt.h (NVTX 3). Texts are recorded once, by an id.
 */
#pragma once

#include "event.h"

/* Equal to the low byte of the event's id. */
enum shim_nvtx_kind {
	NVTX_RANGE = 1,
	NVTX_MARK,
	NVTX_TEXT,
	NVTX_CATEGORY,
	NVTX_RESOURCE,
	NVTX_PAYLOAD,
	NVTX_COUNTER,
	NVTX_DROPPED,
	NVTX_STATE,
	NVTX_OBJECT,
};

enum nvtx_range_kind {
	NVTX_PUSHED = 1, /* by push and pop: ranges of a thread and domain are nested */
	NVTX_STARTED, /* by start and end: any thread may end it */
};

/* nvtxPayloadType_t */
enum nvtx_payload_kind {
	NVTX_NO_PAYLOAD,
	NVTX_UINT64,
	NVTX_INT64,
	NVTX_DOUBLE,
	NVTX_UINT32,
	NVTX_INT32,
	NVTX_FLOAT,
	NVTX_STRUCT, /* see event nvtx_payload */
};

/* What the attributes of a range or mark state. */
struct shim_nvtx_attributes {
	u64 name UNIT(text) DOC("0: none, or not known");
	u64 domain UNIT(text) DOC("its name; 0: the default domain");
	u64 payload DOC("the value's bits, by its kind");
	u32 category DOC("of event nvtx_category; 0: none");
	u32 color UNIT(hex) DOC("ARGB; 0: none");
	enum nvtx_payload_kind payload_kind;
};

struct shim_nvtx_range {
	struct shim_nvtx_attributes attributes;
	enum nvtx_range_kind kind;
	u32 level DOC("of a pushed range: number of its thread's and domain's ranges around it");
	u32 end_ns_tid DOC("the thread that ended it, as its own pid namespace numbers it");
};

struct shim_nvtx_mark {
	struct shim_nvtx_attributes attributes;
};

/* Followed by the text, padded with NULs. */
struct shim_nvtx_text {
	u64 number UNIT(hex) DOC("hash of the text, by which other events refer to it");
};

struct shim_nvtx_category {
	u64 name UNIT(text);
	u64 domain UNIT(text) DOC("its name; 0: the default domain");
	u32 category;
};

enum nvtx_resource_kind {
	NVTX_OTHER_RESOURCE,
	NVTX_OS_THREAD, /* the handle is a thread's number in its own pid namespace */
	NVTX_CUDA_DEVICE, /* of the runtime or the driver: the device's number */
	NVTX_CUDA_CONTEXT,
	NVTX_CUDA_STREAM,
	NVTX_CUDA_EVENT,
};

/* Followed by its name, padded with NULs. */
struct shim_nvtx_resource {
	u64 handle UNIT(hex);
	enum nvtx_resource_kind kind;
};

/* Follows the time and thread of a range's begin, or of a mark. Followed by the text: "batch=32 loss=0.25". */
struct shim_nvtx_payload {
	u64 schema UNIT(text) DOC("its name; 0: none");
};

struct shim_nvtx_counter {
	u64 name UNIT(text);
	u64 domain UNIT(text) DOC("its name; 0: the default domain");
	u64 value DOC("the value's bits, by its kind");
	enum nvtx_payload_kind value_kind DOC("NVTX_NO_PAYLOAD: there was no value at this time");
};

enum nvtx_drop_reason {
	NVTX_LANE_FULL = 1, /* the thread's buffer was full */
	NVTX_TOO_MANY, /* more threads, or open ranges, than the shim has room for */
	NVTX_BEGAN_BEFORE, /* a range ended whose begin was before the recording: its name is not known */
	NVTX_PROCESS_ENDED, /* the process ended, or was killed, before it handed over the last 0.1 s: number unknown */
};

struct shim_nvtx_dropped {
	u64 records DOC("since the last such event");
	enum nvtx_drop_reason reason;
};

/* Followed by the path of the object, padded with NULs. */
struct shim_nvtx_object {
	u64 address UNIT(hex) DOC("of its table of functions");
	u32 served DOC("1: its calls are recorded; 0: another tool has its table");
};
