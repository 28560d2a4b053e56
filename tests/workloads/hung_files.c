// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * hung_files DIR FILE NAME [locks|overlay|layer]: mounts a FUSE file system at DIR whose only file, NAME, has the
 * contents of FILE. A child maps it for execution, and with `locks` waits for it while it holds its mmap lock. With
 * `overlay` it maps the file through an overlayfs above the FUSE file system; with `layer` such an overlayfs is its
 * root, and the file is in a layer of its own, so that only a search for other files asks the server. A line on stdin
 * makes the server stop answering; at the end of stdin the server ends, which aborts pending requests. Prints
 * "mapped PID", and "hangs". FUSE_DEVICE in the environment is used instead of /dev/fuse, and FUSE_OPTION instead of
 * the mount's option allow_other.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER	(1 << 18)
#define FILE_ID 2

static const char *name;
static bool locks, overlay, layer;
static char served[4096]; /* where the FUSE file system is */
static char *contents;
static size_t size;
static int device;

static void fill_attr(struct fuse_attr *a, unsigned long long node)
{
	*a = (struct fuse_attr){
		.ino = node,
		.size = node == FILE_ID ? size : 0,
		.blksize = 4096,
		.nlink = 1,
		.mode = node == FILE_ID ? S_IFREG | 0755 : S_IFDIR | 0755,
	};
}

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	static char out[BUFFER];
	struct fuse_out_header h = { .len = sizeof(h) + len, .error = error, .unique = in->unique };

	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), data, len);
	/* an interrupted request has been removed */
	if (write(device, out, h.len) < 0 && errno != ENOENT)
		exit(1);
}

static void answer_read(const struct fuse_in_header *in, const struct fuse_read_in *r)
{
	size_t left = r->offset < size ? size - r->offset : 0;

	reply(in, 0, contents + (left ? r->offset : 0), left < r->size ? left : r->size);
}

