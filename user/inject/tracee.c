// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a thread of another process call functions, on x86-64. A call returns to an address without memory, which
 * faults and so stops the thread: no breakpoint is written anywhere. During a call all signals that can be blocked are
 * blocked, so they stay pending in the kernel.
 *
 * Stops for a signal and for PTRACE_INTERRUPT happen on the kernel's return path from a system call: when the thread
 * continues, the kernel reads orig_rax and rax to find out whether a call was interrupted and has to be restarted.
 * With all registers restored the kernel does what it would have done anyway.
 */
#include "inject/tracee.h"
#include "util/array.h"
#include "util/file.h"
#include "util/timing.h"

#include <asm/unistd.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_NS	     3000000000ULL /* time limit for a thread to stop, for which it needs a CPU on a busy machine */
#define POLL_NS	     50000
#define POLL_MAX_NS  1000000
#define USER_CS	     0x33 /* __USER_CS: 64-bit code */
#define RED_ZONE     128
#define RETURN_TO    0x5d /* in the lowest page, which can't be mapped (vm.mmap_min_addr) */
#define KERNEL_SIGS  (bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGFPE) | bit(SIGTRAP) | bit(SIGSYS))
#define ERESTART_MIN 512 /* include/linux/errno.h: ERESTARTSYS .. ERESTART_RESTARTBLOCK */
#define ERESTART_MAX 516

static u64 bit(int sig)
{
	return 1ULL << (sig - 1);
}

static int request(const struct tracee *t, int what, u64 addr, void *data)
{
	/* the system call itself, because libc's ptrace() requires a value of its own enumeration */
	return syscall(SYS_ptrace, what, t->tid, addr, data) < 0 ? -errno : 0;
}

/* Waits for the next stop. Returns 0 and its status, -ESRCH, or -ETIMEDOUT. */
static int wait_for(struct tracee *t, u64 limit_ns, int *status)
{
	u64 began = timing__now(), now = began, end = began + limit_ns, pause_ns;

	for (;;) {
		pid_t pid = waitpid((pid_t)t->tid, status, __WALL | WNOHANG);

		if (pid < 0 && errno != EINTR)
			return -ESRCH;
		if (pid > 0) {
			if (!WIFSTOPPED(*status)) {
				t->seized = false;
				return -ESRCH;
			}
			t->stopped = true;
			t->stopped_since = now;
			t->at_signal = !(*status >> 16);
			return 0;
		}
		now = timing__now();
		if (now >= end)
			return -ETIMEDOUT;
		/* the pauses get longer, as a thread may wait for a lock for a long time */
		pause_ns = (now - began) / 32;
		pause_ns = pause_ns < POLL_NS ? POLL_NS : pause_ns > POLL_MAX_NS ? POLL_MAX_NS : pause_ns;
		nanosleep(&(struct timespec){ .tv_nsec = (long)pause_ns }, NULL);
	}
}

static int resume(struct tracee *t, int sig)
{
	t->stopped = false;
	t->stopped_ns += timing__now() - t->stopped_since;
	return request(t, PTRACE_CONT, 0, (void *)(long)sig);
}

static int get_regs(const struct tracee *t, struct user_regs_struct *regs)
{
	struct iovec v = { regs, sizeof(*regs) };

	return request(t, PTRACE_GETREGSET, NT_PRSTATUS, &v);
}

static int set_regs(const struct tracee *t, const struct user_regs_struct *regs)
{
	struct iovec v = { (void *)regs, sizeof(*regs) };

	return request(t, PTRACE_SETREGSET, NT_PRSTATUS, &v);
}

int tracee__seize(struct tracee *t, u32 pid, u32 tid)
{
	int err, status;

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->tid = tid;
	/* after an exec by another thread this is another program: the saved registers must not be restored then */
	err = request(t, PTRACE_SEIZE, 0, (void *)PTRACE_O_TRACEEXEC);
	if (err)
		return err;
	t->seized = true;
	t->held_since = timing__now();
	err = request(t, PTRACE_INTERRUPT, 0, NULL);
	if (!err)
		err = wait_for(t, STOP_NS, &status);
	/* a pending signal: deliver it to the thread, which is interrupted again after it */
	for (int i = 0; !err && status >> 16 != PTRACE_EVENT_STOP && i < 100; i++) {
		if (status >> 16)
			return -ESRCH;
		err = resume(t, WSTOPSIG(status));
		if (!err)
			err = wait_for(t, STOP_NS, &status);
	}
	/* the process was stopped (SIGSTOP) at the same moment */
	if (!err && WSTOPSIG(status) != SIGTRAP)
		err = -EAGAIN;
	if (!err)
		err = get_regs(t, &t->regs);
	return err || t->regs.cs == USER_CS ? err : -ENOEXEC;
}

