// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sites that a family's host code finds in a file. */
#include "core/maps.h"
#include "record/family.h"
#include "site/place.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int site_list__add_site(struct site_list *list, const struct site *site)
{
	if (!array__push(list->sites, list->n, *site))
		return -ENOMEM;
	return 0;
}

int site_list__add(struct site_list *list, u64 offset, const char *program)
{
	return site_list__add_site(list, &(struct site){ .offset = offset, .program = program });
}

u32 site_list__name(struct site_list *list, const char *name)
{
	char *copy;

	if (!array__room(list->names, list->n_names))
		return 0;
	copy = strdup(name);
	if (!copy)
		return 0;
	list->names[list->n_names++] = copy;
	return list->n_names;
}

u64 site_list__placed_cookie(const struct place_site *site)
{
	if (site->kind == PLACE_ENTRY)
		return 0;
	return (site->kind == PLACE_UNWIND ? COOKIE_UNWIND : COOKIE_EXIT) |
	       (site->by_frame_pointer ? COOKIE_BY_FRAME_POINTER : 0) | (u64)(site->above / 8) << COOKIE_ABOVE_SHIFT;
}

int site_list__add_placed(struct site_list *list, struct elf *elf, struct placer *placer,
			  const struct elf_symbol *function, const struct site *like, const char **why)
{
	struct site site = *like;
	struct placement where;
	int err = placer__function(placer, function->addr, function->size, &where);

	*why = NULL;
	if (!err && !where.exits)
		*why = where.exits_why;
	for (u32 i = 0; !err && !*why && i < where.n; i++) {
		site.cookie = i ? site_list__placed_cookie(&where.sites[i]) : like->cookie;
		err = elf__offset(elf, where.sites[i].addr, &site.offset);
		err = err ?: site_list__add_site(list, &site);
	}
	return err;
}

void site_list__free(struct site_list *list)
{
	for (u32 i = 0; i < list->n_names; i++)
		free(list->names[i]);
	free(list->names);
	free(list->sites);
	memset(list, 0, sizeof(*list));
}
