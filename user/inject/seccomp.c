// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads the filters (PTRACE_SECCOMP_GET_FILTER) and evaluates them for the calls in question, as the kernel would:
 * most containers have a filter that allows these calls, and a few programs have one that kills at the first.
 */
#include "inject/seccomp.h"

#include "process/procs.h"
#include "util/array.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTERS_MAX 64
#ifndef __NR_rseq
#define __NR_rseq 334
#endif

/*
 * The calls that dlopen, the library's constructor and its thread make. `must`: even an error result would make
 * loading fail.
 */
static const struct call {
	u16 nr;
	bool must;
	u64 args[4];
	const char *name;
} calls[] = {
	{ __NR_openat, true, { (u32)-100, 0, 0x80000 }, "openat" },
	{ __NR_read, true, { 3 }, "read" },
	{ __NR_pread64, true, { 3 }, "pread64" },
	{ __NR_newfstatat, true, { 3, 0, 0, 0x1000 }, "newfstatat" },
	{ __NR_mmap, true, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED }, "mmap" },
	{ __NR_mprotect, true, { 0, 4096, PROT_READ }, "mprotect" },
	{ __NR_munmap, true, { 0, 4096 }, "munmap" },
	{ __NR_madvise, false, { 0, 4096, 10 }, "madvise" },
	{ __NR_close, true, { 3 }, "close" },
	{ __NR_brk, false, { 0 }, "brk" },
	{ __NR_futex, true, { 0, 128 }, "futex" },
	{ __NR_rt_sigprocmask, true, { 2, 0, 0, 8 }, "rt_sigprocmask" },
	{ __NR_clone3, false, { 0, 88 }, "clone3" },
	{ __NR_clone,
	  true,
	  { CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM },
	  "clone" },
	{ __NR_set_robust_list, false, { 0, 24 }, "set_robust_list" },
	{ __NR_rseq, false, { 0, 32 }, "rseq" },
	{ __NR_prctl, false, { 15 }, "prctl" },
	{ __NR_prctl, false, { 29 }, "prctl" },
	{ __NR_memfd_create, false, { 0, 3 }, "memfd_create" },
	{ __NR_write, false, { 3 }, "write" },
	{ __NR_fcntl, false, { 3, 1033, 15 }, "fcntl" },
	{ __NR_fcntl, false, { 3, 1030, 200 }, "fcntl" },
	{ __NR_getrandom, false, { 0, 8 }, "getrandom" },
	{ __NR_gettid, false, {}, "gettid" },
	{ __NR_clock_nanosleep, false, { 1 }, "clock_nanosleep" },
	{ __NR_exit, false, {}, "exit" },
};

static bool jump(const struct sock_filter *f, u32 a, u32 x)
{
	u32 with = BPF_SRC(f->code) == BPF_X ? x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == with;
	case BPF_JGT:
		return a > with;
	case BPF_JGE:
		return a >= with;
	case BPF_JSET:
		return a & with;
	}
	return false;
}

static u32 compute(const struct sock_filter *f, u32 a, u32 x)
{
	u32 with = BPF_SRC(f->code) == BPF_X ? x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_ADD:
		return a + with;
	case BPF_SUB:
		return a - with;
	case BPF_MUL:
		return a * with;
	case BPF_DIV:
		return with ? a / with : 0;
	case BPF_OR:
		return a | with;
	case BPF_AND:
		return a & with;
	case BPF_XOR:
		return a ^ with;
	case BPF_LSH:
		return with < 32 ? a << with : 0;
	case BPF_RSH:
		return with < 32 ? a >> with : 0;
	case BPF_NEG:
		return -a;
	}
	return a;
}

static u32 load(const struct sock_filter *f, const struct seccomp_data *data, const u32 *memory)
{
	u32 word = 0;

	switch (BPF_MODE(f->code)) {
	case BPF_IMM:
		return f->k;
	case BPF_LEN:
		return sizeof(*data);
	case BPF_MEM:
		return f->k < BPF_MEMWORDS ? memory[f->k] : 0;
	case BPF_ABS:
		if (f->k <= sizeof(*data) - sizeof(word))
			memcpy(&word, (const char *)data + f->k, sizeof(word));
	}
	return word;
}

/* The loop ends, because jumps only lead forward. */
u32 seccomp__run(const struct sock_filter *filter, u32 n, const struct seccomp_data *data)
{
	u32 a = 0, x = 0, memory[BPF_MEMWORDS] = {};

	for (u32 i = 0; i < n; i++) {
		const struct sock_filter *f = &filter[i];

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			a = load(f, data, memory);
			break;
		case BPF_LDX:
			x = load(f, data, memory);
			break;
		case BPF_ST:
		case BPF_STX:
			if (f->k < BPF_MEMWORDS)
				memory[f->k] = BPF_CLASS(f->code) == BPF_ST ? a : x;
			break;
		case BPF_ALU:
			a = compute(f, a, x);
			break;
		case BPF_JMP:
			if (BPF_OP(f->code) == BPF_JA)
				i += f->k < n ? f->k : n;
			else
				i += jump(f, a, x) ? f->jt : f->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(f->code) == BPF_A ? a : f->k;
		case BPF_MISC:
			if (BPF_MISCOP(f->code) == BPF_TAX)
				x = a;
			else
				a = x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static int judge(u32 action, const struct call *c, char *why, size_t len)
{
	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
		return 0;
	case SECCOMP_RET_ERRNO:
		if (!c->must)
			return 0;
		snprintf(why, len, "its seccomp filter does not let it call %s, which loading a library requires",
			 c->name);
		return -EPERM;
	case SECCOMP_RET_KILL_PROCESS:
	case SECCOMP_RET_KILL_THREAD:
	case SECCOMP_RET_TRAP:
		snprintf(why, len, "its seccomp filter would kill it for %s, which loading a library requires",
			 c->name);
		return -EPERM;
	}
	snprintf(why, len, "its seccomp filter asks another process about %s, which loading a library requires",
		 c->name);
	return -EPERM;
}

/* Reads the ith filter. Returns the number of its instructions, 0 if there is none, or negative errno. */
static int get_filter(const struct tracee *t, u32 i, struct sock_filter *to)
{
	long n = syscall(SYS_ptrace, PTRACE_SECCOMP_GET_FILTER, t->tid, (unsigned long)i, to);

	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	return n;
}

int seccomp__check(const struct tracee *t, char *why, size_t len)
{
	static struct sock_filter filter[BPF_MAXINSNS];
	u64 mode = procs__status(t->tid, "Seccomp: %llu");

	if (mode == 1) {
		snprintf(why, len, "it is in seccomp's strict mode, which kills it for anything but read and write");
		return -EPERM;
	}
	if (!mode)
		return 0;
	for (u32 i = 0; i < FILTERS_MAX; i++) {
		int n = get_filter(t, i, filter), err = 0;

		if (!n)
			return 0;
		if (n < 0) {
			snprintf(
				why, len,
				"it has a seccomp filter that can't be read (%s) and may kill it for a call that loading a library "
				"requires; --force loads it nevertheless",
				strerror(-n));
			return -EACCES;
		}
		for (u32 k = 0; k < ARRAY_LEN(calls) && !err; k++) {
			struct seccomp_data data = { .nr = calls[k].nr, .arch = AUDIT_ARCH_X86_64 };

			memcpy(data.args, calls[k].args, sizeof(calls[k].args));
			err = judge(seccomp__run(filter, n, &data), &calls[k], why, len);
		}
		if (err)
			return err;
	}
	return 0;
}
