// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/vmas.h"

#include "core/maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_all(int fd, char **out, size_t *len)
{
	size_t used = 0, size = 0;
	char *buf = NULL, *bigger;
	ssize_t n;

	for (;;) {
		if (size - used < 64 * 1024) {
			size = size ? size * 2 : 256 * 1024;
			bigger = realloc(buf, size);
			if (!bigger) {
				free(buf);
				return -ENOMEM;
			}
			buf = bigger;
		}
		n = read(fd, buf + used, size - used);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0) {
			n = -errno;
			free(buf);
			return n;
		}
		if (!n)
			break;
		used += n;
	}
	*out = buf;
	*len = used;
	return 0;
}

int iter__read_all(const struct bpf_program *prog, u32 pid, char **out, size_t *len)
{
	union bpf_iter_link_info info = { .task.pid = pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_link *link;
	int fd, err;

	if (pid) {
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	link = bpf_program__attach_iter(prog, &opts);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = -errno;
	} else {
		err = read_all(fd, out, len);
		close(fd);
	}
	bpf_link__destroy(link);
	return err;
}

/* bpf_d_path had no room for a very long path: the link in /proc says it too. */
static const char *read_path(const struct vma_record *r, char *buf, size_t size)
{
	char link[96];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", r->pid, r->start, r->end);
	n = readlink(link, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

int vmas__scan(const struct bpf_program *prog, u32 pid, void (*fn)(const struct mapping *m, void *arg), void *arg)
{
	char *buf, path[4096];
	size_t len, pos = 0;
	int err = iter__read_all(prog, pid, &buf, &len);

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
		};
		if (r.path_len)
			buf[pos + r.path_len - 1] = '\0';
		m.path = r.path_len ? buf + pos : read_path(&r, path, sizeof(path));
		pos += r.path_len;
		fn(&m, arg);
	}
	free(buf);
	return 0;
}
