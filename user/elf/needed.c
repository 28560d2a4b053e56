// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "elf/needed.h"

#include "elf/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX   512
#define SCRIPTS_MAX 4

struct file {
	char *path;
	dev_t dev;
	ino_t ino;
};

struct needed {
	struct file files[FILES_MAX]; /* found so far, in the order of a breadth-first search */
	u32 n, next;
	char *first_rpath; /* the program's RPATH, which applies to its libraries, too */
	struct foreign *parser;
	struct foreign_needed list; /* of the file that is read now */
	const u8 *cache; /* /etc/ld.so.cache */
	size_t cache_size;
};

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

int needed__program(const char *name, char *path, size_t size)
{
	const char *dirs = secure_getenv("PATH");
	bool found = false;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		if (!is_program(path))
			return access(path, F_OK) ? -errno : -EACCES;
		return access(path, X_OK) ? -errno : 0;
	}
	if (!*name)
		return -ENOENT;
	for (const char *p = dirs ? dirs : "/bin:/usr/bin"; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
		int n = (int)strcspn(p, ":");

		snprintf(path, size, "%.*s%s%s", n, p, n ? "/" : "./", name);
		if (!is_program(path))
			continue;
		if (!access(path, X_OK))
			return 0;
		found = true;
	}
	return found ? -EACCES : -ENOENT;
}

static bool add(struct needed *n, const char *path)
{
	struct stat st;

	if (n->n == FILES_MAX || stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	for (u32 i = 0; i < n->n; i++)
		if (n->files[i].dev == st.st_dev && n->files[i].ino == st.st_ino)
			return true;
	n->files[n->n] = (struct file){ .path = strdup(path), .dev = st.st_dev, .ino = st.st_ino };
	n->n += n->files[n->n].path != NULL;
	return true;
}

/* Searches the directories of a list, which may contain $ORIGIN; origin: path of the file. */
static bool add_from(struct needed *n, const char *dirs, const char *name, const char *origin)
{
	const char *slash = strrchr(origin, '/');
	int origin_len = slash ? (int)(slash - origin) : 1;

	for (const char *p = dirs; p && *p; p = strpbrk(p, ":;") ? strpbrk(p, ":;") + 1 : NULL) {
		int len = (int)strcspn(p, ":;"), skip = 0;
		char path[PATH_MAX];

		if (!strncmp(p, "$ORIGIN", 7))
			skip = 7;
		else if (!strncmp(p, "${ORIGIN}", 9))
			skip = 9;
		snprintf(path, sizeof(path), "%.*s%.*s/%s", skip ? origin_len : 0, slash ? origin : ".", len - skip,
			 p + skip, name);
		if (add(n, path))
			return true;
	}
	return false;
}

/*
 * Format of glibc's elf/cache.c, "glibc-ld.so.cache1.1": a header of 48 bytes, entries of 24, offsets of texts from
 * the start.
 */
static bool add_cached(struct needed *n, const char *name)
{
	u32 count, at[3];

	if (n->cache_size < 48 || memcmp(n->cache, "glibc-ld.so.cache1.1", 20))
		return false;
	memcpy(&count, n->cache + 20, sizeof(count));
	for (u32 i = 0; i < count && 48 + 24 * ((size_t)i + 1) <= n->cache_size; i++) {
		const char *text = (const char *)n->cache;

		memcpy(at, n->cache + 48 + 24 * (size_t)i, sizeof(at)); /* flags, name, path */
		/* entries of x86-64 and libc 6 only */
		if (at[0] != 0x0303 || at[1] >= n->cache_size || at[2] >= n->cache_size)
			continue;
		if (strnlen(text + at[1], n->cache_size - at[1]) == n->cache_size - at[1] ||
		    strnlen(text + at[2], n->cache_size - at[2]) == n->cache_size - at[2])
			continue;
		if (!strcmp(text + at[1], name) && add(n, text + at[2]))
			return true;
	}
	return false;
}

static void find(struct needed *n, const char *name, const char *rpath, const char *runpath, const char *origin)
{
	static const char *const defaults =
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";

	if (strchr(name, '/')) {
		add(n, name);
		return;
	}
	if (!runpath && (add_from(n, rpath, name, origin) || add_from(n, n->first_rpath, name, n->files[0].path)))
		return;
	if (add_from(n, secure_getenv("LD_LIBRARY_PATH"), name, origin) || add_from(n, runpath, name, origin) ||
	    add_cached(n, name))
		return;
	add_from(n, defaults, name, origin);
}

static void read_libraries(struct needed *n, struct foreign_file *file, const char *path)
{
	struct foreign_needed *list = &n->list;
	const char *name;

	if (foreign_file__needed(file, list))
		return;
	name = list->names;
	for (u32 i = 0; i < list->n; i++, name += strlen(name) + 1)
		find(n, name, list->rpath, list->runpath, path);
	if (!n->first_rpath && !list->runpath && list->rpath && path == n->files[0].path)
		n->first_rpath = strdup(list->rpath);
}

/* "#! /usr/bin/env -S python3 -u": adds the interpreter, and the program that env would run. */
static void read_script(struct needed *n, char *line)
{
	char path[PATH_MAX], *save, *word = strtok_r(line, " \t", &save);

	if (!word || !add(n, word))
		return;
	if (strcmp(basename(word), "env"))
		return;
	while ((word = strtok_r(NULL, " \t", &save)))
		if (*word != '-' && !strchr(word, '='))
			break;
	if (word && !needed__program(word, path, sizeof(path)))
		add(n, path);
}

static void read_file(struct needed *n, const char *path, int fd, u32 *scripts)
{
	char head[256];
	struct foreign_file file;
	ssize_t len = pread(fd, head, sizeof(head) - 1, 0);

	if (len > 2 && head[0] == '#' && head[1] == '!') {
		head[len] = '\0';
		head[strcspn(head, "\n")] = '\0';
		if ((*scripts)++ < SCRIPTS_MAX)
			read_script(n, head + 2);
		return;
	}
	if (!foreign_file__open(&file, n->parser, fd))
		read_libraries(n, &file, path);
}

static void map_cache(struct needed *n)
{
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size < (64 << 20)) {
		at = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at != MAP_FAILED) {
			n->cache = at;
			n->cache_size = st.st_size;
		}
	}
	close(fd);
}

void needed__each(const char *program, void (*fn)(int fd, void *arg), void *arg)
{
	struct needed *n = calloc(1, sizeof(*n));
	const char *preload = secure_getenv("LD_PRELOAD");
	u32 scripts = 0;

	if (n)
		n->parser = foreign__new(NULL);
	if (!n || !n->parser) {
		free(n);
		return;
	}
	map_cache(n);
	add(n, program);
	for (const char *p = preload; p && *p; p += strspn(p, ": ")) {
		char name[PATH_MAX];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, ": "), p);
		p += strcspn(p, ": ");
		find(n, name, NULL, "", program);
	}
	for (; n->next < n->n; n->next++) {
		const char *path = n->files[n->next].path;
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			continue;
		fn(fd, arg);
		read_file(n, path, fd, &scripts);
		close(fd);
	}
	foreign__free(n->parser);
	for (u32 i = 0; i < n->n; i++)
		free(n->files[i].path);
	free(n->first_rpath);
	if (n->cache)
		munmap((void *)n->cache, n->cache_size);
	free(n);
}
