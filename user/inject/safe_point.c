// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dlopen() takes locks of the loader and of malloc. Another thread that holds one of them is not stopped, and will
 * release it. But the thread that is to call dlopen() must not hold one itself. So its stack is unwound, by the files'
 * .eh_frame, and none of its frames may be in the loader, in an allocator or in a function of libc that holds a lock
 * which dlopen() or the library's constructor takes.
 *
 * If the unwinding does not reach the end of the stack (code generated at run time has no tables), each value in the
 * next 64 KiB of the stack that looks like a return address into such a function counts as a frame.
 */
#include "inject/safe_point.h"

#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX	128
#define STACK_SCANNED	(64 * 1024)
#define PAGE_BYTES	4096
#define MALLOC_BELOW	16384 /* malloc.c's static functions come before its public ones */
#define MALLOC_SPAN_MAX 65536

/* Sorted, as foreign_file__find_symbols requires. */
static const char *const dangerous[] = {
	"__cxa_atexit",
	"__libc_fork",
	"__register_atfork",
	"_exit",
	"aligned_alloc",
	"atexit",
	"calloc",
	"cfree",
	"dl_iterate_phdr",
	"dladdr",
	"dladdr1",
	"dlclose",
	"dlinfo",
	"dlopen",
	"dlsym",
	"dlvsym",
	"exit",
	"fork",
	"free",
	"mallinfo",
	"mallinfo2",
	"malloc",
	"malloc_info",
	"malloc_stats",
	"malloc_trim",
	"malloc_usable_size",
	"memalign",
	"posix_memalign",
	"pthread_atfork",
	"pthread_create",
	"pthread_exit",
	"pvalloc",
	"quick_exit",
	"realloc",
	"reallocarray",
	"valloc",
	"vfork",
};
#define DANGEROUS ARRAY_LEN(dangerous)
_Static_assert(DANGEROUS < SPACE_DANGERS,
	       "a file has a danger for each of these functions, and one for all code of malloc");
_Static_assert(DANGEROUS <= FOREIGN_SYMBOLS, "they are looked up by one request");

