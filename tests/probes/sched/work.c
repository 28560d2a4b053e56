// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Threads that run, wait and wake for known times and numbers; see the tests in this folder. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds = 2;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void burn(long long ns)
{
	long long end = now() + ns;

	while (now() < end)
		;
}

static void nap(long long ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	nanosleep(&t, NULL);
}

/*
 * Long enough for another thread to get off the CPU meanwhile: 2 ms on a real
 * processor, 40 ms on an emulated one, where SLOW is set.
 */
static void short_nap(void)
{
	nap(getenv("SLOW") ? 40000000 : 2000000);
}

/* --- load: threads of several kinds, with the kernel's counters of each --- */

struct worker {
	pthread_t thread;
	const char *kind;
	void (*body)(struct worker *w);
	pid_t tid;
	long long until;
	int fd_in, fd_out;
	int first;
	pthread_mutex_t *lock;
	pthread_cond_t *turn;
	int *whose;
};

static pthread_barrier_t idle, leave;

static void busy(struct worker *w)
{
	burn(w->until - now());
}

static void sleeper(struct worker *w)
{
	while (now() < w->until) {
		burn(700000);
		nap(300000);
	}
}

static void yielder(struct worker *w)
{
	while (now() < w->until) {
		burn(50000);
		sched_yield();
	}
}

/* Two threads take turns by a mutex and a condition. */
static void mutex_pair(struct worker *w)
{
	while (now() < w->until) {
		pthread_mutex_lock(w->lock);
		while (*w->whose != w->first && now() < w->until) {
			struct timespec t;

			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec += 20000000;
			t.tv_sec += t.tv_nsec / 1000000000;
			t.tv_nsec %= 1000000000;
			pthread_cond_timedwait(w->turn, w->lock, &t);
		}
		burn(30000);
		*w->whose = !w->first;
		pthread_cond_signal(w->turn);
		pthread_mutex_unlock(w->lock);
	}
}

static void pipe_pair(struct worker *w)
{
	char c = 'x';

	while (now() < w->until) {
		if (w->first && write(w->fd_out, &c, 1) < 0)
			break;
		if (read(w->fd_in, &c, 1) < 1)
			break;
		if (!w->first && write(w->fd_out, &c, 1) < 0)
			break;
	}
	/* the partner may still wait for an answer */
	close(w->fd_out);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	w->tid = syscall(SYS_gettid);
	w->body(w);
	pthread_barrier_wait(&idle);
	pthread_barrier_wait(&leave);
	return NULL;
}

static void print_schedstat(struct worker *w)
{
	unsigned long long run, wait, times;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", w->tid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu %llu %llu", &run, &wait, &times) != 3)
		exit(1);
	fclose(f);
	printf("thread %d %s %llu %llu %llu\n", w->tid, w->kind, run, wait, times);
}

static int load(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
	static struct worker w[16];
	long long until = now() + (long long)(seconds * 1e9);
	int n = 0, whose = 0, a[2], b[2], cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (pipe(a) || pipe(b))
		return 1;
	for (int i = 0; i < cpus + 1 && i < 6; i++)
		w[n++] = (struct worker){ .kind = "busy", .body = busy };
	w[n++] = (struct worker){ .kind = "sleeper", .body = sleeper };
	w[n++] = (struct worker){ .kind = "yielder", .body = yielder };
	for (int i = 0; i < 2; i++)
		w[n++] = (struct worker){
			.kind = "mutex", .body = mutex_pair, .first = i, .lock = &lock, .turn = &turn, .whose = &whose
		};
	w[n++] = (struct worker){ .kind = "pipe", .body = pipe_pair, .first = 1, .fd_in = a[0], .fd_out = b[1] };
	w[n++] = (struct worker){ .kind = "pipe", .body = pipe_pair, .fd_in = b[0], .fd_out = a[1] };
	pthread_barrier_init(&idle, NULL, n + 1);
	pthread_barrier_init(&leave, NULL, n + 1);
	for (int i = 0; i < n; i++) {
		w[i].until = until;
		pthread_create(&w[i].thread, NULL, run_worker, &w[i]);
	}
	pthread_barrier_wait(&idle);
	/* all threads are blocked, so that their counters don't change */
	nap(50000000);
	printf("idle %lld\n", now());
	for (int i = 0; i < n; i++)
		print_schedstat(&w[i]);
	pthread_barrier_wait(&leave);
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	return 0;
}

/* --- wake: one thread wakes another a known number of times --- */

