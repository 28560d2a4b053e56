// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "elf/debug.h"

#include "util/array.h"
#include "util/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_DIR "/usr/lib/debug"

/* A search, and the first file that existed but was not trusted. */
struct search {
	const struct debug_search *args;
	char refused[PATH_MAX];
	bool remote; /* it lies on a network file system, which may never answer */
};

static int add_file(struct elf *elf, struct search *search, u32 pid, const char *path, const u32 *crc)
{
	const struct debug_search *s = search->args;
	char root[PATH_MAX];
	int fd;

	if (s->open) {
		fd = s->open(pid, path, s->arg);
		if ((fd == -EPERM || fd == -EREMOTE) && !*search->refused) {
			snprintf(search->refused, sizeof(search->refused), "%s", path);
			search->remote = fd == -EREMOTE;
		}
	} else {
		snprintf(root, sizeof(root), "/proc/%u/root%s", pid, path);
		fd = file__open_regular(pid ? root : path);
	}
	return fd < 0 ? fd : elf__add_debug(elf, fd, crc);
}

static int by_build_id(struct elf *elf, struct search *s, u32 pid)
{
	const char *id = elf__build_id(elf);
	char path[PATH_MAX];

	if (strlen(id) < 4)
		return -ENOENT;
	snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
	return add_file(elf, s, pid, path, NULL);
}

static int by_link(struct elf *elf, struct search *s, u32 pid)
{
	static const char *const places[] = { "%.*s/%s", "%.*s/.debug/%s", DEBUG_DIR "%.*s/%s" };
	const char *object = s->args->path, *slash = strrchr(object, '/');
	char name[256], path[PATH_MAX];
	u32 crc;

	if (!slash || *object != '/' || elf__debuglink(elf, name, sizeof(name), &crc))
		return -ENOENT;
	for (u32 i = 0; i < ARRAY_LEN(places); i++) {
		int n = snprintf(path, sizeof(path), places[i], (int)(slash - object), object, name);

		if (n < (int)sizeof(path) && !add_file(elf, s, pid, path, &crc))
			return 0;
	}
	return -ENOENT;
}

/* Searches in the process's root, then in the host's. */
static int by_file(struct elf *elf, struct search *s)
{
	int err = -ENOENT;

	if (s->args->pid) {
		err = by_build_id(elf, s, s->args->pid);
		if (err)
			err = by_link(elf, s, s->args->pid);
	}
	if (err)
		err = by_build_id(elf, s, 0);
	return err ? by_link(elf, s, 0) : 0;
}

int debug__add(struct elf *elf, const struct debug_search *s, char *why, size_t len)
{
	struct search search = { .args = s };
	int data = elf__add_debugdata(elf), err = by_file(elf, &search);

	*why = '\0';
	if (err && search.remote)
		snprintf(why, len,
			 "its debug file %s is not used: it lies on a network or FUSE file system, whose server may "
			 "never answer; --remote-files uses such files",
			 search.refused);
	else if (err && *search.refused)
		snprintf(
			why, len,
			"its debug file %s is not used: users other than root and the target's user could have written it or put it "
			"there (chown and chmod go-w, also of the folders, allow it)",
			search.refused);
	return err && data ? -ENOENT : 0;
}