static bool is_malloc(const char *name)
{
	static const char *const names[] = { "malloc", "calloc", "free", "realloc", "memalign", "malloc_trim" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/*
 * Returns whether it is unknown which of the functions the file has. Two errors say that it has none: -EINVAL if it is
 * not a regular file, and -ENOEXEC if it is not an ELF file. All others say nothing about the file.
 */
static bool is_unknown(const struct code *c, int err)
{
	return err && err != (c->fd < 0 ? -EINVAL : -ENOEXEC);
}

static void add_dangers(struct code *c, const struct elf_symbol *found)
{
	u64 low = ~0ULL, high = 0;

	for (u32 i = 0; i < DANGEROUS; i++) {
		u64 start = found[i].addr + c->bias;

		if (!found[i].name || !found[i].function)
			continue;
		c->dangers[c->n_dangers++] = (struct danger){ start, start + (found[i].size ? found[i].size : 16) };
		if (!is_malloc(found[i].name))
			continue;
		low = start < low ? start : low;
		high = start + found[i].size > high ? start + found[i].size : high;
	}
	/* their static helpers have no symbols here */
	if (high > low && high - low < MALLOC_SPAN_MAX)
		c->dangers[c->n_dangers++] = (struct danger){ low - MALLOC_BELOW, high };
}

/* After a file's first timeout the next call searches it again; after the second one code__open() fails at once. */
static void find_dangers(struct space *s, struct code *c)
{
	struct elf_symbol found[DANGEROUS];
	int err;

	if (c->searched)
		return;
	err = code__open(s, c) ? foreign_file__find_symbols(&c->file, dangerous, DANGEROUS, found) : c->error;
	c->searched = err != -ETIMEDOUT;
	c->unknown = is_unknown(c, err) ? err : 0;
	if (!err)
		add_dangers(c, found);
}

bool safe_point__prepare(struct space *s)
{
	for (u32 i = 0; i < s->n; i++) {
		find_dangers(s, &s->codes[i]);
		/* searches the file a second time after a timeout; otherwise the answer is known by now */
		find_dangers(s, &s->codes[i]);
		if (space__is_late(s))
			return false;
	}
	return true;
}

struct danger_found {
	const char *file;
	int unknown; /* negative errno: the file's functions are unknown; 0: the address is in a dangerous function */
	bool unopened; /* unknown since the file can't be opened */
};

/* Is this address in code that must not be interrupted by a call? */
static bool is_danger(struct space *s, u64 addr, struct danger_found *at)
{
	static const char *const whole[] = { "ld-linux",    "ld-2.",   "libjemalloc", "libtcmalloc",
					     "libmimalloc", "libasan", "libtsan",     "libclang_rt" };
	struct code *c = space__at(s, addr);

	if (!c)
		return false;
	*at = (struct danger_found){ .file = code__name(c) };
	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (!strncmp(at->file, whole[i], strlen(whole[i])))
			return true;
	find_dangers(s, c);
	at->unknown = c->unknown;
	at->unopened = c->fd < 0;
	if (c->unknown)
		return true;
	for (u32 i = 0; i < c->n_dangers; i++)
		if (addr >= c->dangers[i].start && addr < c->dangers[i].end)
			return true;
	return false;
}

struct frame {
	u64 pc, sp, bp;
	bool first;
};

/* Unwinds a signal frame: takes the registers of the interrupted code from its ucontext. */
static bool unwind_signal_frame(struct space *s, struct frame *f)
{
	static const u8 restorer[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	u8 text[sizeof(restorer)];
	u64 gregs[23]; /* arch/x86/include/uapi/asm/sigcontext.h, from offset 40 of the ucontext */

	if (!space__copy(s, f->pc, text, sizeof(text)) || memcmp(text, restorer, sizeof(text)) ||
	    !space__copy(s, f->sp + 40, gregs, sizeof(gregs)))
		return false;
	*f = (struct frame){ .pc = gregs[16], .sp = gregs[15], .bp = gregs[10], .first = true };
	return true;
}

/* Unwinds to the caller. Returns 1: done, 0: this was the outermost frame, -1: unknown. */
static int step(struct space *s, struct frame *f)
{
	struct code *c = space__at(s, f->pc);
	struct elf_unwind u;
	u64 cfa;

	if (unwind_signal_frame(s, f))
		return 1;
	if (!c || !code__open(s, c) || foreign_file__unwind(&c->file, f->pc - c->bias - !f->first, &u))
		return -1;
	if (u.outermost)
		return 0;
	cfa = (u.by_frame_pointer ? f->bp : f->sp) + (u64)(s64)u.cfa;
	if (cfa <= f->sp || !space__copy(s, cfa - 8, &f->pc, 8))
		return -1;
	if (u.saved && !space__copy(s, cfa + (u64)(s64)u.frame_pointer, &f->bp, 8))
		return -1;
	f->sp = cfa;
	f->first = false;
	return f->pc ? 1 : 0;
}

/* Does a call instruction end at this address? x86: e8 rel32, or ff /2 with its operand forms. */
static bool follows_call(struct space *s, u64 addr)
{
	u8 b[8];

	if (!space__copy(s, addr - sizeof(b), b, sizeof(b)))
		return false;
	return b[3] == 0xe8 || (b[6] == 0xff && (b[7] & 0x38) == 0x10) || (b[5] == 0xff && (b[6] & 0x38) == 0x10) ||
	       (b[4] == 0xff && (b[5] & 0x38) == 0x10) || (b[2] == 0xff && (b[3] & 0x38) == 0x10) ||
	       (b[1] == 0xff && (b[2] & 0x38) == 0x10);
}

/* Reads at most a page at a time, as the one after the stack can't be read. A stack that can't be read is a danger. */
static bool scan_stack(struct space *s, u64 sp, struct danger_found *at_danger)
{
	u64 words[PAGE_BYTES / sizeof(u64)], size;
	struct danger_found in;

	for (u64 at = sp & ~7ULL; at < sp + STACK_SCANNED; at += size) {
		size = PAGE_BYTES - at % PAGE_BYTES;
		if (!space__copy(s, at, words, size)) {
			*at_danger = (struct danger_found){ .file = "a function that holds a lock" };
			return at <= sp;
		}
		for (u32 i = 0; i < size / sizeof(u64); i++)
			if (space__at(s, words[i]) && is_danger(s, words[i], &in) && follows_call(s, words[i])) {
				*at_danger = in;
				return true;
			}
	}
	return false;
}

/* Is the thread in a private function of libc, one without a public name? It may hold any lock of libc. */
static bool is_nameless(struct space *s, u64 pc)
{
	struct code *c = space__at(s, pc);

	if (!c || strncmp(code__name(c), "libc.so", 7) || !code__open(s, c))
		return false;
	return !foreign_file__is_exported(&c->file, pc - c->bias);
}

static bool refuse(const struct tracee *t, const struct danger_found *at, bool unwound, char *why, size_t len)
{
	const char *may_be = unwound ? "is" : "may be";

	if (at->unknown && at->unopened)
		snprintf(why, len,
			 "thread %u %s inside %.64s, where it may hold a lock: the file could not be opened "
			 "(%s)%s",
			 t->tid, may_be, at->file,
			 at->unknown == -EREMOTE ? "its server may never answer" : strerror(-at->unknown),
			 at->unknown == -EREMOTE ? "; --remote-files opens it" :
			 geteuid()		 ? "; sonde run by root may open it" :
						   "");
	else if (at->unknown)
		snprintf(why, len,
			 "thread %u %s inside %.64s, where it may hold a lock: sonde's child that parses the "
			 "file did not answer (%s)",
			 t->tid, may_be, at->file, strerror(-at->unknown));
	else
		snprintf(why, len, "thread %u %s inside %.64s%s", t->tid, may_be, at->file,
			 unwound ? " (the loader, an allocator, or a function that holds a lock)" :
				   ": its stack can't be unwound");
	return false;
}

bool safe_point__is_safe(struct space *s, const struct tracee *t, char *why, size_t len)
{
	struct frame f = { tracee__pc(t), tracee__sp(t), tracee__frame_pointer(t), true };
	struct danger_found at;
	int more = 1;

	if (!tracee__sleeps(t) && is_nameless(s, f.pc)) {
		snprintf(why, len, "thread %u runs in an internal function of the C library, where it may hold a lock",
			 t->tid);
		return false;
	}
	for (u32 i = 0; i < FRAMES_MAX && more > 0; i++) {
		if (is_danger(s, f.pc - !f.first, &at))
			return refuse(t, &at, true, why, len);
		more = step(s, &f);
	}
	if (more && scan_stack(s, f.sp, &at))
		return refuse(t, &at, false, why, len);
	if (space__is_late(s)) {
		snprintf(why, len, "unwinding the stack of thread %u took too long, so the thread was released",
			 t->tid);
		return false;
	}
	return true;
}
