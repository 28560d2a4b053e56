// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spends CPU time in three functions with shares 70/20/10, measured by the thread's CPU
 * clock, or sleeps for known times in them: native_work cpu|sleep SECONDS. Built with frame
 * pointers. Prints "NAME NANOSECONDS" lines, for sleeps followed by their CPU time.
 *
 * native_work popped SECONDS: spends the time between a function's pop of the caller's frame pointer and its return.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;

static unsigned long long now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static unsigned long long spent[4], cpu[4];

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

#define WORK(name, index, clock, what)                                \
	__attribute__((noinline)) static void name(void)              \
	{                                                             \
		unsigned long long start = now(clock);                \
		unsigned long long on = now(CLOCK_THREAD_CPUTIME_ID); \
		what;                                                 \
		cpu[index] += now(CLOCK_THREAD_CPUTIME_ID) - on;      \
		spent[index] += now(clock) - start;                   \
	}

WORK(seventy, 0, CLOCK_THREAD_CPUTIME_ID, burn(round_size / 10 * 7))
WORK(twenty, 1, CLOCK_THREAD_CPUTIME_ID, burn(round_size / 10 * 2))
WORK(ten, 2, CLOCK_THREAD_CPUTIME_ID, deep(100, round_size / 10))

#ifdef __x86_64__
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
#else
static void popped(unsigned long n)
{
	burn(n);
}
#endif

__attribute__((noinline)) static void calls_popped(unsigned long long end)
{
	while (now(CLOCK_MONOTONIC) < end)
		popped(1000000);
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

WORK(long_nap, 0, CLOCK_MONOTONIC, nap(70))
WORK(short_nap, 1, CLOCK_MONOTONIC, nap(20))
WORK(tiny_nap, 2, CLOCK_MONOTONIC, nap(10))

int main(int argc, char **argv)
{
	const char *names[2][3] = { { "seventy", "twenty", "ten" }, { "long_nap", "short_nap", "tiny_nap" } };
	int sleeps = argc > 1 && !strcmp(argv[1], "sleep");
	unsigned long long end;
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	end = now(CLOCK_MONOTONIC) + (unsigned long long)(atof(argc > 2 ? argv[2] : "1") * 1e9);
	if (argc > 1 && !strcmp(argv[1], "popped"))
		calls_popped(end);
	while (now(CLOCK_MONOTONIC) < end) {
		if (sleeps) {
			long_nap();
			short_nap();
			tiny_nap();
		} else {
			draw_round_size();
			seventy();
			twenty();
			ten();
		}
	}
	for (int i = 0; i < 3; i++)
		if (sleeps)
			printf("%s %llu %llu\n", names[sleeps][i], spent[i], cpu[i]);
		else
			printf("%s %llu\n", names[sleeps][i], spent[i]);
	return 0;
}
