// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shim's file: as the process sees it, or as a memfd that the process itself makes. */
#include "inject/load_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/check.h"
#include "process/mapped.h"
#include "util/file.h"

#define MEMFD_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define MEMFD_EXEC  0x10U /* linux/memfd.h, from 6.3 on */
#define LIBRARY_MAX (16 << 20)
#define PART	    (SCRATCH / 2) /* bytes of the library that are written at once */
#define SEALS	    (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int shim_file__read(struct load *l)
{
	int fd = file__open_regular(l->shim), err = 0;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &l->file))
		err = -errno;
	else if (!l->file.st_size || l->file.st_size > LIBRARY_MAX)
		err = -EFBIG;
	if (!err && !(l->library = malloc((size_t)l->file.st_size)))
		err = -ENOMEM;
	for (off_t at = 0; !err && at < l->file.st_size; at += n) {
		n = pread(fd, l->library + at, (size_t)(l->file.st_size - at), at);
		err = n > 0 ? 0 : n < 0 ? -errno : -EIO;
	}
	close(fd);
	return err;
}

bool shim_file__is_visible(const struct load *l)
{
	const char *remote;
	struct stat theirs;
	bool same;
	int fd = mapped__open_path(l->s->pid, l->shim, l->s->remote_files, &remote);

	same = fd >= 0 && !fstat(fd, &theirs) && l->file.st_dev == theirs.st_dev && l->file.st_ino == theirs.st_ino;
	if (fd >= 0)
		close(fd);
	return same;
}

/*
 * Copies the library into the process's memfd, which the process itself writes and seals. The descriptor number is
 * untrusted: if it names something else, only the process's own rights apply.
 */
static int fill(struct load *l, int memfd)
{
	u64 size = (u64)l->file.st_size, n;
	int err;

	for (u64 at = 0; at < size; at += n) {
		u64 part = size - at < PART ? size - at : PART;

		if (!space__write(l->s, l->scratch, l->library + at, part))
			return -EIO;
		err = load__system_call(l, SYS_write, (u64)memfd, l->scratch, part, &n);
		if (err)
			return err;
		if (!n || n > part)
			return -EIO;
	}
	return load__system_call(l, SYS_fcntl, (u64)memfd, F_ADD_SEALS, SEALS, &n);
}

/* Is it a memfd? All memfds are on one device, and a memfd of sonde's own shows which. */
static bool is_memfd(const struct stat *st)
{
	int fd = memfd_create("sonde", MFD_CLOEXEC);
	struct stat own;
	bool same = fd >= 0 && !fstat(fd, &own) && own.st_dev == st->st_dev && S_ISREG(st->st_mode);

	if (fd >= 0)
		close(fd);
	return same;
}

static bool has_library(const struct load *l, int fd)
{
	char buf[65536];

	for (off_t at = 0; at < l->file.st_size;) {
		ssize_t n = pread(fd, buf, sizeof(buf), at);

		if (n <= 0 || n > l->file.st_size - at || memcmp(buf, l->library + at, (size_t)n))
			return false;
		at += n;
	}
	return true;
}

/*
 * Is this descriptor of the process a memfd that contains the whole library, and is it sealed? Only a memfd is
 * opened, and only for reading; an O_PATH descriptor shows in advance which file it is.
 */
static bool is_library(const struct load *l, int memfd, struct stat *st)
{
	char path[64];
	int at, fd;
	bool is;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/fd/%d", l->t.pid, l->t.tid, memfd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return false;
	if (fstat(at, st) || !is_memfd(st) || st->st_size != l->file.st_size) {
		close(at);
		return false;
	}
	fd = file__reopen_regular(at);
	is = fd >= 0 && fcntl(fd, F_GET_SEALS) == SEALS && has_library(l, fd);
	if (fd >= 0)
		close(fd);
	return is;
}

int shim_file__close_memfd(struct load *l, int memfd)
{
	u64 ignored;

	return load__call(l, l->syscall, SYS_close, memfd, 0, &ignored);
}

int shim_file__make_memfd(struct load *l, struct stat *st)
{
	u64 fd;
	int err;

	if (check__file_limit(l->s->pid) < (u64)l->file.st_size)
		return -EFBIG;
	if (!l->memfd_create || !space__write(l->s, l->scratch, MEMFD_NAME, sizeof(MEMFD_NAME)))
		return -ENOSYS;
	err = load__call(l, l->memfd_create, l->scratch, MEMFD_FLAGS | MEMFD_EXEC, 0, &fd);
	if (!err && (int)fd < 0)
		err = load__call(l, l->memfd_create, l->scratch, MEMFD_FLAGS, 0, &fd);
	if (err)
		return err;
	if ((int)fd < 0)
		return -EMFILE;
	err = fill(l, (int)fd);
	if (!err && !is_library(l, (int)fd, st))
		err = -EBADFD;
	if (err && err != -ESRCH && err != -EFAULT && err != -ETIMEDOUT)
		shim_file__close_memfd(l, (int)fd);
	return err ? err : (int)fd;
}

void shim_file__explain(struct load *l, int err)
{
	char *why = l->r->why;
	size_t len = sizeof(l->r->why);

	if (err == -EFBIG)
		snprintf(
			why, len,
			"it can't see the library's file, and is not allowed to write one of %lld bytes: `prlimit --pid %u "
			"--fsize=unlimited` allows it",
			(long long)l->file.st_size, l->s->pid);
	else if (err == -EBADFD)
		snprintf(
			why, len,
			"it can't see the library's file, and the memfd that it should have made does not contain the library");
	else
		snprintf(why, len, "it can't see the library's file, and a memfd for it can't be made: %s",
			 strerror(-err));
}
