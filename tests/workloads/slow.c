// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * slow WHAT [FILE]: a program that is slow for one known reason.
 *
 *	convoy	four threads wait for one mutex, and each sleeps while it holds it: no CPU time is involved
 *	disk	reads FILE bypassing the page cache
 *	spin	computes without pause, to be run in a cgroup with a CPU quota
 *	sleep	sleeps 40 times for 50 ms
 *
 * Waits for a line on stdin. Then prints, with times of CLOCK_MONOTONIC:
 *
 *	thread TID BEGIN END
 *	lock ADDRESS
 *	reads COUNT NS		all reads together
 *	slept COUNT NS LEAST	all sleeps together; at least this time was not spent on a CPU or waiting for one
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RUN_NS	2000000000ULL
#define FILE_MB 64
#define PIECE	262144

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static const char *path;

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The time that the thread has spent on a CPU or waiting for one. */
static unsigned long long awake(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	struct timespec t;

	if (!f || fscanf(f, "%*u %llu", &waited) != 1)
		waited = 0;
	if (f)
		fclose(f);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	ran = t.tv_sec * 1000000000ULL + t.tv_nsec;
	return ran + waited;
}

static void work(unsigned long long ns)
{
	unsigned long long end = now() + ns;

	while (now() < end)
		;
}

static void convoy(void)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	unsigned long long end;

	pthread_barrier_wait(&barrier);
	end = now() + RUN_NS;
	while (now() < end) {
		pthread_mutex_lock(&mutex);
		nanosleep(&nap, NULL);
		pthread_mutex_unlock(&mutex);
	}
}

static void die(const char *what)
{
	fprintf(stderr, "slow: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void prepare(void)
{
	static char buf[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		die(path);
	for (int i = 0; i < FILE_MB; i++)
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			die(path);
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die(path);
	close(fd);
}

static void disk(void)
{
	static char piece[PIECE] __attribute__((aligned(4096)));
	unsigned long pieces = FILE_MB * (1UL << 20) / PIECE, at = 0, reads = 0;
	unsigned long long begin, ns = 0, end = now() + RUN_NS;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

	if (fd < 0)
		die(path);
	while (now() < end) {
		at = (at + 7919) % pieces;
		begin = now();
		if (pread(fd, piece, PIECE, (off_t)at * PIECE) != PIECE)
			die("read");
		ns += now() - begin;
		reads++;
	}
	printf("reads %lu %llu\n", reads, ns);
	close(fd);
}

static void spin(void)
{
	work(RUN_NS);
}

static void sleeper(void)
{
	const struct timespec t = { .tv_nsec = 50000000 };

	unsigned long long begin, ns = 0, before = awake();

	for (int i = 0; i < 40; i++) {
		begin = now();
		nanosleep(&t, NULL);
		ns += now() - begin;
	}
	printf("slept 40 %llu %llu\n", ns, ns - (awake() - before));
}

static const struct mode {
	const char *name;
	int threads;
	void (*run)(void);
} modes[] = { { "convoy", 4, convoy }, { "disk", 1, disk }, { "spin", 1, spin }, { "sleep", 1, sleeper } };

struct said {
	pid_t tid;
	unsigned long long begin, end;
	const struct mode *mode;
};

static void *thread(void *arg)
{
	struct said *s = arg;

	s->begin = now();
	s->tid = (pid_t)syscall(SYS_gettid);
	s->mode->run();
	s->end = now();
	return NULL;
}

int main(int argc, char **argv)
{
	struct said said[4] = { 0 };
	const struct mode *mode = NULL;
	pthread_t threads[4];
	char line[8];

	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			mode = &modes[i];
	if (!mode)
		return 2;
	path = argc > 2 ? argv[2] : NULL;
	if (path)
		prepare();
	pthread_barrier_init(&barrier, NULL, 4);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < mode->threads; i++) {
		said[i].mode = mode;
		pthread_create(&threads[i], NULL, thread, &said[i]);
	}
	for (int i = 0; i < mode->threads; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < mode->threads; i++)
		printf("thread %d %llu %llu\n", said[i].tid, said[i].begin, said[i].end);
	printf("lock %p\n", (void *)&mutex);
	if (path)
		unlink(path);
	return 0;
}
