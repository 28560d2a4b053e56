// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libbpf looks a name up by comparing it with those of all types, about 150,000, once for each program. Here one pass
 * over the types collects all names that programs may need.
 */
#include "kernel/kernel_btf.h"

#include "util/array.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

#define TRACEPOINT "btf_trace_" /* typedefs */
#define ITERATOR   "bpf_iter_" /* functions */

/* Functions that programs attach to. */
static const char *const functions[] = { "schedule" };

struct attach_point {
	char *name;
	u32 id;
};

static struct {
	bool read, begun;
	pthread_t reader;
	struct btf *types; /* NULL: not read, or freed again */
	struct attach_point *list;
	u32 n;
} points;

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct attach_point *)a)->name, ((const struct attach_point *)b)->name);
}

static void add(const char *name, u32 id)
{
	if (!array__room(points.list, points.n))
		return;
	points.list[points.n].name = strdup(name);
	points.list[points.n].id = id;
	points.n += points.list[points.n].name != NULL;
}

/* From Linux 6.16 on the file can be mapped; libbpf reads it, a page at a time. */
static struct btf *map_types(void)
{
	int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC);
	struct stat st = {};
	struct btf *btf = NULL;
	void *data;

	if (fd < 0)
		return NULL;
	data = fstat(fd, &st) ? MAP_FAILED : mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data != MAP_FAILED) {
		btf = btf__new(data, st.st_size);
		munmap(data, st.st_size);
	}
	close(fd);
	return btf;
}

static struct btf *read_types(void)
{
	struct btf *btf = map_types();

	return btf ? btf : btf__load_vmlinux_btf();
}

static bool is_listed(const char *name)
{
	for (u32 i = 0; i < ARRAY_LEN(functions); i++)
		if (!strcmp(name, functions[i]))
			return true;
	return false;
}

static void read_points(void)
{
	struct btf *btf = read_types();

	if (!btf)
		return;
	for (u32 id = 1, n = btf__type_cnt(btf); id < n; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name = btf_is_typedef(t) || btf_is_func(t) ? btf__name_by_offset(btf, t->name_off) : NULL;
		const char *prefix = btf_is_func(t) ? ITERATOR : TRACEPOINT;

		if (name && (!strncmp(name, prefix, strlen(prefix)) || (btf_is_func(t) && is_listed(name))))
			add(name, id);
	}
	points.types = btf;
	qsort(points.list, points.n, sizeof(*points.list), compare);
}

static void *read_in_thread(void *arg)
{
	read_points();
	return NULL;
}

void kernel_btf__begin(void)
{
	if (!points.read && !points.begun)
		points.begun = !pthread_create(&points.reader, NULL, read_in_thread, NULL);
}

static void await(void)
{
	if (points.begun)
		pthread_join(points.reader, NULL);
	else if (!points.read)
		read_points();
	points.begun = false;
	points.read = true;
}

const struct btf *kernel_btf__types(void)
{
	await();
	if (!points.types)
		points.types = read_types();
	return points.types;
}

void kernel_btf__free_types(void)
{
	await();
	btf__free(points.types);
	points.types = NULL;
}

static u32 find(const char *prefix, const char *name)
{
	char text[128];
	struct attach_point key = { .name = text }, *found;

	await();
	snprintf(text, sizeof(text), "%s%s", prefix, name);
	found = points.n ? bsearch(&key, points.list, points.n, sizeof(*points.list), compare) : NULL;
	return found ? found->id : 0;
}

bool kernel_btf__exists(void)
{
	return !access(KERNEL_BTF, R_OK);
}

u32 kernel_btf__tracepoint(const char *name)
{
	return find(TRACEPOINT, name);
}

u32 kernel_btf__function(const char *name)
{
	return find("", name);
}

u32 kernel_btf__iterator(const char *name)
{
	return find(ITERATOR, name);
}
