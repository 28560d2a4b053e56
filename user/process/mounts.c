// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/mounts.h"

#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLES_MAX 4 /* tables of namespaces that are cached; the least recently used one is replaced */
#define MOUNTS_MAX (1u << 17) /* a namespace may have 100,000 mounts unless sysctl fs.mount-max is raised */

struct table {
	/* inode of the namespace, not reused while the file is open; 0: free; ~0: read, but not to be used again */
	u64 ns;
	int fd; /* its mountinfo */
	u64 used; /* number of the request that last used it */
	struct mount *mounts; /* sorted by device */
	u32 n;
};

static struct table tables[TABLES_MAX];
static u64 requests;
static u32 reads;

static bool add(struct table *t, const struct mount *m)
{
	return t->n < MOUNTS_MAX && array__push(t->mounts, t->n, *m);
}

/* "ID PARENT MAJ:MIN ROOT MOUNT-POINT OPTIONS [FIELDS..] - TYPE SOURCE SUPER-OPTIONS": blanks in fields are escaped. */
bool mount__parse(const char *line, struct mount *m)
{
	const char *dash = strstr(line, " - ");
	u32 major, minor;

	unsigned long long id;

	if (!dash || sscanf(line, "%llu %*u %u:%u", &id, &major, &minor) != 3)
		return false;
	m->id = id;
	m->dev = (u64)major << 20 | minor;
	snprintf(m->type, sizeof(m->type), "%.*s", (int)strcspn(dash + 3, " \n"), dash + 3);
	return true;
}

COMPARE_BY(by_device, struct mount, ASCENDING(dev))

static bool read_table(struct table *t)
{
	int fd = lseek(t->fd, 0, SEEK_SET) ? -1 : dup(t->fd);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	char *line = NULL;
	size_t size = 0;
	bool whole = f != NULL;
	struct mount m;

	reads++;
	t->n = 0;
	while (whole && getline(&line, &size, f) > 0)
		whole = !mount__parse(line, &m) || add(t, &m);
	free(line);
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (t->n)
		qsort(t->mounts, t->n, sizeof(*t->mounts), by_device);
	return whole;
}

static void forget(struct table *t)
{
	if (t->ns)
		close(t->fd);
	free(t->mounts);
	*t = (struct table){};
}

void mounts__forget(void)
{
	for (u32 i = 0; i < TABLES_MAX; i++)
		forget(&tables[i]);
}

u32 mounts__reads(void)
{
	return reads;
}

static bool has_changed(const struct table *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLPRI };

	/* each change since the open is reported once, even if it comes while the table is read */
	return poll(&p, 1, 0) != 0;
}

/* Opens and reads a table. ns 0: its namespace is unknown, so the table is not cached. */
static struct table *open_table(struct table *t, const char *path, u64 ns)
{
	forget(t);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		return NULL;
	t->ns = ns;
	if (read_table(t))
		return t;
	if (!ns)
		close(t->fd);
	forget(t);
	return NULL;
}

static struct table *table_of(u64 ns, const char *path)
{
	struct table *least = &tables[0];

	for (u32 i = 0; i < TABLES_MAX; i++) {
		struct table *t = &tables[i];

		if (t->ns == ns) {
			if (!has_changed(t) || read_table(t))
				return t;
			forget(t);
			return NULL;
		}
		if (t->used < least->used)
			least = t;
	}
	return open_table(least, path, ns);
}

static const struct mount *find_device(const struct table *t, u64 dev)
{
	u32 i = SEARCH(t->n, k, t->mounts[k].dev < dev);

	return i < t->n && t->mounts[i].dev == dev ? &t->mounts[i] : NULL;
}

static const struct mount *find_id(const struct table *t, u64 id)
{
	for (u32 i = 0; i < t->n; i++)
		if (t->mounts[i].id == id)
			return &t->mounts[i];
	return NULL;
}

/* Finds a mount by its device or id. */
static bool find(u32 pid, const struct mount *(*find_in)(const struct table *t, u64 key), u64 key, struct mount *out)
{
	char folder[24] = "/proc/self", path[48];
	struct table once = {}, *t;
	const struct mount *found;
	char ns[48];
	struct stat st, again;

	if (pid)
		snprintf(folder, sizeof(folder), "/proc/%u", pid);
	snprintf(ns, sizeof(ns), "%s/ns/mnt", folder);
	if (stat(ns, &st))
		st.st_ino = 0;
	snprintf(path, sizeof(path), "%s/mountinfo", folder);
	t = st.st_ino ? table_of(st.st_ino, path) : open_table(&once, path, 0);
	if (!t)
		return false;
	t->used = ++requests;
	/* the process may have entered another namespace before its table was read */
	if (st.st_ino && (stat(ns, &again) || again.st_ino != st.st_ino))
		t->ns = ~0ULL;
	found = find_in(t, key);
	if (found)
		*out = *found;
	if (t == &once) {
		close(once.fd);
		forget(&once);
	}
	return found != NULL;
}

bool mounts__by_id(u32 pid, u64 id, struct mount *out)
{
	return find(pid, find_id, id, out);
}

bool mounts__type(u32 pid, u32 major, u32 minor, char *type, size_t len)
{
	struct mount m;
	bool found = find(pid, find_device, (u64)major << 20 | minor, &m);

	if (found)
		snprintf(type, len, "%s", m.type);
	return found;
}
