// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/opener.h"

#include "attach/attacher_wire.h"
#include "attach/ownership.h"
#include "attach/source_file.h"
#include "attach/trusted.h"
#include "process/filesystem.h"
#include "process/procs.h"
#include "sandbox/privileges.h"
#include "sandbox/syscalls.h"
#include "sandbox/usage.h"
#include "util/account.h"
#include "util/walk.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

struct opener {
	int sock;
	bool remote_files;
	int notes; /* pipe to the attacher; -1: it does not use notes */
	struct inode_note noted; /* the last note that was sent */
	struct attacher_request request;
	size_t len; /* of the request's data */
	int file; /* descriptor passed with the request; -1: none */
	struct attacher_reply reply;
	size_t reply_len;
	int reply_fd; /* -1: none */
};

/* Returns whether the file is on a file system whose server may never answer. Sends no request to that server. */
static bool is_remote(const struct opener *s, int path_fd)
{
	const struct attacher_request *r = &s->request;

	return !s->remote_files &&
	       filesystem__remote_file(path_fd, r->pid > 0 ? r->pid : 0, r->op == OP_OPEN ? r->dev : 0);
}

/*
 * Opens for reading the file that a descriptor names, if it is an ELF file: no devices or other files are handed out.
 */
static int open_elf(const struct opener *s, int path_fd)
{
	char path[32], magic[SELFMAG];
	struct stat st;
	int fd;

	if (is_remote(s, path_fd))
		return -EREMOTE;
	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (pread(fd, magic, SELFMAG, 0) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG))
		return fd;
	close(fd);
	return -ENOEXEC;
}

/* Is it the requested file? This can be checked only where stat() returns the numbers of the backing inode. */
static bool is_inode(int path_fd, u64 dev, u64 ino)
{
	struct stat st;

	return !fstat(path_fd, &st) && st.st_ino == ino && (((u64)major(st.st_dev) << 20) | minor(st.st_dev)) == dev;
}

static bool on_overlay(int path_fd)
{
	struct statfs fs;

	return fstatfs(path_fd, &fs) || fs.f_type == FILESYSTEM_OVERLAY;
}

/* Is the data of the request a path with its NUL, or (if it may be missing) empty? */
static bool is_path(const struct opener *s, bool optional)
{
	u32 n = s->request.n;

	return n == s->len && (n ? !s->request.data[n - 1] : optional);
}

static int reply_elf(struct opener *s, int path_fd)
{
	int err;

	if (path_fd < 0)
		return -errno;
	err = s->reply_fd = open_elf(s, path_fd);
	close(path_fd);
	return err < 0 ? err : 0;
}

/* false: there is no room in the pipe now. */
static bool send_note(struct opener *s, int path_fd)
{
	struct inode_note note;

	if (is_remote(s, path_fd) || !ownership__note(path_fd, s->request.pid, &note) ||
	    (note.dev == s->noted.dev && note.ino == s->noted.ino))
		return true;
	if (write(s->notes, &note, sizeof(note)) < 0)
		return false;
	s->noted = note;
	return true;
}

static int visit(int fd, const char *name, void *arg)
{
	return is_remote(arg, fd) ? -EREMOTE : 0;
}

/* The path is that of another process, so each folder on it may be on a file system that does not answer. */
static int open_path(struct opener *s, const char *path)
{
	int root = open("/", O_PATH | O_CLOEXEC), fd = root < 0 ? -errno : walk__below(root, path, visit, s);

	if (root >= 0)
		close(root);
	return fd;
}

static int serve_open(struct opener *s)
{
	const struct attacher_request *r = &s->request;
	char path[96];
	int path_fd;

	if (r->pid <= 0 || !is_path(s, true))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", r->pid, r->start, r->end);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	/* the attacher has not read earlier notes: the file is tried again at the next mapping */
	if (path_fd >= 0 && s->notes >= 0 && !send_note(s, path_fd)) {
		close(path_fd);
		return -EAGAIN;
	}
	if (path_fd < 0 && r->n) {
		/* the process has ended: the file may still be at its path; on overlayfs it would be probed twice */
		path_fd = open_path(s, r->data);
		errno = path_fd < 0 ? -path_fd : 0;
		if (path_fd >= 0 && (on_overlay(path_fd) || !is_inode(path_fd, r->dev, r->ino))) {
			close(path_fd);
			return -ESTALE;
		}
	}
	return reply_elf(s, path_fd);
}

/*
 * Opens below the root of a process, which no link can leave; who may have written the file depends on the object's
 * owner.
 */
