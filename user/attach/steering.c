// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/steering.h"

#include "process/procs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USER_END  (1ULL << 56) /* the largest address space of a program: 5-level paging */
#define VALUE_MAX 4096

REGISTRY(steering, sonde_steering);

u32 steering__count(void)
{
	u32 n = __stop_sonde_steering - __start_sonde_steering;

	return n < STEERING_MAX ? n : STEERING_MAX;
}

const struct steering *steering__at(u32 i)
{
	return i < steering__count() ? __start_sonde_steering[i] : NULL;
}

int steering__find(const char *map)
{
	for (u32 i = 0; i < steering__count(); i++)
		if (!strcmp(steering__at(i)->map, map))
			return i;
	return -ENOENT;
}

/* Has the key been set to another value? In an array, a value of zeros was never set. */
static bool has_other_value(int fd, const struct steering *s, const void *key, const void *value)
{
	static const u8 zeros[VALUE_MAX];
	u8 old[VALUE_MAX];

	return !bpf_map_lookup_elem(fd, key, old) && memcmp(old, zeros, s->value_size) &&
	       memcmp(old, value, s->value_size);
}

int steering__set(const struct steering_maps *maps, u32 i, const void *key, const void *value, u64 flags)
{
	const struct steering *s = steering__at(i);
	int fd = s && maps ? maps->fds[i] : -1;
	/* aligned, because the checks read structs from it, and a value in a message may be unaligned */
	static u64 copy[VALUE_MAX / sizeof(u64)];

	if (fd < 0 || s->value_size > VALUE_MAX)
		return -ENOENT;
	if (!value)
		return bpf_map_delete_elem(fd, key) ? -errno : 0;
	if (flags > BPF_EXIST)
		return -EINVAL;
	value = memcpy(copy, value, s->value_size);
	if ((s->check && !s->check(key, value)) || (s->once && has_other_value(fd, s, key, value)))
		return -EPERM;
	return bpf_map_update_elem(fd, key, value, flags) ? -errno : 0;
}

bool steering__is_address(u64 address)
{
	return address < USER_END;
}

/* Parses "start-end perms offset device inode path"; only the numbers are used. */
static bool parse_line(const char *line, u64 *start, u64 *end, u64 *ino, bool *named)
{
	int at = 0;

	if (sscanf(line, "%llx-%llx %*s %*s %*s %llu %n", start, end, ino, &at) < 3)
		return false;
	*named = line[at] && line[at] != '\n';
	return true;
}

bool steering__in_file(u32 pid, u64 address)
{
	u64 start, end, ino, before = 0;
	bool named, of_file = false, found = false;
	char path[32], *line = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", procs__shown_as(pid));
	f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0) {
		if (!parse_line(line, &start, &end, &ino, &named))
			break;
		of_file = ino || (of_file && !named && start == before);
		before = end;
		if (address < start)
			break;
		found = of_file && address < end;
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}
