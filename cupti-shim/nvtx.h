/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * NVTX (docs/nvtx.md): a program's libraries call it through tables of function pointers. The shim's functions are in
 * these tables if NVTX has loaded the shim (NVTX_INJECTION64_PATH), or while a tracer requests records. Types and
 * numbers are those of nvToolsExt.h, nvtxDetail/nvtxTypes.h and nvtxDetail/nvtxExtTypes.h of NVTX 3.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

#include "core/shim_nvtx.h"
#include "texts.h"

/* nvtxEventAttributes_v2 */
struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type; /* 1: ARGB */
	uint32_t color;
	int32_t payload_type;
	int32_t payloads; /* of type NVTX_PAYLOAD_EXT: their number */
	uint64_t payload;
	int32_t message_type; /* enum nvtx_message */
	uint64_t message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as in NVTX");

enum nvtx_message { MESSAGE_NONE, MESSAGE_CHARS, MESSAGE_WIDE, MESSAGE_REGISTERED };
#define NVTX_PAYLOAD_EXT ((int32_t)0xdfbd0009)

/* nvtxPayloadData_v1 */
struct nvtx_payload_data {
	uint64_t schema;
	size_t size;
	const void *data;
};

/* The functions, in the order of the slots of a table (nvtx_find.c); NULL: not served. */
#define NVTX_SLOTS	  64
#define NVTX_TABLE_CORE	  0 /* the first slot of each module */
#define NVTX_TABLE_CUDA	  15
#define NVTX_TABLE_OPENCL 23
#define NVTX_TABLE_CUDART 37
#define NVTX_TABLE_CORE2  43
#define NVTX_TABLE_SYNC	  58
extern void *const nvtx_functions[NVTX_SLOTS];

/* nvtx.c: true: the functions record; else they only note what later records refer to */
extern bool nvtx_records, nvtx_passes_ranges;

uint64_t nvtx__text(const char *text);
uint64_t nvtx__wide_text(const wchar_t *text);
uint64_t nvtx__message(const struct nvtx_attributes *a);
void nvtx__use(uint64_t text);
/* When the recording began. */
uint64_t nvtx__since(void);

/* nvtx_ranges.c: open ranges */

/* Returns the time at which the range began; 0: nothing is being recorded. */
uint64_t nvtx__push(const struct shim_nvtx_attributes *a, int *level);
/* Returns the level of the range that ended; -1: none was known. */
int nvtx__pop(uint64_t domain);
/* Returns the range's id; 0: it has none. *start: as nvtx__push(). */
uint64_t nvtx__start(const struct shim_nvtx_attributes *a, uint64_t *start);
void nvtx__end(uint64_t id);
/* Records those that are open, as a recording ends. */
void nvtx_ranges__report_open(void);
/* The functions are no longer called: forgets what is open. */
void nvtx_ranges__forget(void);
/* Ranges whose begin was before the recording, and those that had no room, since the last call. */
void nvtx_ranges__lost(uint64_t *unknown, uint64_t *too_many);

/* nvtx_names.c: names of categories, threads, devices and streams */

void nvtx__name_category(uint64_t domain, uint32_t category, uint64_t name);
void nvtx__name_resource(enum nvtx_resource_kind kind, uint64_t handle, uint64_t name);
/* A tracer has come. */
void nvtx_names__report_all(void);

/* nvtx.c: returns the time of the mark; 0: nothing is being recorded. */
uint64_t nvtx__mark(const struct shim_nvtx_attributes *a);

/* nvtx_payload.c: the payload and counter extensions */

/* Records the values of the payload of a mark or range that begins now. */
void nvtx__payload(const struct nvtx_payload_data *p, int n, uint64_t time);

/* nvtx_tables.c */

/* Points the tables of all loaded objects to the functions, also of those that were loaded since the last call. */
void nvtx_tables__serve(void);
/* Makes them as they were, unless NVTX had loaded the shim. */
void nvtx_tables__restore(void);
/* A tracer has come: records the objects and whether they are served. */
void nvtx_tables__report(void);
/*
 * Gets the addresses of the slots of a table from NVTX's own list (its export table 1, NULL: none); those that are not
 * served stay NULL. Returns false if it is none.
 */
bool nvtx_tables__slots(const void *callbacks, uint64_t **slots);
/* The table with this slot has the shim's functions for good. */
void nvtx_tables__keep(const uint64_t *slot);
/* nvtx_control.c: by the shim's thread */

/* `requested`: bits of enum shim_group. came, left: tracers have come or left since the last call. */
void nvtx__step(uint32_t requested, bool came, bool left);
bool nvtx__is_active(void);
void nvtx__stop(void);
/* inherited: groups that the child goes on recording */
void nvtx__after_fork(uint32_t inherited);
