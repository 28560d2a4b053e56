// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions as elfutils' debuginfod.h declares them. They are in libdebuginfod.so.1. */
#include "elf/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct client;

static struct {
	void *handle; /* never closed */
	struct client *(*begin)(void);
	void (*end)(struct client *c);
	/* build_id_len 0: build_id is text. path, if not NULL, gets a malloc'ed name. */
	int (*find)(struct client *c, const unsigned char *build_id, int build_id_len, char **path);
	void (*set_progress)(struct client *c, int (*fn)(struct client *c, long a, long b));
} lib;

/* Read by the progress callback, which gets no argument. There is one request at a time. */
static time_t deadline;

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

bool debuginfod__available(void)
{
	if (lib.handle)
		return lib.find;
	lib.handle = dlopen("libdebuginfod.so.1", RTLD_NOW);
	if (!lib.handle)
		return false;
	lib.begin = dlsym(lib.handle, "debuginfod_begin");
	lib.end = dlsym(lib.handle, "debuginfod_end");
	lib.set_progress = dlsym(lib.handle, "debuginfod_set_progressfn");
	if (lib.begin && lib.end && lib.set_progress)
		lib.find = dlsym(lib.handle, "debuginfod_find_debuginfo");
	return lib.find;
}

static int on_progress(struct client *c, long a, long b)
{
	return seconds() >= deadline;
}

static int ask(const char *build_id)
{
	struct client *c = lib.begin();
	int result;

	if (!c)
		return -ENOMEM;
	lib.set_progress(c, on_progress);
	result = lib.find(c, (const unsigned char *)build_id, 0, NULL);
	lib.end(c);
	return result < 0 && seconds() >= deadline ? -ETIMEDOUT : result;
}

/*
 * The client caches fetched files in a folder of its user. This process has left that user, so it gets a folder of
 * its own. "": none could be made.
 */
static void make_cache(char *dir, size_t len)
{
	const char *set = secure_getenv("DEBUGINFOD_CACHE_PATH"), *home = secure_getenv("HOME");

	*dir = '\0';
	if (set ? !access(set, W_OK) : home && !access(home, W_OK))
		return;
	snprintf(dir, len, "/tmp/sonde-debuginfod-XXXXXX");
	if (mkdtemp(dir))
		setenv("DEBUGINFOD_CACHE_PATH", dir, 1);
	else
		*dir = '\0';
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* Files that are open stay readable. */
static void remove_cache(const char *dir)
{
	if (*dir)
		nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int debuginfod__fetch(const char *build_id)
{
	char cache[64];
	int result;

	if (!debuginfod__available())
		return -ENOSYS;
	deadline = seconds() + DEBUGINFOD_LIMIT_S;
	make_cache(cache, sizeof(cache));
	result = ask(build_id);
	remove_cache(cache);
	return result;
}