static bool interrupted(const struct tracee *t)
{
	long long error = -(long long)t->regs.rax;

	return (long long)t->regs.orig_rax >= 0 && (error == EINTR || (error >= ERESTART_MIN && error <= ERESTART_MAX));
}

bool tracee__sleeps(const struct tracee *t)
{
	static const u16 calls[] = {
		__NR_read,
		__NR_readv,
		__NR_poll,
		__NR_ppoll,
		__NR_select,
		__NR_pselect6,
		__NR_epoll_wait,
		__NR_epoll_pwait,
		__NR_nanosleep,
		__NR_clock_nanosleep,
		__NR_pause,
		__NR_accept,
		__NR_accept4,
		__NR_recvfrom,
		__NR_recvmsg,
		__NR_rt_sigsuspend,
		__NR_rt_sigtimedwait,
		__NR_wait4,
		__NR_waitid,
		__NR_futex,
		__NR_restart_syscall,
		__NR_epoll_pwait2,
		__NR_io_getevents,
		__NR_semop,
		__NR_semtimedop,
		__NR_msgrcv,
		__NR_write,
		__NR_sendto,
		__NR_sendmsg,
		__NR_flock,
	};

	for (u32 i = 0; interrupted(t) && i < ARRAY_LEN(calls); i++)
		if (t->regs.orig_rax == calls[i])
			return true;
	return false;
}

/* Will a signal be handled when the thread continues? "SigPnd:\t0000000000000000" */
static bool signal_waits(const struct tracee *t)
{
	unsigned long long thread, process;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", t->pid, t->tid);
	return !file__scan(path, 1, "SigPnd: %llx", &thread) || !file__scan(path, 1, "ShdPnd: %llx", &process) ||
	       t->pending_signal || ((thread | process) & ~t->mask);
}

/*
 * Some calls fail with EINTR after any interruption (signal(7)): epoll_wait, semop and a few more. If only sonde
 * interrupted them, they are restarted, with their full timeout.
 */
static void restart_refused(struct tracee *t)
{
	static const u16 calls[] = { __NR_epoll_wait,	   __NR_epoll_pwait,  __NR_epoll_pwait2, __NR_semop,
				     __NR_semtimedop,	   __NR_io_getevents, __NR_recvfrom,	 __NR_recvmsg,
				     __NR_rt_sigtimedwait, __NR_accept,	      __NR_accept4,	 __NR_sendto,
				     __NR_sendmsg,	   __NR_read,	      __NR_write,	 __NR_msgrcv };

	if (!interrupted(t) || (long long)t->regs.rax != -EINTR || signal_waits(t))
		return;
	for (u32 i = 0; i < ARRAY_LEN(calls); i++)
		if (t->regs.orig_rax == calls[i]) {
			t->regs.rax = t->regs.orig_rax;
			t->regs.orig_rax = ~0ULL;
			t->regs.rip -= 2;
			return;
		}
}

int tracee__borrow(struct tracee *t)
{
	struct iovec v = { t->xstate, sizeof(t->xstate) };
	u64 mask = ~KERNEL_SIGS;
	int err = request(t, PTRACE_GETREGSET, NT_X86_XSTATE, &v);

	if (!err && v.iov_len == sizeof(t->xstate))
		err = -E2BIG;
	if (!err)
		err = request(t, PTRACE_GETSIGMASK, sizeof(t->mask), &t->mask);
	if (err)
		return err;
	t->xstate_size = v.iov_len;
	err = request(t, PTRACE_SETSIGMASK, sizeof(mask), &mask);
	t->changed = !err;
	return err;
}

/*
 * Handles a stop during a call. Returns 0: continue, with the signal in *pass, 1: the call has returned, or negative
 * errno.
 */
