// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Closes the maps that the worker does not need, before it reads data of targets. After loading it has all of them,
 * writable; later changes are requested from the attacher (attach/steering.h).
 */
#include "record/parts.h"
#include "sonde.skel.h"
#include "util/array.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The maps that the worker reads. The rings are mapped, so their descriptors are not needed. */
static const char *const read_maps[] = { "processes",	     "ended",	     "losses",	    "probe_hits",
					 "python_processes", "python_files", "sample_ticks" };

/* Program arrays stay open: the kernel clears one when its last descriptor is closed, and tail calls would fail. */
static bool is_needed(const struct bpf_map *m)
{
	if (bpf_map__type(m) == BPF_MAP_TYPE_PROG_ARRAY)
		return true;
	for (u32 i = 0; i < ARRAY_LEN(read_maps); i++)
		if (!strcmp(read_maps[i], bpf_map__name(m)))
			return true;
	return false;
}

/* Returns a read-only descriptor of the map, which requires CAP_SYS_ADMIN. */
static int open_to_read(int fd)
{
	LIBBPF_OPTS(bpf_get_fd_by_id_opts, opts, .open_flags = BPF_F_RDONLY);
	struct bpf_map_info info = {};
	u32 size = sizeof(info);
	int id = bpf_obj_get_info_by_fd(fd, &info, &size) ? -errno : (int)info.id;

	return id < 0 ? id : bpf_map_get_fd_by_id_opts(id, &opts);
}

/* Replaces the descriptor without freeing its number, because libbpf closes that number at the end. */
static int replace_descriptor(int fd, int with)
{
	return with < 0 || dup3(with, fd, O_CLOEXEC) < 0 ? -errno : 0;
}

void maps__restrict(struct session *s, char *lacks, size_t len)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err = 0;
	struct bpf_map *m;

	bpf_object__for_each_map(m, s->embedded.skel->obj)
	{
		int fd = bpf_map__fd(m), only;

		if (fd < 0)
			continue;
		if (!is_needed(m)) {
			if (replace_descriptor(fd, null))
				err = -errno;
			continue;
		}
		only = open_to_read(fd);
		if (replace_descriptor(fd, only))
			err = only < 0 ? only : -errno;
		if (only >= 0)
			close(only);
	}
	if (null >= 0)
		close(null);
	if (err)
		snprintf(lacks, len, "it can write the maps that it reads (%s)", strerror(-err));
}
