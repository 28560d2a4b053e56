// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that checks the result of each of its system calls and computations:
 *
 *	inject_target [-t BUSY] [-s] [-l]
 *
 * -t: threads that compute, -s: threads in system calls, with signals and timers, -l: threads that load, allocate
 * and fork. Prints "ready", waits for a line on stdin, stops, and prints "checks N wrong M".
 */
#include <dlfcn.h>
#include <errno.h>
#include <immintrin.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stop;
static atomic_ulong checks, wrong;

#define CHECK(good)                                                                                  \
	do {                                                                                         \
		checks++;                                                                            \
		if (!(good)) {                                                                       \
			wrong++;                                                                     \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #good, errno); \
		}                                                                                    \
	} while (0)

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Keeps known values in all general and vector registers and in the red zone for a while. */
static void registers(void)
{
	uint64_t bad;

	__asm__ volatile("mov $0x1111, %%rbx\n mov $0x2222, %%r12\n mov $0x3333, %%r13\n mov $0x4444, %%r14\n"
			 "mov $0x5555, %%r15\n mov $0x6666, %%r8\n mov $0x7777, %%r9\n mov $0x8888, %%r10\n"
			 "mov $0x9999, %%r11\n movq $0xabcd, -64(%%rsp)\n movq $0xdcba, -120(%%rsp)\n"
			 "movq %%rbx, %%xmm0\n movq %%r12, %%xmm7\n movq %%r13, %%xmm15\n"
			 "std\n"
			 "mov $2000000, %%rcx\n"
			 "1: dec %%rcx\n jnz 1b\n"
			 "pushfq\n pop %%rsi\n cld\n"
			 "xor $0x400, %%rsi\n and $0x400, %%rsi\n mov %%rsi, %0\n"
			 "xor $0x1111, %%rbx\n or %%rbx, %0\n xor $0x2222, %%r12\n or %%r12, %0\n"
			 "xor $0x3333, %%r13\n or %%r13, %0\n xor $0x4444, %%r14\n or %%r14, %0\n"
			 "xor $0x5555, %%r15\n or %%r15, %0\n xor $0x6666, %%r8\n or %%r8, %0\n"
			 "xor $0x7777, %%r9\n or %%r9, %0\n xor $0x8888, %%r10\n or %%r10, %0\n"
			 "xor $0x9999, %%r11\n or %%r11, %0\n"
			 "mov -120(%%rsp), %%rsi\n xor $0xdcba, %%rsi\n or %%rsi, %0\n"
			 "movq %%xmm0, %%rsi\n xor $0x1111, %%rsi\n or %%rsi, %0\n"
			 "movq %%xmm7, %%rsi\n xor $0x2222, %%rsi\n or %%rsi, %0\n"
			 "movq %%xmm15, %%rsi\n xor $0x3333, %%rsi\n or %%rsi, %0\n"
			 : "=&d"(bad)
			 :
			 : "rbx", "rcx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm7",
			   "xmm15", "memory", "cc");
	CHECK(!bad);
}

__attribute__((target("avx"))) static void vectors(void)
{
	__m256d a = _mm256_set_pd(1, 2, 3, 4), b = _mm256_set_pd(0.5, 0.25, 0.125, 1), sum = _mm256_setzero_pd();
	double out[4];

	for (int i = 0; i < 100000; i++) {
		sum = _mm256_add_pd(sum, _mm256_mul_pd(a, b));
		__asm__ volatile("" : "+x"(a), "+x"(b), "+x"(sum));
	}
	_mm256_storeu_pd(out, sum);
	CHECK(out[0] == 400000 && out[1] == 37500 && out[2] == 50000 && out[3] == 50000);
}

static void arithmetic(void)
{
	long double x = 1;
	uint64_t h = 14695981039346656037ULL;

	for (int i = 0; i < 100000; i++) {
		x = x * 1.0000001L + 1e-9L;
		h = (h ^ (uint64_t)i) * 1099511628211ULL;
		__asm__ volatile("" : "+r"(h));
	}
	static long double first_x;
	static uint64_t first_h;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!first_h) {
		first_h = h;
		first_x = x;
	}
	pthread_mutex_unlock(&lock);
	CHECK(h == first_h && x == first_x);
}

static void *computes(void *arg)
{
	while (!stop) {
		errno = 4711;
		registers();
		if (__builtin_cpu_supports("avx"))
			vectors();
		arithmetic();
		CHECK(errno == 4711);
	}
	return NULL;
}

static void *sleeps(void *arg)
{
	while (!stop) {
		struct timespec t = { .tv_nsec = 70000000 };
		int64_t before = now_ns();

		errno = 77;
		CHECK(!nanosleep(&t, NULL));
		CHECK(now_ns() - before >= 70000000 && errno == 77);
		CHECK(!poll(NULL, 0, 30));
		CHECK(!clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL));
	}
	return NULL;
}

static void *waits_for_events(void *arg)
{
	struct epoll_event e;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	while (!stop)
		CHECK(epoll_wait(fd, &e, 1, 40) == 0);
	close(fd);
	return NULL;
}

static int numbers[2];

static void *writes(void *arg)
{
	for (uint32_t i = 0; !stop; i++) {
		CHECK(write(numbers[1], &i, sizeof(i)) == sizeof(i));
		usleep(15000);
	}
	close(numbers[1]);
	return NULL;
}

