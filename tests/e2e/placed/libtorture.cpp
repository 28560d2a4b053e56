// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A library whose calls end in every way there is; the same code for placed calls (p_) and for spans (s_).
#include "torture.hpp"

#include <alloca.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

truth *truths;
jmp_buf back;
volatile uint64_t spin_until, cleaned;

truth *truth_of(const char *name)
{
	truth *t = truths;

	for (; *t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	strcpy(t->name, name);
	return t;
}

__attribute__((constructor)) static void map_truths()
{
	truths = static_cast<truth *>(mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

// Hidden: no family's glob finds it
__attribute__((noinline, visibility("hidden"))) void enter(const char *name, uint64_t a, uint64_t b)
{
	truth *t = truth_of(name);

	__atomic_fetch_add(&t->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->sum_a, a, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->sum_b, b, __ATOMIC_RELAXED);
}

__attribute__((noinline, visibility("hidden"))) uint64_t fill(volatile char *p, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		p[i] = static_cast<char>(i);
	for (uint64_t i = 0; i < n; i++)
		sum += static_cast<unsigned char>(p[i]);
	return sum;
}

#define DEFINE(f)                                                                                                     \
	uint64_t f##_leaf(uint64_t a, uint64_t b)                                                                     \
	{                                                                                                             \
		enter(#f "_leaf", a, b);                                                                              \
		return a * 3 + b;                                                                                     \
	}                                                                                                             \
	uint64_t f##_tail(uint64_t a, uint64_t b)                                                                     \
	{                                                                                                             \
		enter(#f "_tail", a, b);                                                                              \
		return f##_leaf(a + 1, b + 2);                                                                        \
	}                                                                                                             \
	__attribute__((noipa)) uint64_t f##_recurse(uint64_t a, uint64_t b)                                           \
	{                                                                                                             \
		enter(#f "_recurse", a, b);                                                                           \
		if (!a)                                                                                               \
			return b;                                                                                     \
		uint64_t r = f##_recurse(a - 1, b);                                                                   \
		asm volatile("" : "+r"(r));                                                                           \
		return r + 1;                                                                                         \
	}                                                                                                             \
	uint64_t f##_jump(uint64_t a, uint64_t b)                                                                     \
	{                                                                                                             \
		enter(#f "_jump", a, b);                                                                              \
		if (a & 1)                                                                                            \
			longjmp(back, 1);                                                                             \
		return a;                                                                                             \
	}                                                                                                             \
	uint64_t f##_jumped(uint64_t a, volatile uint64_t b)                                                                   \
	{                                                                                                             \
		enter(#f "_jumped", a, b);                                                                            \
		if (setjmp(back))                                                                                     \
			return b;                                                                                     \
		uint64_t r = f##_jump(a, b);                                                                          \
		asm volatile("" : "+r"(r));                                                                           \
		return r;                                                                                             \
	}                                                                                                             \
	uint64_t f##_call(uint64_t a, uint64_t b)                                                                     \
	{                                                                                                             \
		enter(#f "_call", a, b);                                                                              \
		uint64_t r = reinterpret_cast<uint64_t (*)(uint64_t)>(a)(b);                                          \
		asm volatile("" : "+r"(r));                                                                           \
		return r + 1;                                                                                         \
	}                                                                                                             \
	uint64_t f##_sigleaf(uint64_t a, uint64_t b)                                                                  \
	{                                                                                                             \
		enter(#f "_sigleaf", a, b);                                                                           \
		return a + b;                                                                                         \
	}                                                                                                             \
	uint64_t f##_spin(uint64_t a, uint64_t b)                                                                     \
	{                                                                                                             \
		enter(#f "_spin", a, b);                                                                              \
		while (spin_until < a)                                                                                \
			;                                                                                             \
		return a + b;                                                                                         \
	}                                                                                                             \
	uint64_t f##_forks(uint64_t a, uint64_t b)                                                                    \
	{                                                                                                             \
		enter(#f "_forks", a, b);                                                                             \
		pid_t pid = vfork();                                                                                  \
		if (!pid)                                                                                             \
			_exit(a);                                                                                     \
		int status = 0;                                                                                       \
		waitpid(pid, &status, 0);                                                                             \
		return WEXITSTATUS(status);                                                                           \
	}                                                                                                             \
	uint64_t f##_execs(uint64_t a, uint64_t b)                                                                    \
	{                                                                                                             \
		enter(#f "_execs", a, b);                                                                             \
		execl("/bin/true", "true", nullptr);                                                                  \
		return a;                                                                                             \
	}                                                                                                             \
	uint64_t f##_exits(uint64_t a, uint64_t b)                                                                    \
	{                                                                                                             \
		enter(#f "_exits", a, b);                                                                             \
		if (a)                                                                                                \
			exit(a);                                                                                      \
		return b;                                                                                             \
	}                                                                                                             \
	uint64_t f##_waits(uint64_t a, uint64_t b)                                                                    \
	{                                                                                                             \
		struct guard {                                                                                        \
			~guard() { cleaned = cleaned + 1; }                                                           \
		} g;                                                                                                  \
		enter(#f "_waits", a, b);                                                                             \
		for (uint64_t i = 0; i < a; i++) {                                                                    \
			struct timespec t = { 1, 0 };                                                                 \
			nanosleep(&t, nullptr);                                                                       \
		}                                                                                                     \
		return b;                                                                                             \
	}                                                                                                             \
	uint64_t f##_ends(uint64_t a, uint64_t b)                                                                     \
	{                                                                                                             \
		struct guard {                                                                                        \
			~guard() { cleaned = cleaned + 1; }                                                           \
		} g;                                                                                                  \
		enter(#f "_ends", a, b);                                                                              \
		if (a)                                                                                                \
			pthread_exit(nullptr);                                                                        \
		return b;                                                                                             \
	}                                                                                                             \
	uint64_t f##_alloca_sum(uint64_t a, uint64_t b)                                                               \
	{                                                                                                             \
		enter(#f "_alloca_sum", a, b);                                                                        \
		uint64_t r = fill(static_cast<volatile char *>(alloca(a)), a);                                        \
		return r + b;                                                                                         \
	}                                                                                                             \
	uint64_t f##_aligned(uint64_t a, uint64_t b)                                                                  \
	{                                                                                                             \
		alignas(64) volatile char space[256];                                                                 \
		enter(#f "_aligned", a, b);                                                                           \
		uint64_t r = fill(space, a & 255);                                                                    \
		return reinterpret_cast<uint64_t>(space) % 64 + r + b;                                                \
	}                                                                                                             \
	uint64_t f##_branchy(uint64_t a, uint64_t b)                                                                  \
	{                                                                                                             \
		enter(#f "_branchy", a, b);                                                                           \
		switch (a % 9) {                                                                                      \
		case 0:                                                                                               \
			return f##_leaf(a, b);                                                                        \
		case 1:                                                                                               \
			return b;                                                                                     \
		case 2:                                                                                               \
			return fill(reinterpret_cast<volatile char *>(&b), 8);                                        \
		case 3:                                                                                               \
			for (uint64_t i = 0; i < a; i++)                                                              \
				asm volatile("");                                                                     \
			return a;                                                                                     \
		case 4:                                                                                               \
			return b ? f##_leaf(b, a) + 1 : 7;                                                            \
		case 6:                                                                                               \
			return a ^ b;                                                                                 \
		default:                                                                                              \
			return a < b ? f##_leaf(1, 2) : a / 3;                                                        \
		}                                                                                                     \
	}

extern "C" {
DEFINE(p)
DEFINE(s)
}

namespace torture {

uint64_t thrower(uint64_t a, uint64_t b)
{
	enter("thrower", a, b);
	if (a & 1)
		throw static_cast<int>(b);
	return a;
}

struct guard {
	uint64_t &out;
	~guard() { out = out + 1; }
};

uint64_t bare(uint64_t a, uint64_t b)
{
	enter("bare", a, b);
	uint64_t r = thrower(a, b + 1);
	asm volatile("" : "+r"(r));
	return r;
}

static uint64_t cleanups;

uint64_t middle(uint64_t a, uint64_t b)
{
	enter("middle", a, b);
	guard g{ cleanups };
	uint64_t r = a & 2 ? bare(a, b) : thrower(a, b);
	asm volatile("" : "+r"(r));
	return r + 5;
}

uint64_t rethrows(uint64_t a, uint64_t b)
{
	enter("rethrows", a, b);
	try {
		uint64_t r = middle(a, b);
		asm volatile("" : "+r"(r));
		return r;
	} catch (int &x) {
		x++;
		throw;
	}
}

uint64_t outer(uint64_t a, uint64_t b)
{
	enter("outer", a, b);
	try {
		uint64_t r = a & 4 ? rethrows(a, b) : middle(a, b);
		asm volatile("" : "+r"(r));
		return r;
	} catch (int x) {
		return x + cleanups * 0 + 1000;
	}
}

}