static int serve_open_debug(struct opener *s)
{
	const struct attacher_request *r = &s->request;
	char path[32] = "/";
	struct stat object;
	int root, path_fd;

	if (r->pid < 0 || !is_path(s, false) || s->file < 0 || fstat(s->file, &object))
		return -EINVAL;
	if (r->pid)
		snprintf(path, sizeof(path), "/proc/%d/root", r->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	path_fd = trusted__find(root, r->data, object.st_uid, visit, s);
	close(root);
	errno = path_fd < 0 ? -path_fd : 0;
	return reply_elf(s, path_fd);
}

/* Returns the number of a process in its own pid namespace; 0: it has ended. */
static u32 own_pid(u32 pid)
{
	char path[32], line[256];
	const char *last;
	u32 own = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && !own && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NStgid:", 7) && (last = strrchr(line, '\t')))
			own = (u32)strtoul(last, NULL, 10);
	if (f)
		fclose(f);
	return own;
}

/* A link, or a hard link to a file of another folder, may be any user's choice in /tmp. */
static int check_perf_map(const struct opener *s, int path_fd)
{
	struct stat st;

	if (is_remote(s, path_fd))
		return -EREMOTE;
	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    (st.st_uid && account__owner(st.st_uid) != (uid_t)s->request.account))
		return -EPERM;
	return st.st_size > PERF_MAP_MAX ? -EFBIG : 0;
}

static int open_perf_map(struct opener *s, int folder, u32 pid)
{
	char name[32], path[32];
	int path_fd, fd;

	snprintf(name, sizeof(name), "perf-%u.map", pid);
	path_fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	fd = check_perf_map(s, path_fd);
	if (!fd) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(path_fd);
	return fd;
}

