// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/kernel_types.h"

#include "kernel/kernel_btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FLAVOR "___" /* libbpf ignores this and what follows: `struct bio___old` is compared with `struct bio` */

static struct {
	int fd;
	bool open, tried;
	int error; /* the result of writing it, which is tried once */
	char path[32];
} file;

const char *kernel_types__path(void)
{
	if (!file.open) {
		file.fd = memfd_create("kernel-types", MFD_CLOEXEC);
		if (file.fd < 0)
			return NULL;
		file.open = true;
		snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
	}
	return file.path;
}

/* Names without flavors: a hash table with open addressing that is at most half full. */
struct names {
	struct name {
		const char *text;
		size_t len;
	} * list;
	u32 mask;
};

struct copy {
	const struct btf *from;
	struct btf *to;
	u32 *ids; /* by id in the kernel's BTF: the id in the copy; 0: not copied yet */
	int error;
};

static size_t essential_len(const char *text)
{
	const char *flavor = strstr(text, FLAVOR);

	return flavor && flavor > text ? (size_t)(flavor - text) : strlen(text);
}

static struct name *find_name(const struct names *n, const char *text, size_t len)
{
	u32 hash = 2166136261U;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (u8)text[i]) * 16777619U;
	for (u32 i = hash & n->mask;; i = (i + 1) & n->mask) {
		struct name *name = &n->list[i];

		if (!name->text || (name->len == len && !memcmp(name->text, text, len)))
			return name;
	}
}

/* Kinds of types that a relocation may begin at. */
static bool is_root(const struct btf_type *t)
{
	return t->name_off && (btf_is_composite(t) || btf_is_any_enum(t) || btf_is_typedef(t) || btf_is_int(t));
}

static int collect_names(struct names *n, const struct btf *object)
{
	u32 types = btf__type_cnt(object);

	for (n->mask = 255; n->mask < 2 * types; n->mask = n->mask * 2 + 1)
		;
	n->list = calloc((size_t)n->mask + 1, sizeof(*n->list));
	if (!n->list)
		return -ENOMEM;
	for (u32 id = 1; id < types; id++) {
		const struct btf_type *t = btf__type_by_id(object, id);
		const char *text = is_root(t) ? btf__name_by_offset(object, t->name_off) : NULL;
		size_t len = text ? essential_len(text) : 0;

		if (text)
			*find_name(n, text, len) = (struct name){ text, len };
	}
	return 0;
}

static u32 copy_type(struct copy *c, u32 id);

static void copy_members(struct copy *c, const struct btf_type *t, u32 to)
{
	for (u32 i = 0; i < btf_vlen(t); i++) {
		u32 member = copy_type(c, btf_members(t)[i].type);
		/* adding types may have moved the array */
		struct btf_type *copied = (struct btf_type *)btf__type_by_id(c->to, to);

		btf_members(copied)[i].type = member;
	}
}

/*
 * Copies a type; returns its id in the copy. Pointers are copied without their targets, as relocation does not follow
 * them.
 */
static u32 copy_type(struct copy *c, u32 id)
{
	const struct btf_type *t = btf__type_by_id(c->from, id);
	int to, inner = 0;

	if (!id || !t || c->error || c->ids[id])
		return id && t ? c->ids[id] : 0;
	if (btf_is_mod(t) || btf_is_typedef(t))
		inner = copy_type(c, t->type);
	else if (btf_is_array(t))
		inner = copy_type(c, btf_array(t)->type);
	to = btf_is_func_proto(t) ? btf__add_func_proto(c->to, 0) : btf__add_type(c->to, c->from, t);
	if (to < 0) {
		c->error = to;
		return 0;
	}
	c->ids[id] = to;
	if (btf_is_composite(t)) {
		copy_members(c, t, to);
	} else if (btf_is_array(t)) {
		struct btf_array *array = btf_array(btf__type_by_id(c->to, to));

		array->type = inner;
		array->index_type = 0;
	} else if (btf_is_ptr(t) || btf_is_mod(t) || btf_is_typedef(t)) {
		((struct btf_type *)btf__type_by_id(c->to, to))->type = inner;
	}
	return to;
}

static int copy_named(struct copy *c, const struct names *names)
{
	u32 types = btf__type_cnt(c->from);

	c->to = btf__new_empty();
	c->ids = calloc(types, sizeof(*c->ids));
	if (!c->to || !c->ids)
		return -ENOMEM;
	for (u32 id = 1; id < types && !c->error; id++) {
		const struct btf_type *t = btf__type_by_id(c->from, id);
		const char *text = is_root(t) ? btf__name_by_offset(c->from, t->name_off) : NULL;

		if (text && find_name(names, text, essential_len(text))->text)
			copy_type(c, id);
	}
	return c->error;
}

static int write_all(int fd, const void *data, size_t size)
{
	if (ftruncate(fd, 0))
		return -errno;
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, (const char *)data + done, size - done, done);

		if (n <= 0)
			return n ? -errno : -EIO;
		done += n;
	}
	return 0;
}

static int write_types(const struct btf *object)
{
	const struct btf *kernel = kernel_btf__types();
	struct copy c = { .from = kernel };
	struct names names = {};
	const void *data;
	u32 size;
	int err;

	if (!kernel)
		return -ENOENT;
	err = collect_names(&names, object);
	if (!err)
		err = copy_named(&c, &names);
	if (!err) {
		data = btf__raw_data(c.to, &size);
		err = data ? write_all(file.fd, data, size) : -ENOMEM;
	}
	free(names.list);
	free(c.ids);
	btf__free(c.to);
	return err;
}

int kernel_types__write(const struct btf *object)
{
	if (!file.open || file.tried)
		return file.error;
	file.tried = true;
	file.error = write_types(object);
	return file.error;
}
