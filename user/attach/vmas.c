// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/vmas.h"

#include "core/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int iter__read_all(struct attacher *a, const struct program *p, u32 pid, char **out, size_t *len)
{
	int fd = attacher__iter(a, p, pid), err;

	if (fd < 0)
		return fd;
	err = attacher__read(a, fd, out, len);
	close(fd);
	return err;
}

/* bpf_d_path had no room for a very long path: reads it from the opened file. */
static const char *read_path(struct attacher *a, const struct mapping *m, char *buf, size_t size)
{
	char link[32];
	int fd = attacher__open(a, m);
	ssize_t n = -1;

	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, buf, size - 1);
		close(fd);
	}
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

int vmas__scan(struct attacher *a, const struct program *p, u32 pid, void (*fn)(const struct mapping *m, void *arg),
	       void *arg)
{
	char *buf, path[4096];
	size_t len, pos = 0;
	int err = iter__read_all(a, p, pid, &buf, &len);

	if (err)
		return err;
	while (len - pos >= sizeof(struct vma_record)) {
		struct vma_record r;
		struct mapping m;

		memcpy(&r, buf + pos, sizeof(r));
		pos += sizeof(r);
		if (r.path_len > len - pos)
			break;
		m = (struct mapping){
			.pid = r.pid,
			.start = r.start,
			.end = r.end,
			.offset = r.offset,
			.dev = r.dev,
			.ino = r.ino,
			.generation = r.generation,
			.magic = r.magic,
			.uid = r.uid,
		};
		memcpy(m.comm, r.comm, sizeof(m.comm));
		if (r.path_len)
			buf[pos + r.path_len - 1] = '\0';
		m.path = r.path_len ? buf + pos : read_path(a, &m, path, sizeof(path));
		pos += r.path_len;
		fn(&m, arg);
	}
	free(buf);
	return 0;
}
