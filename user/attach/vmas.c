// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/vmas.h"

#include "core/maps.h"
#include "util/account.h"

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

int vmas__scan(struct attacher *a, const struct program *p, u32 pid, void (*fn)(const struct mapping *m, void *arg),
	       void *arg)
{
	char *buf;
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
			.uid = account__owner(r.uid),
		};
		memcpy(m.comm, r.comm, sizeof(m.comm));
		if (r.path_len)
			buf[pos + r.path_len - 1] = '\0';
		m.path = r.path_len ? buf + pos : "";
		pos += r.path_len;
		fn(&m, arg);
	}
	free(buf);
	return 0;
}
