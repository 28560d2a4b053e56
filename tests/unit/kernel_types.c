// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reduced kernel BTF, compared with the full one: the types that relocation reads must be equal, and few others
 * present.
 */
#include "kernel/kernel_types.h"

#include "kernel/embedded.h"
#include "kernel/kernel_btf.h"
#include "sonde.skel.h"
#include "test.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

struct types {
	const struct btf *all;
	struct btf *reduced;
};

static const char *name_of(const struct btf *btf, const struct btf_type *t)
{
	return btf__name_by_offset(btf, t->name_off);
}

static const struct btf_type *resolve(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (btf_is_mod(t) || btf_is_typedef(t))
		t = btf__type_by_id(btf, t->type);
	return t;
}

static bool same_values(const struct types *b, const struct btf_type *x, const struct btf_type *y)
{
	for (u32 i = 0; i < btf_vlen(x); i++)
		if (strcmp(btf__name_by_offset(b->all, btf_enum(x)[i].name_off),
			   btf__name_by_offset(b->reduced, btf_enum(y)[i].name_off)) ||
		    btf_enum(x)[i].val != btf_enum(y)[i].val)
			return false;
	return true;
}

/* True if two types have the same members, including those of embedded types. */
static bool same(const struct types *b, u32 x_id, u32 y_id)
{
	const struct btf_type *x = resolve(b->all, x_id), *y = resolve(b->reduced, y_id);
	bool equal = x && y && btf_kind(x) == btf_kind(y) && btf_vlen(x) == btf_vlen(y) &&
		     !strcmp(name_of(b->all, x), name_of(b->reduced, y));

	if (!equal || btf_is_ptr(x))
		return equal;
	if (btf_is_array(x))
		return btf_array(x)->nelems == btf_array(y)->nelems && same(b, btf_array(x)->type, btf_array(y)->type);
	if (btf_is_func_proto(x))
		return true;
	if (x->size != y->size)
		return false;
	if (btf_is_enum(x))
		return same_values(b, x, y);
	for (u32 i = 0; btf_is_composite(x) && i < btf_vlen(x); i++)
		if (btf_members(x)[i].offset != btf_members(y)[i].offset ||
		    strcmp(btf__name_by_offset(b->all, btf_members(x)[i].name_off),
			   btf__name_by_offset(b->reduced, btf_members(y)[i].name_off)) ||
		    !same(b, btf_members(x)[i].type, btf_members(y)[i].type))
			return false;
	return true;
}

/* Compares a name's types in both. Returns the number of types that the object mentions, or -1 if they differ. */
static int compare_name(const struct types *b, const char *name, u32 kind)
{
	s32 x = btf__find_by_name_kind(b->all, name, kind), y = btf__find_by_name_kind(b->reduced, name, kind);

	if (x < 0 && y < 0)
		return 0;
	return x > 0 && y > 0 && same(b, x, y) ? 1 : -1;
}

TEST(has_the_types_that_the_object_reads)
{
	struct types b = { .all = NULL };
	struct embedded e = {};
	char err[4096];
	u32 compared = 0, different = 0;
	const struct btf *object;

	if (!kernel_btf__exists())
		SKIP("this kernel publishes no types");
	REQUIRE(!embedded__open(&e, err, sizeof(err)));
	object = bpf_object__btf(e.skel->obj);
	REQUIRE(!kernel_types__write(object));
	b.all = kernel_btf__types();
	b.reduced = btf__parse(kernel_types__path(), NULL);
	REQUIRE(b.all && b.reduced);
	for (u32 id = 1; id < btf__type_cnt(object); id++) {
		const struct btf_type *t = btf__type_by_id(object, id);
		int found;

		if (!btf_is_composite(t) && !btf_is_enum(t))
			continue;
		if (!*name_of(object, t))
			continue;
		found = compare_name(&b, name_of(object, t), btf_kind(t));
		compared += found > 0;
		different += found < 0;
		if (found < 0)
			printf("# %s differs\n", name_of(object, t));
	}
	printf("# %u of %u types, %u names compared\n", btf__type_cnt(b.reduced), btf__type_cnt(b.all), compared);
	CHECK(compared > 50);
	CHECK(!different);
	CHECK(btf__type_cnt(b.reduced) < btf__type_cnt(b.all) / 10);
	kernel_btf__free_types();
	btf__free(b.reduced);
	embedded__close(&e);
}

TEST_MAIN()
