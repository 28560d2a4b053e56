// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "elf/ldcache.h"

#include "util/file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_MAX (64 << 20)
#define MAGIC	  "glibc-ld.so.cache1.1"

/* glibc's sysdeps/generic/dl-cache.h: the only format that ldconfig has written since 2.32 */
struct header {
	char magic[20];
	uint32_t n, strings;
	uint8_t flags, pad[3];
	uint32_t extensions, unused[3];
};

struct entry {
	int32_t flags;
	uint32_t name, path; /* offsets in the file */
	uint32_t os_version;
	uint64_t capabilities;
};

unsigned int ldcache__parse(const void *data, size_t len, void (*fn)(const char *path, void *arg), void *arg)
{
	unsigned int found = 0;
	struct header h;
	struct entry e;

	if (len < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)))
		return 0;
	for (size_t i = 0; i < h.n && sizeof(h) + (i + 1) * sizeof(e) <= len; i++) {
		memcpy(&e, (const char *)data + sizeof(h) + i * sizeof(e), sizeof(e));
		if (e.path >= len || !memchr((const char *)data + e.path, '\0', len - e.path))
			continue;
		fn((const char *)data + e.path, arg);
		found++;
	}
	return found;
}

void ldcache__each(void (*fn)(const char *path, void *arg), void *arg)
{
	int fd = file__open_regular("/etc/ld.so.cache");
	char *data = NULL;
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

	if (size > 0 && size <= CACHE_MAX)
		data = malloc(size);
	if (data && pread(fd, data, size, 0) == size)
		ldcache__parse(data, size, fn, arg);
	free(data);
	if (fd >= 0)
		close(fd);
}
