// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "inject/space.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process/mapped.h"
#include "process/procs.h"
#include "sandbox/message.h"
#include "util/array.h"

static void add(const struct mapping *m, void *arg)
{
	struct space *s = arg;
	char *path = strdup(m->path);

	if (!array__room(s->codes, s->n)) {
		free(path);
		return;
	}
	if (path)
		s->codes[s->n++] = (struct code){ .start = m->start,
						  .end = m->end,
						  .offset = m->offset,
						  .dev = m->dev,
						  .ino = m->ino,
						  .path = path,
						  .fd = -1 };
}

static size_t read_auxv(u32 pid, u8 *to)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, to, SPACE_AUXV);
	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

void space__open(struct space *s, u32 pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	s->memory = open(path, O_RDWR | O_CLOEXEC);
}

/*
 * The pids of the process and of a thread may have been reused since they were read: a target chooses when it ends.
 * But the pid is not reused while the process of the pidfd lives, nor is the tid of a stopped thread.
 */
static bool is_thread_of(const struct space *s, u32 tid)
{
	struct pollfd ended = { .fd = s->pidfd, .events = POLLIN };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u", s->pid, tid);
	return s->pidfd >= 0 && !access(path, F_OK) && !poll(&ended, 1, 0);
}

bool space__is_current(const struct space *s, u32 tid)
{
	u8 now[SPACE_AUXV];

	return is_thread_of(s, tid) && read_auxv(s->pid, now) == s->auxv_size && !memcmp(now, s->auxv, s->auxv_size);
}

int space__read(struct space *s, u32 pid)
{
	s->pid = pid;
	s->n = 0;
	/* this is read first, so that a later exec is detected */
	s->auxv_size = read_auxv(pid, s->auxv);
	return procs__each_mapping_of(pid, add, s);
}

static void free_parsers(struct space *s)
{
	for (u32 i = 0; s->parsers && i < s->n; i += SPACE_FILES)
		foreign__free(s->parsers[i / SPACE_FILES]);
	free(s->parsers);
}

void space__free(struct space *s)
{
	free_parsers(s);
	for (u32 i = 0; i < s->n; i++) {
		if (s->codes[i].fd >= 0)
			close(s->codes[i].fd);
		free(s->codes[i].path);
	}
	free(s->codes);
	if (s->pidfd >= 0)
		close(s->pidfd);
	if (s->memory >= 0)
		close(s->memory);
	*s = SPACE_NONE;
}

struct code *space__at(struct space *s, u64 addr)
{
	for (u32 i = 0; i < s->n; i++)
		if (addr >= s->codes[i].start && addr < s->codes[i].end)
			return &s->codes[i];
	return NULL;
}

const char *code__name(const struct code *c)
{
	const char *slash = strrchr(c->path, '/'), *name = slash ? slash + 1 : c->path;

	return strncmp(name, "memfd:", 6) ? name : name + 6;
}

struct code *space__library(struct space *s, const char *name)
{
	for (u32 i = 0; i < s->n; i++)
		if (!strncmp(code__name(&s->codes[i]), name, strlen(name)))
			return &s->codes[i];
	return NULL;
}

/* Compares with the mapping's own file, because on overlayfs the numbers in /proc/PID/maps differ. */
bool space__maps_file(const struct space *s, const char *name, u64 dev, u64 ino)
{
	struct stat st;
	char path[96];

	for (u32 i = 0; i < s->n; i++) {
		const struct code *c = &s->codes[i];

		if (strncmp(code__name(c), name, strlen(name)))
			continue;
		snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", s->pid, c->start, c->end);
		if (!stat(path, &st) ? st.st_dev == dev && st.st_ino == ino : errno == EPERM && c->ino == ino)
			return true;
	}
	return false;
}

/* Opens the mapped file itself, which needs a capability; without it, opens its path in the process's root. */
static int open_code(struct space *s, const struct code *c)
{
	const struct mapping m = {
		.pid = s->pid, .start = c->start, .end = c->end, .dev = c->dev, .ino = c->ino, .path = c->path
	};
	const char *remote = NULL;
	int fd = mapped__open(&m, MAPPED_SAME, s->remote_files, &remote);

	if (remote)
		s->remote = remote;
	return fd;
}

static bool find_bias(struct code *c)
{
	for (u32 i = 0; i < c->file.n_texts; i++) {
		const struct foreign_text *t = &c->file.texts[i];

		if (t->offset + t->size <= c->offset || t->offset >= c->offset + (c->end - c->start))
			continue;
		c->bias = c->start - c->offset - (t->addr - t->offset);
		return true;
	}
	return false;
}

void space__limit(struct space *s, u32 ms)
{
	s->until = message__now() + ms;
}

bool space__is_late(const struct space *s)
{
	return s->until && message__now() >= s->until;
}

_Static_assert(SPACE_FILES <= FOREIGN_FILES,
	       "a child keeps all its files open, so that none has to be opened again while a thread is stopped");

static struct foreign *parser_of(struct space *s, const struct code *c)
{
	struct foreign **parser;

	if (!s->parsers)
		s->parsers = calloc(s->n / SPACE_FILES + 1, sizeof(struct foreign *));
	if (!s->parsers)
		return NULL;
	parser = &s->parsers[(c - s->codes) / SPACE_FILES];
	if (!*parser)
		*parser = foreign__new(&s->until);
	return *parser;
}

bool code__open(struct space *s, struct code *c)
{
	struct foreign *parser = c->opened ? NULL : parser_of(s, c);

	if (c->opened)
		return c->readable;
	if (c->fd < 0)
		c->fd = open_code(s, c);
	if (!parser)
		c->error = -ENOMEM;
	else
		c->error = c->fd < 0 ? c->fd : foreign_file__open(&c->file, parser, c->fd);
	/* according to the file there is no code at that offset */
	if (!c->error && !find_bias(c))
		c->error = -ENOEXEC;
	c->opened = c->error != -ETIMEDOUT || (!space__is_late(s) && c->timeouts++);
	c->readable = !c->error;
	return c->readable;
}

u64 code__function(struct space *s, struct code *c, const char *name)
{
	struct elf_symbol symbol;
	u64 at;

	if (!c || !code__open(s, c) || foreign_file__find_symbols(&c->file, &name, 1, &symbol) || !symbol.name ||
	    !symbol.function)
		return 0;
	at = symbol.addr + c->bias;
	/* the file is untrusted: the function must be in a code mapping of that file */
	for (u32 i = 0; i < s->n; i++)
		if (s->codes[i].ino == c->ino && at >= s->codes[i].start && at < s->codes[i].end)
			return at;
	return 0;
}

bool space__copy(const struct space *s, u64 from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)from, size };

	if (s->memory >= 0)
		return pread(s->memory, to, size, (off_t)from) == (ssize_t)size;
	return process_vm_readv(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool space__write(const struct space *s, u64 to, const void *from, size_t size)
{
	return s->memory >= 0 && pwrite(s->memory, from, size, (off_t)to) == (ssize_t)size;
}