static int serve_open_perf_map(struct opener *s)
{
	u32 pid = (u32)s->request.pid, own = s->request.pid > 0 ? own_pid(pid) : 0;
	char path[32] = "/";
	int root, folder;

	if (s->request.pid <= 0)
		return -EINVAL;
	if (own)
		snprintf(path, sizeof(path), "/proc/%u/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	folder = walk__below(root, "/tmp", visit, s);
	close(root);
	if (folder < 0)
		return folder;
	s->reply_fd = open_perf_map(s, folder, own ? own : pid);
	close(folder);
	return s->reply_fd < 0 ? s->reply_fd : 0;
}

/* Sends one part of an answer. */
static int send_bytes(struct opener *s, size_t n)
{
	s->reply.result = (s32)n;
	return message__send(s->sock, &s->reply, REPLY_HEAD + n, -1) ? -EPIPE : 0;
}

/* Replies with the bytes of fd, at most max, in parts; returns the result of the last part. */
static int reply_bytes(struct opener *s, int fd, size_t max)
{
	size_t sent = 0;
	ssize_t n;

	for (;;) {
		n = read(fd, s->reply.bytes, sizeof(s->reply.bytes));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		sent += (size_t)n;
		if (sent > max)
			return -EFBIG;
		if (send_bytes(s, n))
			return -EPIPE;
	}
}

static int serve_maps(struct opener *s)
{
	char path[32];
	int fd, err;

	if (s->request.pid <= 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/maps", s->request.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = reply_bytes(s, fd, SIZE_MAX);
	close(fd);
	return err;
}

static int serve_read(struct opener *s)
{
	return s->file < 0 ? -EINVAL : reply_bytes(s, s->file, SIZE_MAX);
}

static int serve_source(struct opener *s)
{
	pid_t pid = s->request.pid;
	int fd, err;

	if (pid <= 0 || !is_path(s, false))
		return -EINVAL;
	fd = source_file__open(pid, s->request.data, visit, s);
	if (fd < 0)
		return fd;
	err = source_file__check(fd, pid, s->request.built);
	if (!err)
		err = reply_bytes(s, fd, SOURCE_FILE_MAX);
	/* it may be changed while it is read */
	if (!err)
		err = source_file__check(fd, pid, s->request.built);
	close(fd);
	return err;
}

static size_t read_text(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

/*
 * Each argument ends with a NUL. One with a blank is put into quotes, so that its end is known. If there is only one,
 * it may be a title that the process has given itself.
 */
static void read_command(int dir, char *command, size_t size, bool *has_title)
{
	char bytes[sizeof(((struct process_image *)NULL)->command)];
	size_t n = read_text(dir, "cmdline", bytes, sizeof(bytes)), at = 0;

	while (n && !bytes[n - 1])
		n--;
	*has_title = n && !memchr(bytes, '\0', n) && memchr(bytes, ' ', n);
	for (const char *arg = bytes; arg < bytes + n && at + 1 < size; arg += strlen(arg) + 1) {
		bool is_title = !at && arg + strlen(arg) + 1 >= bytes + n;
		const char *quote = !is_title && strchr(arg, ' ') && !strchr(arg, '\'') ? "'" : "";

		at += (size_t)snprintf(command + at, size - at, "%s%s%s%s", at ? " " : "", quote, arg, quote);
	}
	if (!n)
		*command = '\0';
}

/* An environment may be longer, but is then read in part. */
#define ENVIRONMENT_MAX (128 * 1024)

static struct process_rank read_rank(int dir)
{
	int fd = openat(dir, "environ", O_RDONLY | O_CLOEXEC);
	struct rank_parser parser = { 0 };
	char buf[4096];
	ssize_t n;

	for (u32 sum = 0; fd >= 0 && sum < ENVIRONMENT_MAX && (n = read(fd, buf, sizeof(buf))) > 0; sum += (u32)n)
		rank_parser__add(&parser, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	return rank_parser__result(&parser);
}

/* The open directory protects against a reused pid. An empty text: a kernel thread, or the process has ended. */
static int serve_image(struct opener *s)
{
	struct process_image *image = &s->reply.image;
	char path[32];
	ssize_t n;
	int dir;

	snprintf(path, sizeof(path), "/proc/%d", s->request.pid);
	dir = s->request.pid > 0 ? open(path, O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return -ESRCH;
	n = readlinkat(dir, "exe", image->exe, sizeof(image->exe) - 1);
	image->exe[n < 0 ? 0 : n] = '\0';
	read_command(dir, image->command, sizeof(image->command), &image->has_title);
	read_text(dir, "cgroup", image->cgroup, sizeof(image->cgroup));
	image->rank = read_rank(dir);
	close(dir);
	s->reply_len = REPLY_HEAD + sizeof(s->reply.image);
	return 0;
}

static int serve_user(struct opener *s)
{
	uid_t uid;

	if (s->request.pid <= 0 || !account__of(s->request.pid, &uid))
		return -ESRCH;
	s->reply.user = uid;
	s->reply_len = REPLY_HEAD + sizeof(s->reply.user);
	return 0;
}

static int serve_processes(struct opener *s)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	size_t n = 0;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (e = readdir(dir))) {
		if (*e->d_name < '1' || *e->d_name > '9')
			continue;
		n += snprintf(s->reply.bytes + n, 16, "%.10s\n", e->d_name);
		if (n > sizeof(s->reply.bytes) - 16) {
			err = send_bytes(s, n);
			n = 0;
		}
	}
	closedir(dir);
	return err || !n ? err : send_bytes(s, n);
}

static int serve_request(struct opener *s)
{
	if (s->request.pid > 0)
		s->request.pid = (s32)procs__shown_as((u32)s->request.pid);
	switch (s->request.op) {
	case OP_OPEN:
		return serve_open(s);
	case OP_OPEN_DEBUG:
		return serve_open_debug(s);
	case OP_OPEN_PERF_MAP:
		return serve_open_perf_map(s);
	case OP_SOURCE:
		return serve_source(s);
	case OP_MAPS:
		return serve_maps(s);
	case OP_READ:
		return serve_read(s);
	case OP_IMAGE:
		return serve_image(s);
	case OP_USER:
		return serve_user(s);
	case OP_PROCESSES:
		return serve_processes(s);
	}
	return -EINVAL;
}

/* false: the worker has ended, or has another opener. */
static bool serve_one(struct opener *s)
{
	ssize_t n = message__receive(s->sock, &s->request, sizeof(s->request), &s->file);
	int result;
	bool ok;

	if (n <= 0)
		return false;
	s->reply_fd = -1;
	s->reply_len = REPLY_HEAD;
	s->len = n - REQUEST_HEAD;
	memset(&s->reply, 0, REPLY_HEAD + sizeof(s->reply.image));
	s->reply.seq = s->request.seq;
	s->reply.refused = syscalls__refused();
	result = n < (ssize_t)REQUEST_HEAD ? -EINVAL : serve_request(s);
	s->reply.result = result;
	s->reply.refused = syscalls__refused();
	ok = !message__send(s->sock, &s->reply, s->reply_len, s->reply_fd);
	if (s->reply_fd >= 0)
		close(s->reply_fd);
	if (s->file >= 0)
		close(s->file);
	return ok;
}

/* Closes everything else: if this process gets stuck, a link that it also had open would stay attached. */
static void close_all_but(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a, next = STDERR_FILENO + 1;

	if (low > next)
		close_range(next, low - 1, 0);
	if (low >= next)
		next = low + 1;
	if (high > next)
		close_range(next, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

void opener__serve(int sock, int notes, bool remote_files)
{
	struct opener *s = calloc(1, sizeof(*s));

	prctl(PR_SET_NAME, "sonde-opener");
	close_all_but(notes, sock);
	usage__forget();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!s || privileges__opener())
		_exit(1);
	s->sock = sock;
	s->notes = notes;
	s->remote_files = remote_files;
	while (serve_one(s))
		;
	_exit(0);
}

void openers__ended(struct openers *o, pid_t pid)
{
	int left = 0;

	if (o->current == pid)
		o->current = 0;
	for (int i = 0; i < o->n_stuck; i++)
		if (o->stuck[i] != pid)
			o->stuck[left++] = o->stuck[i];
	o->n_stuck = left;
}

int openers__start(struct openers *o)
{
	int sock[2], err;

	if (o->n_stuck == OPENERS_MAX)
		return -EAGAIN;
	if (o->current) {
		kill(o->current, SIGKILL);
		o->stuck[o->n_stuck++] = o->current;
		o->current = 0;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	o->current = usage__fork();
	if (!o->current)
		opener__serve(sock[1], o->notes, o->remote_files);
	err = o->current < 0 ? -errno : 0;
	close(sock[1]);
	if (!err)
		return sock[0];
	close(sock[0]);
	o->current = 0;
	return err;
}
