/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges, marks and names that a program passes to NVTX, as the shim in the process gets them (docs/nvtx.md). */
#pragma once

#include "core/shim.h"
#include "core/shim_nvtx.h"

FAMILY(nvtx, 0x12, FAMILY_ON_REQUEST, "NVTX: ranges, marks and names that the program states");

struct nvtx_range {
	struct span span;
	struct shim_nvtx_range range;
} EVENT(nvtx_range, 0x1201, "a range, of the thread that began it");

struct nvtx_mark {
	struct event event;
	struct shim_nvtx_mark mark;
} EVENT(nvtx_mark, 0x1202, "a moment that the program marked");

struct nvtx_text {
	struct event event;
	struct shim_nvtx_text named;
	char text[];
} EVENT(nvtx_text, 0x1203, "a name; recorded once per recording and process");

struct nvtx_category {
	struct event event;
	struct shim_nvtx_category named;
} EVENT(nvtx_category, 0x1204, "the name of a category in a domain");

struct nvtx_resource {
	struct event event;
	struct shim_nvtx_resource resource;
	char name[];
} EVENT(nvtx_resource, 0x1205, "the name of a thread, device, stream or other resource");

struct nvtx_payload {
	struct event event;
	struct shim_nvtx_payload of;
	char text[];
} EVENT(nvtx_payload, 0x1206,
	"values of a payload with a schema, of the range that began, or the mark, at this time in this thread");

struct nvtx_counter {
	struct event event;
	struct shim_nvtx_counter counter;
} EVENT(nvtx_counter, 0x1207, "a sample of a counter");

struct nvtx_dropped {
	struct event event;
	struct shim_nvtx_dropped dropped;
} EVENT(nvtx_dropped, 0x1208, "what the shim could not record");

struct nvtx_shim {
	struct event event;
	struct shim_state shim;
	char text[];
} EVENT(nvtx_shim, 0x1209, "the shim began to serve NVTX, stopped, or can't");

struct nvtx_object {
	struct event event;
	struct shim_nvtx_object object;
	char path[];
} EVENT(nvtx_object, 0x120a, "a library or program with a table of NVTX's functions");
