// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/sandbox_private.h"
#include "util/array.h"

#include "sandbox/usage.h"
#include "util/sanitizer.h"
#include "util/test_switch.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECONDS_MAX 10 /* CPU time; libtorch needs 0.1 */
#define MEMORY_MAX  (1ULL << 30) /* the largest files with debug information need some hundred MiB */
#define ADDRESSES_MAX \
	(8ULL << 30) /* includes mapped files; limits the page tables, which no other limit counts, to 16 MiB */
#define FILES_MAX 160 /* record/examine/code.c has up to 64 files open, each with a debug file */
#define SOCKET_FD 0

/* Exits quietly; without this handler there would be a core dump and a line in the kernel log. */
static void crashed(int signal)
{
	_exit(1);
}

static void limit(int what, u64 max)
{
	struct rlimit l, now;

	l.rlim_cur = l.rlim_max = max;
	if (!getrlimit(what, &now) && now.rlim_max < max)
		l.rlim_cur = l.rlim_max = now.rlim_max;
	setrlimit(what, &l);
}

/*
 * Allows reading, memory (sysinfo: qsort asks for the memory size), messages and exit; any other system call fails.
 * MEMORY_MAX counts only private memory, without stacks and huge pages, so the filter refuses other kinds of
 * mappings.
 */
static int filter(void)
{
	static const u32 allowed[] = { SYS_pread64,    SYS_read,	  SYS_fstat,
				       SYS_lseek,      SYS_munmap,	  SYS_mremap,
				       SYS_brk,	       SYS_madvise,	  SYS_futex,
				       SYS_mprotect,   SYS_recvmsg,	  SYS_sendmsg,
				       SYS_close,      SYS_rt_sigreturn,  SYS_fcntl,
				       SYS_newfstatat, SYS_exit_group,	  SYS_exit,
				       SYS_sysinfo,    SYS_clock_gettime, SYS_sched_setscheduler };
	enum { N = ARRAY_LEN(allowed) };
	struct sock_filter code[N + 11] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	const struct sock_filter end[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		/* the low half of the argument, which has all flags; both architectures are little-endian */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_TYPE | MAP_GROWSDOWN | MAP_HUGETLB),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_PRIVATE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	enum { END = ARRAY_LEN(end) };
	struct sock_fprog program = { .len = 4 + N + END + 1, .filter = code };

	for (u32 i = 0; i < N; i++)
		code[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], N - 1 - i + END, 0);
	memcpy(code + 4 + N, end, sizeof(end));
	code[4 + N + END] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (test_switch__is_set("no-seccomp"))
		return -EINVAL;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ? -errno : 0;
}

/* Keeps only the socket. false: failed. */
static bool take_socket(int sock)
{
	usage__forget();
	if (dup2(sock, SOCKET_FD) < 0 || close_range(SOCKET_FD + 1, ~0u, 0))
		return false;
	prctl(PR_SET_NAME, "sonde-file");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return true;
}

/* Keeps no privilege. false: something could not be dropped. */
static bool confine(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	int err;

	for (u32 i = 0; i < ARRAY_LEN(signals); i++)
		signal(signals[i], crashed);
	/* these signals are meant for the process that reads the answers */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	limit(RLIMIT_CPU, SECONDS_MAX);
	limit(RLIMIT_RTPRIO, 0); /* util/priority.h */
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NOFILE, FILES_MAX);
	limit(RLIMIT_CORE, 0);
	if (syscall(SYS_capset, &head, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	if (SANITIZED) /* a sanitized program needs more memory and system calls */
		return true;
	limit(RLIMIT_DATA, MEMORY_MAX);
	limit(RLIMIT_AS, ADDRESSES_MAX);
	err = filter();
	/*
	 * -EINVAL: a kernel without filters, which is reported at the start; the process has no privileges and no
	 * other descriptors in any case
	 */
	return !err || err == -EINVAL;
}

void sandbox__serve(int sock, sandbox_serve *serve, void *arg)
{
	if (!take_socket(sock) || !confine())
		_exit(1);
	serve(SOCKET_FD, arg);
	_exit(0);
}

static void serve_prepared(int sock, bool (*prepare)(void *arg), sandbox_serve *serve, void *arg)
{
	if (!take_socket(sock) || !prepare(arg) || !confine())
		_exit(1);
	serve(SOCKET_FD, arg);
	_exit(0);
}

int sandbox__fork(struct sandbox *s, sandbox_serve *serve, void *arg)
{
	return sandbox__fork_prepared(s, NULL, serve, arg);
}

int sandbox__fork_prepared(struct sandbox *s, bool (*prepare)(void *arg), sandbox_serve *serve, void *arg)
{
	int pair[2], err;

	*s = SANDBOX_NONE;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	s->pid = usage__fork();
	if (!s->pid && prepare)
		serve_prepared(pair[1], prepare, serve, arg);
	if (!s->pid)
		sandbox__serve(pair[1], serve, arg);
	err = s->pid < 0 ? -errno : 0;
	close(pair[1]);
	s->sock = pair[0];
	if (err) {
		s->pid = 0;
		sandbox__end(s);
	}
	return err;
}

void sandbox__end(struct sandbox *s)
{
	if (s->pid > 0)
		kill(s->pid, SIGKILL);
	if (s->server)
		forkserver__end(s->server, s->number);
	if (s->sock >= 0)
		close(s->sock);
	*s = SANDBOX_NONE;
}

void sandbox__ended(struct sandbox *s, pid_t pid)
{
	if (s->pid == pid)
		s->pid = 0;
}
