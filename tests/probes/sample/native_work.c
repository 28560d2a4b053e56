// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spends CPU time in three functions with shares 70/20/10, measured by the thread's CPU
 * clock: native_work cpu SECONDS, of CPU time. Built with frame pointers. Prints "NAME NANOSECONDS" lines.
 *
 * native_work sleep ROUNDS: sleeps in three functions, and prints "NAME START END CPU SWITCHES" for each sleep: the CPU
 * time, and how often the thread lost the CPU.
 *
 * native_work popped SECONDS: spends the time between a function's pop of the caller's frame pointer and its return.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static volatile unsigned long sink;

static unsigned long long now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static unsigned long long spent[3];

__attribute__((noinline)) static void burn(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * i;
}

/* Recursion with more frames than the copied part of a stack has. */
__attribute__((noinline)) static void deep(int depth, unsigned long n)
{
	volatile char room[64];

	room[0] = depth;
	if (depth)
		deep(depth - 1, n);
	else
		burn(n);
	sink += room[0];
}

/* Rounds differ by more than a sampling period, as rounds of equal length could synchronize with the clock. */
static unsigned long round_size;

static void draw_round_size(void)
{
	static unsigned int drawn = 1;

	drawn = (drawn * 1103515245 + 12345) & 0x7fffffff;
	round_size = 500000 + drawn % 1000000;
}

#define WORK(name, index, what)                                          \
	__attribute__((noinline)) static void name(void)                 \
	{                                                                \
		unsigned long long start = now(CLOCK_THREAD_CPUTIME_ID); \
		what;                                                    \
		spent[index] += now(CLOCK_THREAD_CPUTIME_ID) - start;    \
	}

WORK(seventy, 0, burn(round_size / 10 * 7))
WORK(twenty, 1, burn(round_size / 10 * 2))
WORK(ten, 2, deep(100, round_size / 10))

/* As compilers generate it, the unwind table refers to the frame pointer's slot up to the return. */
void popped(unsigned long n);
__asm__(".text\n"
	".type popped, @function\n"
	"popped:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa rsp, 8\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size popped, . - popped\n");

__attribute__((noinline)) static void calls_popped(unsigned long long end)
{
	while (now(CLOCK_MONOTONIC) < end)
		popped(1000000);
}

static long switches(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw + used.ru_nivcsw;
}

#define SLEEP(name, ms)                                                                                  \
	__attribute__((noinline)) static void name(void)                                                 \
	{                                                                                                \
		long before = switches();                                                                \
		unsigned long long start = now(CLOCK_MONOTONIC), on = now(CLOCK_THREAD_CPUTIME_ID), end; \
		nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);                          \
		on = now(CLOCK_THREAD_CPUTIME_ID) - on;                                                  \
		end = now(CLOCK_MONOTONIC);                                                              \
		printf("%s %llu %llu %llu %ld\n", #name, start, end, on, switches() - before);           \
	}

SLEEP(long_nap, 70)
SLEEP(short_nap, 20)
SLEEP(tiny_nap, 10)

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "cpu";
	double number = atof(argc > 2 ? argv[2] : "1");
	unsigned long long ns = number * 1e9;
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (!strcmp(mode, "popped")) {
		calls_popped(now(CLOCK_MONOTONIC) + ns);
		return 0;
	}
	for (int i = 0; !strcmp(mode, "sleep") && i < number; i++) {
		long_nap();
		short_nap();
		tiny_nap();
	}
	if (strcmp(mode, "cpu"))
		return 0;
	while (now(CLOCK_PROCESS_CPUTIME_ID) < ns) {
		draw_round_size();
		seventy();
		twenty();
		ten();
	}
	printf("seventy %llu\ntwenty %llu\nten %llu\n", spent[0], spent[1], spent[2]);
	fflush(stdout);
	/* code that first runs at the exit may be gone before sonde has read it */
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