static void answer(const struct fuse_in_header *in, const void *arg)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 65536 };
	struct fuse_attr_out attr = {};
	struct fuse_entry_out entry = {};
	struct fuse_open_out opened = {};
	static int opens;
	struct fuse_statfs_out fs = {};

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		entry.nodeid = FILE_ID;
		fill_attr(&entry.attr, FILE_ID);
		reply(in, strcmp(arg, name) ? -ENOENT : 0, &entry, strcmp(arg, name) ? 0 : sizeof(entry));
		break;
	case FUSE_GETATTR:
		fill_attr(&attr.attr, in->nodeid);
		reply(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		opened.open_flags = locks && opens++ ? FOPEN_DIRECT_IO : 0;
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		answer_read(in, arg);
		break;
	case FUSE_STATFS:
		reply(in, 0, &fs, sizeof(fs));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_ACCESS:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

/* Returns false if the file system was unmounted. */
static bool serve_one(bool answers)
{
	static char in[BUFFER];
	ssize_t n = read(device, in, sizeof(in));

	if (n < 0)
		return errno == EINTR || errno == ENOENT || errno == EAGAIN;
	/* a process that waits for a request that the server has read can't be killed */
	if (answers)
		answer((struct fuse_in_header *)in, in + sizeof(struct fuse_in_header));
	return true;
}

static volatile char *code;
static int direct;

static void *touch(void *arg)
{
	return (void *)(unsigned long)code[size / 2];
}

/* A page is never delivered, and mmap waits for it while it holds the process's mmap lock. */
static void hold_lock(int sig)
{
	pthread_t thread;

	pthread_create(&thread, NULL, touch, NULL);
	usleep(100000);
	mmap(NULL, size, PROT_READ, MAP_PRIVATE, direct, 0);
}

/* The mount asks the server, so a process other than the server makes it. */
static bool mount_overlay(const char *dir)
{
	char top[4200], options[8500];

	snprintf(top, sizeof(top), "%s/top", dir);
	if (layer)
		snprintf(options, sizeof(options), "lowerdir=%s/none:%s", dir, served);
	else
		snprintf(options, sizeof(options), "lowerdir=%s:%s/none", served, dir);
	return !mount("hung", top, "overlay", MS_RDONLY, options);
}

/* The child: one page of the file's code is in memory, the others are not. */
static void map(const char *dir, int ready)
{
	char path[4096];
	volatile char *at;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(device);
	if (overlay && !mount_overlay(dir)) {
		perror("hung_files: overlay");
		_exit(77);
	}
	snprintf(path, sizeof(path), "%s/%s%s", dir, overlay ? "top/" : "", name);
	if (layer) {
		snprintf(path, sizeof(path), "%s/top", dir);
		if (chroot(path) || chdir("/"))
			_exit(1);
		snprintf(path, sizeof(path), "/%s", name);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	at = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED || at[0] != contents[0])
		_exit(1);
	code = at;
	signal(SIGUSR1, locks ? hold_lock : SIG_IGN);
	if (locks)
		direct = open(path, O_RDONLY | O_CLOEXEC);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	/* a mapping would contain the breakpoints of a probed file */
	size = st.st_size;
	contents = malloc(size);
	if (!contents || read(fd, contents, size) != (ssize_t)size)
		return -1;
	close(fd);
	return 0;
}

static void serve(int ready, pid_t child)
{
	struct pollfd p[] = { { .fd = device, .events = POLLIN },
			      { .fd = STDIN_FILENO, .events = POLLIN },
			      { .fd = ready, .events = POLLIN } };
	char line[16] = "";
	ssize_t n;

	while (poll(p, 3, -1) >= 0 || errno == EINTR) {
		if (p[2].revents) {
			if (read(ready, line, 1) != 1) /* a NUL */
				return;
			printf("mapped %d\n", (int)child);
			fflush(stdout);
			p[2].fd = -1;
		}
		if (p[1].revents) {
			n = read(STDIN_FILENO, line, sizeof(line));
			if (n <= 0)
				return;
			kill(child, SIGUSR1);
			printf("hangs\n");
			fflush(stdout);
		}
		if (p[0].revents && !serve_one(*line != 'h'))
			return;
	}
}

static bool copy_to(const char *folder)
{
	char path[8400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	return f && fwrite(contents, 1, size, f) == size && !fclose(f);
}

/* The folders of `overlay` are in a file system of their own, because a user may have no right to write DIR. */
static bool make_folders(const char *dir)
{
	char path[4200];

	snprintf(served, sizeof(served), "%s%s", dir, overlay ? "/low" : "");
	if (!overlay)
		return true;
	if (mount("hung", dir, "tmpfs", 0, NULL) || mkdir(served, 0755))
		return false;
	snprintf(path, sizeof(path), "%s/none", dir);
	if (mkdir(path, 0755) || (layer && !copy_to(path)))
		return false;
	snprintf(path, sizeof(path), "%s/top", dir);
	return !mkdir(path, 0755);
}

int main(int argc, char **argv)
{
	const char *node = getenv("FUSE_DEVICE"), *option = getenv("FUSE_OPTION");
	char options[128];
	int ready[2];
	pid_t child;

	if (argc < 4)
		return 2;
	name = argv[3];
	locks = argc > 4 && !strcmp(argv[4], "locks");
	layer = argc > 4 && !strcmp(argv[4], "layer");
	overlay = layer || (argc > 4 && !strcmp(argv[4], "overlay"));
	device = open(node ? node : "/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,%s", device,
		 option ? option : "allow_other");
	if (device < 0 || load(argv[2]) || !make_folders(argv[1]) ||
	    mount("hung", served, "fuse", MS_NODEV | MS_NOSUID, options) || pipe2(ready, O_CLOEXEC)) {
		perror("hung_files");
		return 77;
	}
	child = fork();
	if (!child)
		map(argv[1], ready[1]);
	close(ready[1]);
	serve(ready[0], child);
	/* its requests are aborted with the device */
	close(device);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	umount2(served, MNT_DETACH);
	return overlay && umount2(argv[1], MNT_DETACH) ? 1 : 0;
}