static int to[2], from[2];
static pid_t waker, woken;

static void *answer(void *arg)
{
	char c;

	(void)arg;
	woken = syscall(SYS_gettid);
	while (read(to[0], &c, 1) == 1 && c == 'x')
		if (write(from[1], &c, 1) != 1)
			break;
	return NULL;
}

static void *noise(void *arg)
{
	burn(*(long long *)arg);
	return NULL;
}

/* Waits until the thread sleeps, which under load may take longer than any fixed time. */
static void wait_until_asleep(pid_t tid)
{
	char path[64], line[256], *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (;;) {
		f = fopen(path, "r");
		if (!f)
			return;
		end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
		fclose(f);
		if (!end || end[2] == 'S')
			return;
		/* not a nap, as naps are counted */
		sched_yield();
	}
}

static int wake(int times)
{
	/* computes, so that interrupts have a thread to interrupt */
	long long noise_ns = times * 1500000LL;
	pthread_t t, other[2];
	char c = 'x';

	if (pipe(to) || pipe(from))
		return 1;
	pthread_create(&t, NULL, answer, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&other[i], NULL, noise, &noise_ns);
	waker = syscall(SYS_gettid);
	nap(50000000);
	wait_until_asleep(woken);
	printf("begin %lld\n", now());
	for (int i = 0; i < times; i++) {
		c = 'x';
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			return 1;
		nap(30000000);
		wait_until_asleep(woken);
	}
	printf("end %lld\n", now());
	printf("wake %d %d %d\n", waker, woken, times);
	c = 'q';
	if (write(to[1], &c, 1) != 1)
		return 1;
	pthread_join(t, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(other[i], NULL);
	return 0;
}

/* --- states: a known number of each reason for being off the CPU --- */

/* The parent of a vfork waits until the child has ended, interruptible only by fatal signals. */
static void wait_for_vfork(void)
{
	pid_t child = vfork();

	if (!child) {
		short_nap();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static int states(int times)
{
	int status, n = 0;
	pid_t child;

	printf("begin %lld\n", now());
	for (int i = 0; i < times; i++)
		short_nap();
	for (int i = 0; i < times; i++)
		wait_for_vfork();
	printf("end %lld\n", now());
	fflush(stdout);
	child = fork();
	if (!child) {
		for (int i = 0; i < times; i++)
			raise(SIGSTOP);
		_exit(0);
	}
	for (int i = 0; i < times; i++) {
		waitpid(child, &status, WUNTRACED);
		n += WIFSTOPPED(status);
		short_nap();
		kill(child, SIGCONT);
	}
	waitpid(child, &status, 0);
	printf("stopped %d %d\n", child, n);
	fflush(stdout);
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		for (int i = 0; i < times; i++)
			raise(SIGUSR1);
		_exit(0);
	}
	for (n = 0; waitpid(child, &status, 0) == child && WIFSTOPPED(status); n++) {
		short_nap();
		ptrace(PTRACE_CONT, child, 0, 0);
	}
	printf("traced %d %d\n", child, n);
	return 0;
}

/* --- churn: threads that start and end while they are traced --- */

static pid_t tids[1000];

static void *short_life(void *arg)
{
	*(pid_t *)arg = syscall(SYS_gettid);
	burn(200000);
	return NULL;
}

static int churn(int times)
{
	pthread_t t[4];

	for (int i = 0; i < times; i += 4) {
		for (int j = 0; j < 4; j++)
			pthread_create(&t[j], NULL, short_life, &tids[i + j]);
		for (int j = 0; j < 4; j++)
			pthread_join(t[j], NULL);
	}
	for (int i = 0; i < times; i++)
		printf("thread %d\n", tids[i]);
	return 0;
}

/* --- before: threads that run and sleep before, during and after the trace --- */

static void *forever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static int before(void)
{
	pthread_t t;

	pthread_create(&t, NULL, forever, NULL);
	nap(10000000);
	printf("sleeps in %d\n", getpid());
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	char line[16];
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 100;

	if (!strcmp(mode, "before"))
		before();
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (!strcmp(mode, "before")) {
		burn(n * 1000000LL);
		return 0;
	}
	if (!strcmp(mode, "load")) {
		seconds = n / 1000.0;
		return load();
	}
	if (!strcmp(mode, "wake"))
		return wake(n);
	if (!strcmp(mode, "states"))
		return states(n);
	if (!strcmp(mode, "churn"))
		return churn(n);
	return 2;
}
