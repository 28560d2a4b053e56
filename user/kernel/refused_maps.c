// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/refused_maps.h"

#include "util/test_switch.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

/* libbpf replaces a reference to a missing map by a call of this number plus the map's index. */
#define POISON 2001000000

static bool is_listed(const struct refused_maps *r, u32 index)
{
	for (u32 i = 0; i < r->n; i++)
		if (r->list[i].index == index)
			return true;
	return false;
}

bool refused_maps__add(struct refused_maps *r, const struct bpf_object *obj, const char *log)
{
	const char *text = strstr(log, "': failed to create: "), *why, *name = text;
	struct bpf_map *map;
	u32 index = 0;

	while (name && name > log && name[-1] != '\'' && name[-1] != '\n')
		name--;
	if (!name || r->n == REFUSED_MAPS_MAX)
		return false;
	why = text + strlen("': failed to create: ");
	bpf_object__for_each_map(map, obj)
	{
		const char *known = bpf_map__name(map);

		if (strlen(known) == (size_t)(text - name) && !memcmp(known, name, text - name) &&
		    !is_listed(r, index)) {
			snprintf(r->list[r->n].name, sizeof(r->list[r->n].name), "%s", known);
			snprintf(r->list[r->n].why, sizeof(r->list[r->n].why), "%.*s", (int)strcspn(why, "(\n"), why);
			r->list[r->n++].index = index;
			return true;
		}
		index++;
	}
	return false;
}

/* SONDE_TEST=refuse-map:NAME: sets a size that the kernel refuses for any type of map. */
static void spoil(struct bpf_map *map)
{
	if (!bpf_map__is_internal(map) && test_switch__matches("refuse-map", bpf_map__name(map)))
		bpf_map__set_max_entries(map, bpf_map__type(map) == BPF_MAP_TYPE_TASK_STORAGE ? 1 : 0);
}

void refused_maps__leave_out(const struct refused_maps *r, struct bpf_object *obj)
{
	struct bpf_map *map;
	u32 index = 0;

	bpf_object__for_each_map(map, obj)
	{
		spoil(map);
		bpf_map__set_autocreate(map, bpf_map__autocreate(map) && !is_listed(r, index));
		index++;
	}
}

bool refused_maps__used(const struct refused_maps *r, const struct bpf_insn *insns, size_t n, char *why, size_t len)
{
	for (size_t i = 0; r->n && i < n; i++)
		for (u32 m = 0; insns[i].code == (BPF_JMP | BPF_CALL) && !insns[i].src_reg && m < r->n; m++)
			if (insns[i].imm == (s32)(POISON + r->list[m].index)) {
				snprintf(why, len, "the kernel refused the map %s: %s", r->list[m].name,
					 r->list[m].why);
				return true;
			}
	return false;
}
