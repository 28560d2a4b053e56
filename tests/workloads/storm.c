// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * storm KIND SECONDS [FOLDER LIBRARY]: repeats an action that a tracer observes as fast as possible:
 *
 *	rename	prctl(PR_SET_NAME)
 *	flip	the same, with two names in turn: storm-0 and storm-1
 *	blink	the same, with 10 ms as storm-0 and a very short time as storm-1
 *	thread	threads that start, are named and end
 *	fork	processes
 *	exec	programs that are executed
 *	cgroup	a process moved between two cgroups, FOLDER/a and FOLDER/b
 *	file	copies of LIBRARY in FOLDER, each mapped as code and unlinked
 *	keep	the same, but up to 64 stay mapped
 *	map	LIBRARY itself, mapped as code and unmapped
 *	write	one copy of LIBRARY, overwritten in place and mapped again
 *
 * Prints the number of repetitions.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *folder, *library;
static char *contents;
static size_t size;
static unsigned long n;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void rename_once(void)
{
	char name[16];

	snprintf(name, sizeof(name), "storm-%lx", n);
	prctl(PR_SET_NAME, name);
}

static void flip_once(void)
{
	prctl(PR_SET_NAME, n & 1 ? "storm-1" : "storm-0");
}

static void blink_once(void)
{
	prctl(PR_SET_NAME, "storm-1");
	prctl(PR_SET_NAME, "storm-0");
	usleep(10000);
}

static void *named_thread(void *arg)
{
	rename_once();
	return arg;
}

static void thread_once(void)
{
	pthread_t t;

	if (!pthread_create(&t, NULL, named_thread, NULL))
		pthread_join(t, NULL);
}

static void fork_once(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void exec_once(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static void cgroup_once(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/cgroup.procs", folder, n & 1 ? "a" : "b");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		exit(77);
	close(fd);
}

/* Writes the library's contents to a file and maps it as code; the caller unmaps it. */
static void *map_file(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0755);
	void *map;

	if (fd < 0 || write(fd, contents, size) != (ssize_t)size)
		exit(1);
	map = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		exit(1);
	close(fd);
	return map;
}

static void *new_file(void)
{
	char path[4096];
	void *map;

	snprintf(path, sizeof(path), "%s/storm-%d-%lx.so", folder, getpid(), n);
	map = map_file(path, O_EXCL);
	unlink(path);
	return map;
}

static void file_once(void)
{
	munmap(new_file(), size);
}

static void keep_once(void)
{
	static void *maps[64];
	void **map = &maps[n % 64];

	if (*map)
		munmap(*map, size);
	*map = new_file();
}

static void map_once(void)
{
	int fd = open(library, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		exit(1);
	munmap(map, size);
	close(fd);
}

static void write_once(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/storm.so", folder);
	munmap(map_file(path, O_TRUNC), size);
	usleep(1000);
}

static void read_library(void)
{
	int fd = open(library, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		exit(1);
	size = (size_t)st.st_size;
	contents = malloc(size);
	if (!contents || read(fd, contents, size) != (ssize_t)size)
		exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *kind;
		void (*once)(void);
	} kinds[] = {
		{ "rename", rename_once }, { "flip", flip_once },     { "thread", thread_once }, { "fork", fork_once },
		{ "exec", exec_once },	   { "cgroup", cgroup_once }, { "file", file_once },	 { "keep", keep_once },
		{ "map", map_once },	   { "write", write_once },   { "blink", blink_once },
	};
	double end = now() + (argc > 2 ? atof(argv[2]) : 1);

	folder = argc > 3 ? argv[3] : ".";
	library = argc > 4 ? argv[4] : NULL;
	if (library)
		read_library();
	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (; !strcmp(kinds[i].kind, argv[1]) && now() < end; n++)
			kinds[i].once();
	printf("%lu\n", n);
	return !n;
}
