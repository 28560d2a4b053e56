// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Makes the calls of libtorture.so in every way, checks each result itself and prints what it knows:
// "truth NAME CALLS SUM_A SUM_B", "wrong N", then, after one more line on stdin, "after N".
// Options: placed, span: which kind of calls.
#include "torture.hpp"

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int wrong;

static void check(uint64_t got, uint64_t expected, const char *what)
{
	if (got == expected)
		return;
	wrong++;
	printf("wrong %s: %llu, not %llu\n", what, (unsigned long long)got, (unsigned long long)expected);
}

struct calls {
	uint64_t (*leaf)(uint64_t, uint64_t), (*tail)(uint64_t, uint64_t), (*recurse)(uint64_t, uint64_t),
		(*jump)(uint64_t, uint64_t), (*jumped)(uint64_t, uint64_t), (*call)(uint64_t, uint64_t),
		(*sigleaf)(uint64_t, uint64_t), (*spin)(uint64_t, uint64_t), (*forks)(uint64_t, uint64_t),
		(*execs)(uint64_t, uint64_t), (*exits)(uint64_t, uint64_t), (*waits)(uint64_t, uint64_t),
		(*ends)(uint64_t, uint64_t), (*alloca_sum)(uint64_t, uint64_t), (*aligned)(uint64_t, uint64_t),
		(*branchy)(uint64_t, uint64_t);
};

#define LIST(f, name) f##_##name,
static const calls placed = { FUNCTIONS(p, LIST) }, span = { FUNCTIONS(s, LIST) };
static const calls *c;

static void on_signal(int)
{
	check(c->sigleaf(20, 3), 23, "a call in a signal handler");
	spin_until = spin_until + 1;
}

// Handlers run on the thread's stack, or on one at other_stack
static void with_signals(void *other_stack, size_t size)
{
	stack_t stack = {};
	struct sigaction sa = {};
	struct itimerspec every = { { 0, 2000000 }, { 0, 2000000 } };
	struct sigevent ev = {};
	timer_t timer;

	stack.ss_sp = other_stack;
	stack.ss_size = size;
	if (other_stack)
		sigaltstack(&stack, nullptr);
	sa.sa_handler = on_signal;
	sa.sa_flags = SA_RESTART | (other_stack ? SA_ONSTACK : 0);
	sigaction(SIGUSR1, &sa, nullptr);
	ev.sigev_notify = SIGEV_SIGNAL;
	ev.sigev_signo = SIGUSR1;
	timer_create(CLOCK_MONOTONIC, &ev, &timer);
	spin_until = 0;
	timer_settime(timer, 0, &every, nullptr);
	check(c->spin(25, 1), 26, "a call that signals interrupt");
	timer_delete(timer);
	signal(SIGUSR1, SIG_IGN);
}

struct room {
	char *at;
	size_t size;
};

static void *with_higher_stack(void *arg)
{
	room *r = static_cast<room *>(arg);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
	if (r->at < reinterpret_cast<char *>(&set))
		printf("wrong stacks: the handlers' is not the higher one\n");
	with_signals(r->at, r->size);
	return nullptr;
}

static void signals()
{
	static char space[65536];
	room r = { nullptr, 65536 };
	sigset_t set;
	pthread_t thread;

	with_signals(nullptr, 0);
	with_signals(space, sizeof(space));
	/*
	 * The kernel itself takes the calls that such a handler interrupts for left: with return probes it dies (SIGILL).
	 */
	if (c != &placed)
		return;
	// mappings are made downwards: this one lies above the thread's stack
	r.at = static_cast<char *>(mmap(nullptr, r.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, nullptr);
	pthread_create(&thread, nullptr, with_higher_stack, &r);
	pthread_join(thread, nullptr);
	pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// A fresh process for what ends one
template <typename F> static int in_child(F f)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		f();
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return status;
}

// Kills at anything but write, exit and what a call itself may need: nothing
static void seccomp_filter()
{
	sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void *wait_long(void *)
{
	c->waits(100, 1);
	return nullptr;
}

static void *end_inside(void *)
{
	c->ends(1, 2);
	return nullptr;
}

static uint64_t twice(uint64_t x)
{
	return c->leaf(x, 0) * 2;
}

static void simple()
{
	for (uint64_t i = 0; i < 2000; i++) {
		check(c->leaf(i, 7), i * 3 + 7, "leaf");
		check(c->tail(i, 7), (i + 1) * 3 + 9, "tail");
		check(c->call(reinterpret_cast<uint64_t>(twice), i), i * 6 + 1, "a call back");
		check(c->aligned(i, 3), (i & 255) * ((i & 255) ? (i & 255) - 1 : 0) / 2 + 3, "aligned");
		check(c->alloca_sum(i % 200, 5), (i % 200) * (i % 200 ? i % 200 - 1 : 0) / 2 + 5, "alloca");
		if (i % 9 == 1 || i % 9 == 3 || i % 9 == 6)
			check(c->branchy(i, 40), i % 9 == 1 ? 40 : i % 9 == 3 ? i : i ^ 40, "branches");
		else
			c->branchy(i, 40);
	}
	check(c->recurse(500, 11), 511, "recursion");
	check(c->recurse(10, 11), 21, "recursion");
}

static void thrown(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t a = i & 7;
		uint64_t r = torture::outer(a, 3);
		uint64_t thrown = 1003 + (a & 2 ? 1 : 0) + (a & 4 ? 1 : 0);

		check(r, a & 1 ? thrown : a + 5, "an exception");
	}
}

static void odd_ends(bool cancel)
{
	pthread_t thread;
	int status;

	check(c->jumped(1, 9), 9, "longjmp");
	check(c->jumped(2, 9), 2, "no longjmp");
	check(c->leaf(1, 1), 4, "the call after longjmp");
	signals();
	check(c->forks(7, 1), 7, "vfork");
	status = in_child([] { c->execs(1, 2); });
	check(status, 0, "exec");
	status = in_child([] { c->exits(3, 2); });
	check(WEXITSTATUS(status), 3, "exit");
	status = in_child([] {
		seccomp_filter();
		for (uint64_t i = 0; i < 100; i++)
			if (c->leaf(i, 1) != i * 3 + 1)
				_exit(1);
		_exit(0);
	});
	check(status, 0, "calls under a seccomp filter");
	if (!cancel)
		return;
	cleaned = 0;
	pthread_create(&thread, nullptr, wait_long, nullptr);
	while (!truth_of(c == &placed ? "p_waits" : "s_waits")->calls)
		usleep(1000);
	usleep(20000);
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
	check(cleaned, 1, "destructors of a cancelled call");
	pthread_create(&thread, nullptr, end_inside, nullptr);
	pthread_join(thread, nullptr);
	check(cleaned, 2, "destructors of a call that ends its thread");
}

int main(int argc, char **argv)
{
	char line[16];
	bool is_span = argc > 1 && !strcmp(argv[1], "span");

	c = is_span ? &span : &placed;
	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	simple();
	odd_ends(!is_span);
	if (!is_span)
		thrown(100000);
	for (truth *t = truths; *t->name; t++)
		printf("truth %s %llu %llu %llu\n", t->name, (unsigned long long)t->calls, (unsigned long long)t->sum_a,
		       (unsigned long long)t->sum_b);
	printf("wrong %d\n", wrong);
	wrong = 0;
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	simple();
	thrown(1000);
	printf("after %d\n", wrong);
	return 0;
}