static void *reads(void *arg)
{
	uint32_t n, next = 0;
	ssize_t got;

	while ((got = read(numbers[0], &n, sizeof(n))) > 0) {
		CHECK(got == sizeof(n) && n == next);
		next++;
	}
	CHECK(!got);
	return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned int turn;

static void *takes_turns(void *arg)
{
	unsigned int me = (uintptr_t)arg;

	pthread_mutex_lock(&lock);
	while (!stop) {
		while (turn % 2 != me && !stop)
			CHECK(!pthread_cond_wait(&cond, &lock));
		turn++;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&lock);
		usleep(10000);
		pthread_mutex_lock(&lock);
	}
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *times_out(void *arg)
{
	sem_t sem;

	sem_init(&sem, 0, 0);
	while (!stop) {
		struct timespec t;
		int64_t before = now_ns();

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 50000000;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		CHECK(sem_timedwait(&sem, &t) && errno == ETIMEDOUT);
		CHECK(now_ns() - before >= 49000000);
	}
	return NULL;
}

/* Numbered signals: each must arrive, in order, while they interrupt system calls. */
static atomic_int received, sent, mixed;

static void on_number(int sig, siginfo_t *info, void *context)
{
	if (info->si_value.sival_int != received)
		mixed++;
	received++;
}

static atomic_int receiver;

static void *receives(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	receiver = gettid();
	while (!stop || received < sent) {
		struct timespec t = { .tv_nsec = 100000000 };

		while (nanosleep(&t, &t) && errno == EINTR)
			;
	}
	CHECK(received == sent && !mixed);
	return NULL;
}

static void *signals(void *arg)
{
	while (!receiver)
		usleep(1000);
	while (!stop) {
		siginfo_t info = { .si_signo = SIGRTMIN, .si_code = SI_QUEUE };

		info.si_pid = getpid();
		info.si_value.sival_int = sent;
		if (!syscall(SYS_rt_tgsigqueueinfo, getpid(), receiver, SIGRTMIN, &info))
			sent++;
		usleep(3000);
	}
	return NULL;
}

static atomic_ulong ticks;

static void on_tick(int sig)
{
	int saved = errno;

	ticks++;
	errno = saved;
}

static void *allocates(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	char *held[64] = {};

	while (!stop) {
		int i = rand_r(&seed) % 64, n = rand_r(&seed) % 5000 + 1;

		if (held[i]) {
			CHECK((unsigned char)held[i][0] == (unsigned char)i);
			free(held[i]);
		}
		held[i] = malloc(n);
		held[i][0] = (char)i;
		held[i][n - 1] = (char)i;
	}
	return NULL;
}

static void *loads(void *arg)
{
	while (!stop) {
		void *h = dlopen("libm.so.6", RTLD_NOW);

		CHECK(h && dlsym(h, "cos"));
		if (h)
			dlclose(h);
		h = dlopen("libutil.so.1", RTLD_NOW);
		if (h)
			dlclose(h);
	}
	return NULL;
}

static void *forks(void *arg)
{
	while (!stop) {
		int status = 0;
		pid_t pid = fork();

		if (!pid)
			_exit(7);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
		usleep(20000);
	}
	return NULL;
}

static pthread_t threads[256];
static int n_threads;

static void begin(void *(*run)(void *), uintptr_t arg)
{
	if (pthread_create(&threads[n_threads], NULL, run, (void *)arg))
		exit(2);
	n_threads++;
}

static void begin_calls(void)
{
	struct sigaction number = { .sa_sigaction = on_number, .sa_flags = SA_SIGINFO };
	struct sigaction tick = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, 7000000 }, { 0, 7000000 } };
	sigset_t set;

	sigaction(SIGRTMIN, &number, NULL);
	sigaction(SIGALRM, &tick, NULL);
	/* numbered signals go to the receiver only, ticks to threads that compute */
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pipe(numbers))
		exit(2);
	begin(sleeps, 0);
	begin(waits_for_events, 0);
	begin(writes, 0);
	begin(reads, 0);
	begin(takes_turns, 0);
	begin(takes_turns, 1);
	begin(times_out, 0);
	begin(receives, 0);
	begin(signals, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	begin(computes, 0);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &every, NULL);
}

int main(int argc, char **argv)
{
	bool calls = false;
	int c, busy = 0;
	char line[64];

	while ((c = getopt(argc, argv, "t:sl")) != -1) {
		if (c == 't')
			busy = atoi(optarg);
		else if (c == 's')
			calls = true;
		else if (c == 'l') {
			for (uintptr_t i = 0; i < 4; i++)
				begin(allocates, i + 1);
			begin(loads, 0);
			begin(forks, 0);
		}
	}
	if (calls)
		begin_calls();
	for (int i = 0; i < busy; i++)
		begin(computes, 0);
	printf("ready %d\n", getpid());
	fflush(stdout);
	errno = 1234;
	CHECK(fgets(line, sizeof(line), stdin) && errno == 1234);
	stop = true;
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	CHECK(!calls || ticks);
	printf("checks %lu wrong %lu\n", checks, wrong);
	return wrong != 0;
}
