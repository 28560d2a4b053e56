// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The child that examines a file for the attacher. It inherits the file and a socket, gives up everything else and
 * answers for this file alone, so a file that takes it over can only lie about itself. It lives until
 * another file is asked about: programs come one after the other for each file.
 */
#include "attach/verifier.h"

#include "attach/attacher.h"
#include "attach/features.h"
#include "attach/verify_site.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/sanitizer.h"

#define SECONDS_MAX 10 /* of CPU; libtorch takes 0.1 */
#define WAIT_MS	    10000
#define MEMORY_MAX  (512ULL << 20)
#define FILE_FD	    0
#define SOCKET_FD   1

struct question {
	u32 n;
	u32 returns;
	u64 offsets[ATTACHER_SITES_MAX];
};

#define QUESTION_HEAD offsetof(struct question, offsets)

struct verifier {
	int file; /* that the child examines, -1: none */
	int sock;
	pid_t pid;
	struct stat st; /* of file when the child began */
	struct question question;
};

struct verifier *verifier__new(void)
{
	struct verifier *v = calloc(1, sizeof(*v));

	if (v)
		v->file = v->sock = -1;
	return v;
}

static void end_child(struct verifier *v)
{
	if (v->pid > 0)
		kill(v->pid, SIGKILL);
	if (v->sock >= 0)
		close(v->sock);
	if (v->file >= 0)
		close(v->file);
	v->pid = 0;
	v->file = v->sock = -1;
}

void verifier__free(struct verifier *v)
{
	if (!v)
		return;
	end_child(v);
	free(v);
}

void verifier__ended(struct verifier *v, pid_t pid)
{
	if (v->pid == pid)
		v->pid = 0;
}

/* Unhandled, it would be a core dump and a line in the kernel log. */
static void crashed(int signal)
{
	_exit(1);
}

static void limit(int what, u64 max)
{
	struct rlimit l = { max, max };

	setrlimit(what, &l);
}

/* Reading, memory (sysinfo: qsort asks how much there is) and the end; any other system call fails. */
static int confine(void)
{
#ifdef __x86_64__
	const u32 arch = AUDIT_ARCH_X86_64;
#else
	const u32 arch = AUDIT_ARCH_AARCH64;
#endif
	static const u32 allowed[] = { SYS_pread64, SYS_read,	    SYS_write,	      SYS_fstat, SYS_lseek,
				       SYS_mmap,    SYS_munmap,	    SYS_mremap,	      SYS_brk,	 SYS_madvise,
				       SYS_futex,   SYS_mprotect,   SYS_rt_sigreturn, SYS_fcntl, SYS_newfstatat,
				       SYS_exit,    SYS_exit_group, SYS_sysinfo };
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[N + 6] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog filter = { .len = N + 6, .filter = code };

	for (u32 i = 0; i < N; i++)
		code[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], N - i, 0);
	code[4 + N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[5 + N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (features__test_switch("no-seccomp"))
		return -EINVAL;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) ? -errno : 0;
}

/* Keeps these two descriptors alone, and no privilege. false: something could not be given up. */
static bool give_up_all(int file, int sock)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU };
	int err;

	/* both are above the standard streams, which the attacher has replaced */
	if (dup2(file, FILE_FD) < 0 || dup2(sock, SOCKET_FD) < 0 || close_range(SOCKET_FD + 1, ~0u, 0))
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (u32 i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], crashed);
	limit(RLIMIT_CPU, SECONDS_MAX);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_CORE, 0);
	if (syscall(SYS_capset, &head, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	if (SANITIZED) /* which needs more memory and system calls than that */
		return true;
	limit(RLIMIT_DATA, MEMORY_MAX);
	err = confine();
	/* a kernel without filters, which attacher__lacks() reports: it has no rights and no other descriptors all the same */
	return !err || err == -EINVAL;
}

static void __attribute__((noreturn)) examine(int file, int sock)
{
	static u8 verdicts[ATTACHER_SITES_MAX];
	static struct question q;
	struct site_checker *c;
	ssize_t n;

	if (!give_up_all(file, sock))
		_exit(1);
	c = site_checker__new(FILE_FD);
	while (c && (n = read(SOCKET_FD, &q, sizeof(q))) >= (ssize_t)QUESTION_HEAD) {
		if (q.n > ATTACHER_SITES_MAX || (size_t)n != QUESTION_HEAD + q.n * sizeof(u64))
			break;
		site_checker__check(c, q.offsets, q.n, q.returns, verdicts);
		if (write(SOCKET_FD, verdicts, q.n) != (ssize_t)q.n)
			break;
	}
	_exit(0);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A child for this file, if there is none. */
static int prepare(struct verifier *v, int fd)
{
	struct stat st;
	int pair[2];

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (v->file >= 0 && is_same(&st, &v->st))
		return 0;
	end_child(v);
	v->file = fcntl(fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
	if (v->file < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	v->st = st;
	v->pid = fork();
	if (!v->pid)
		examine(v->file, pair[1]);
	close(pair[1]);
	v->sock = pair[0];
	return v->pid < 0 ? -errno : 0;
}

static bool ask(struct verifier *v, u8 *verdicts)
{
	struct question *q = &v->question;
	size_t len = QUESTION_HEAD + q->n * sizeof(u64);
	struct pollfd p = { .fd = v->sock, .events = POLLIN };

	return send(v->sock, q, len, MSG_NOSIGNAL) == (ssize_t)len && poll(&p, 1, WAIT_MS) == 1 &&
	       recv(v->sock, verdicts, q->n, MSG_DONTWAIT) == (ssize_t)q->n;
}

bool verifier__check(struct verifier *v, int fd, const u64 *offsets, u32 n, bool returns, u8 *verdicts, int *file)
{
	bool all = true;

	if (n > ATTACHER_SITES_MAX)
		return false;
	v->question.n = n;
	v->question.returns = returns;
	memcpy(v->question.offsets, offsets, n * sizeof(u64));
	memset(verdicts, SITE_UNREADABLE, n);
	if (prepare(v, fd) || !ask(v, verdicts)) {
		end_child(v);
		memset(verdicts, SITE_UNREADABLE, n);
	}
	for (u32 i = 0; i < n; i++)
		all &= verdicts[i] == SITE_OK;
	*file = v->file;
	return all && v->file >= 0;
}
