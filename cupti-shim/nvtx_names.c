// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names that are given once and used long after: they are kept for tracers that come later. */
#define _GNU_SOURCE
#include "nvtx.h"

#include "shim.h"

#include <string.h>

#define NAMES_MAX 1024

struct given {
	uint64_t domain, handle, name;
	uint32_t kind; /* enum nvtx_resource_kind, or CATEGORY */
	uint32_t complete;
};
#define CATEGORY 100

static struct {
	struct given list[NAMES_MAX];
	uint32_t n;
} names;

static void record_category(const struct given *g)
{
	struct shim_nvtx_category *body = lane__record(LANE_NVTX, NVTX_CATEGORY, sizeof(*body), 0, shim__now());

	if (!body)
		return;
	*body = (struct shim_nvtx_category){ .name = g->name, .domain = g->domain, .category = (u32)g->handle };
	lane__commit(LANE_NVTX);
}

static void record_resource(const struct given *g)
{
	struct shim_nvtx_resource body = { .handle = g->handle, .kind = g->kind };
	const char *name = text__of(g->name);

	lane__record_text(LANE_NVTX, NVTX_RESOURCE, &body, sizeof(body), name, strlen(name));
}

static void record(const struct given *g)
{
	if (!nvtx_records)
		return;
	if (g->kind != CATEGORY) {
		record_resource(g);
		return;
	}
	nvtx__use(g->name);
	nvtx__use(g->domain);
	record_category(g);
}

/* A later name for the same thing replaces the first one. */
static void give(const struct given *g)
{
	uint32_t n = __atomic_load_n(&names.n, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < n && i < NAMES_MAX; i++)
		if (names.list[i].kind == g->kind && names.list[i].handle == g->handle &&
		    names.list[i].domain == g->domain)
			break;
	if (i < n && i < NAMES_MAX) {
		if (names.list[i].name == g->name)
			return;
		__atomic_store_n(&names.list[i].name, g->name, __ATOMIC_RELAXED);
	} else {
		i = __atomic_fetch_add(&names.n, 1, __ATOMIC_ACQ_REL);
		if (i < NAMES_MAX) {
			names.list[i] = *g;
			__atomic_store_n(&names.list[i].complete, 1, __ATOMIC_RELEASE);
		} else {
			__atomic_store_n(&names.n, NAMES_MAX, __ATOMIC_RELEASE);
		}
	}
	record(g);
}

void nvtx__name_category(uint64_t domain, uint32_t category, uint64_t name)
{
	give(&(struct given){ .domain = domain, .handle = category, .name = name, .kind = CATEGORY });
}

void nvtx__name_resource(enum nvtx_resource_kind kind, uint64_t handle, uint64_t name)
{
	give(&(struct given){ .handle = handle, .name = name, .kind = kind });
}

void nvtx_names__report_all(void)
{
	for (uint32_t i = 0; i < names.n && i < NAMES_MAX; i++)
		if (__atomic_load_n(&names.list[i].complete, __ATOMIC_ACQUIRE))
			record(&names.list[i]);
}