static int judge(struct tracee *t, int status, u64 stack, u64 *result, int *pass)
{
	int sig = WSTOPSIG(status), err;
	struct user_regs_struct regs;
	siginfo_t info;

	if (status >> 16 == PTRACE_EVENT_EXEC) {
		t->changed = false;
		return -ESRCH;
	}
	/* a traced thread continues in a stopped process, and stops when it is released */
	*pass = !(status >> 16) && sig == SIGSTOP ? SIGSTOP : 0;
	if (status >> 16 || *pass)
		return 0;
	err = request(t, PTRACE_GETSIGINFO, 0, &info);
	if (!err)
		err = get_regs(t, &regs);
	if (err)
		return err;
	if (sig == SIGSEGV && regs.rip == RETURN_TO && regs.rsp == stack + 8) {
		*result = regs.rax;
		return 1;
	}
	if ((bit(sig) & KERNEL_SIGS) && info.si_code > 0)
		return -EFAULT;
	/* another process sent a signal that can't be blocked: it is delivered to the thread at the end */
	if (!t->pending_signal) {
		t->pending_signal = sig;
		t->pending = info;
	}
	return 0;
}

int tracee__call(struct tracee *t, u64 function, const u64 *args, u32 n, u64 stack, u64 limit_ns, u64 *result)
{
	u64 end = timing__now() + limit_ns, now, to = RETURN_TO;
	struct user_regs_struct regs = t->regs;
	unsigned long long *const places[] = { &regs.rdi, &regs.rsi, &regs.rdx, &regs.rcx, &regs.r8, &regs.r9 };
	int err, status, pass = 0;

	/* above this address the function may read arguments that are passed on the stack */
	stack = (((stack ? stack : t->regs.rsp) - RED_ZONE) & ~15ULL) - 8;
	for (u32 i = 0; i < n; i++)
		*places[i] = args[i];
	regs.rip = function;
	regs.rsp = stack;
	regs.rax = 0; /* for variadic functions: no arguments in vector registers */
	regs.orig_rax = ~0ULL; /* no system call was interrupted */
	regs.eflags &= ~0x400ULL; /* the ABI requires a clear direction flag */
	err = request(t, PTRACE_POKEDATA, stack, (void *)to);
	if (!err)
		err = set_regs(t, &regs);
	for (;;) {
		if (!err)
			err = resume(t, pass);
		now = timing__now();
		if (!err)
			err = wait_for(t, now < end ? end - now : 0, &status);
		if (err == -ETIMEDOUT) {
			/* the thread is restored to its old state: the call is abandoned */
			if (!request(t, PTRACE_INTERRUPT, 0, NULL) && !wait_for(t, STOP_NS, &status) &&
			    status >> 16 == PTRACE_EVENT_EXEC) {
				/* the registers of the old program are not written to a new one, which may be setuid */
				t->changed = false;
				err = -ESRCH;
			}
			return err;
		}
		if (!err)
			err = judge(t, status, stack, result, &pass);
		if (err)
			return err < 0 ? err : 0;
	}
}

static void restore(struct tracee *t)
{
	struct iovec v = { t->xstate, t->xstate_size };

	restart_refused(t);
	request(t, PTRACE_SETREGSET, NT_X86_XSTATE, &v);
	set_regs(t, &t->regs);
	request(t, PTRACE_SETSIGMASK, sizeof(t->mask), &t->mask);
	t->changed = false;
}

u64 tracee__release(struct tracee *t)
{
	int sig = t->pending_signal;
	u64 held;

	if (!t->seized)
		return 0;
	if (t->stopped && t->changed)
		restore(t);
	if (sig && t->stopped && t->at_signal && request(t, PTRACE_SETSIGINFO, 0, &t->pending))
		sig = 0;
	/* before its release, because after it the tid may be reused */
	if (sig && !t->at_signal)
		syscall(SYS_tgkill, t->pid, t->tid, sig);
	/* a running thread can't be released: the kernel does that when this process ends */
	request(t, PTRACE_DETACH, 0, (void *)(long)(t->at_signal ? sig : 0));
	held = timing__now() - t->held_since;
	if (t->stopped)
		t->stopped_ns += timing__now() - t->stopped_since;
	t->seized = t->stopped = false;
	return held;
}
