// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A library that looks like CPython to gil_find.h: calls of several shapes that match, and some that don't. */
#include <errno.h>
#include <pthread.h>

struct gil {
	unsigned long interval;
	void *last_holder;
	int locked;
	unsigned long switch_number;
	pthread_cond_t cond;
	pthread_mutex_t mutex;
} _PyRuntime;

void PyEval_RestoreThread(void *state);
int other_errno(void);
void looks_like_it(void);
void side(int);

static __attribute__((noinline)) void take_gil(struct gil *g, void *state)
{
	struct timespec t = { 0, 0 };

	while (g->locked) {
		int r = pthread_cond_timedwait(&g->cond, &g->mutex, &t);

		if (r == ETIMEDOUT && g->locked) {
			side(1);
#ifdef FAR_JUMP
			/* more code than a short jump can cross */
			__asm__ volatile(".skip 300, 0x90");
#endif
			continue;
		}
		if (r)
			side(r);
	}
	g->locked = 1;
	g->last_holder = state;
}

void PyEval_RestoreThread(void *state)
{
	take_gil(&_PyRuntime, state);
	side(0);
}

/* the call, but compared with another error */
int other_errno(void)
{
	struct timespec t = { 0, 0 };

	if (pthread_cond_timedwait(&_PyRuntime.cond, &_PyRuntime.mutex, &t) == EINVAL)
		side(2);
	return 0;
}

/* the bytes of the whole pattern in the constant of another instruction */
void looks_like_it(void)
{
#ifndef __PIC__
#error "to be built with -fPIC"
#endif
	__asm__ volatile("jmp 1f\n"
			 ".byte 0x48, 0xb8\n" /* movabs $..., %rax: the five bytes of a call, then the comparison */
			 "call pthread_cond_timedwait@plt\n"
			 ".byte 0x83, 0xf8, 0x6e\n"
			 ".byte 0x74, 0x00\n"
			 "1:\n" ::
				 : "rax");
}

void side(int what)
{
	__asm__ volatile("" ::"r"(what) : "memory");
}
