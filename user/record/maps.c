// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which maps the worker keeps once it reads what targets wrote. Loading gives it all of them, to be written too; what
 * it has to set from then on it asks the attacher for (attach/steering.h).
 */
#include "record/internal.h"

#include "util/array.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The rings are mapped: their descriptors are not needed any more. */
static const char *const read_maps[] = { "processes",	     "ended",	     "losses",	    "probe_hits",
					 "python_processes", "python_files", "sample_ticks" };

/* The kernel empties an array of programs when its last descriptor is closed: the calls in it would fail from then on. */
static bool is_kept(const struct bpf_map *m)
{
	if (bpf_map__type(m) == BPF_MAP_TYPE_PROG_ARRAY)
		return true;
	for (u32 i = 0; i < ARRAY_LEN(read_maps); i++)
		if (!strcmp(read_maps[i], bpf_map__name(m)))
			return true;
	return false;
}

/* A descriptor that only reads; asking for one takes CAP_SYS_ADMIN. */
static int open_to_read(int fd)
{
	LIBBPF_OPTS(bpf_get_fd_by_id_opts, opts, .open_flags = BPF_F_RDONLY);
	struct bpf_map_info info = {};
	u32 size = sizeof(info);
	int id = bpf_obj_get_info_by_fd(fd, &info, &size) ? -errno : (int)info.id;

	return id < 0 ? id : bpf_map_get_fd_by_id_opts(id, &opts);
}

/* The number stays taken, lest libbpf close another file by it in the end. */
static int replace(int fd, int with)
{
	return with < 0 || dup3(with, fd, O_CLOEXEC) < 0 ? -errno : 0;
}

void maps__give_up(struct session *s, char *lacks, size_t len)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err = 0;
	struct bpf_map *m;

	bpf_object__for_each_map(m, s->obj)
	{
		int fd = bpf_map__fd(m), only;

		if (fd < 0)
			continue;
		if (!is_kept(m)) {
			if (replace(fd, null))
				err = -errno;
			continue;
		}
		only = open_to_read(fd);
		if (replace(fd, only))
			err = only < 0 ? only : -errno;
		if (only >= 0)
			close(only);
	}
	if (null >= 0)
		close(null);
	if (err)
		snprintf(lacks, len, "it can write the maps that it reads (%s)", strerror(-err));
}
