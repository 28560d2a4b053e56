// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The child process that reads foreign DWARF. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/dwarf.h"
#include "attach/elf_private.h"
#include "util/sanitizer.h"

#define NOBODY	    65534
#define SECONDS_MAX 10 /* of CPU; NCCL 2.32's takes a few ms */
#define MEMORY_MAX  (1ULL << 30) /* the file is mapped, and counts only where it is compressed */

struct answer {
	int err;
	u64 offsets[DWARF_MEMBERS];
};

static void limit(int what, u64 max)
{
	struct rlimit l = { max, max };

	setrlimit(what, &l);
}

/* Unhandled, it would be a core dump and a line in the kernel log. */
static void crashed(int signal)
{
	_exit(1);
}

/* Keeps these two descriptors alone, and no privilege. What fails here fails where there was none before. */
static void give_up_all(int a, int b)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};
	unsigned int low = a < b ? a : b, high = a < b ? b : a;
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU };

	if (low)
		close_range(0, low - 1, 0);
	if (high - low > 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
	if (syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) || syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY))
		errno = 0;
	syscall(SYS_capset, &head, none);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* it must not outlive sonde; a change of user forgets this */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (u32 i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], crashed);
	signal(SIGINT, SIG_IGN);
	limit(RLIMIT_CPU, SECONDS_MAX);
	limit(RLIMIT_FSIZE, 0);
	if (!SANITIZED)
		limit(RLIMIT_DATA, MEMORY_MAX);
}

static void __attribute__((noreturn))
child(int elf, int out, const char *type, const struct dwarf_member *members, u32 n)
{
	struct dwarf_member m[DWARF_MEMBERS];
	struct answer a = {};

	memcpy(m, members, n * sizeof(*m));
	give_up_all(elf, out);
	a.err = dwarf__members(elf, type, m, n);
	for (u32 i = 0; i < n; i++)
		a.offsets[i] = m[i].offset;
	_exit(write(out, &a, sizeof(a)) == sizeof(a) ? 0 : 1);
}

int dwarf_job__start(struct dwarf_job *job, struct elf *elf, const char *type, const struct dwarf_member *members,
		     u32 n)
{
	int fds[2], err;

	if (n > DWARF_MEMBERS)
		return -E2BIG;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	job->pid = fork();
	if (!job->pid)
		child(elf->fd, fds[1], type, members, n);
	err = job->pid < 0 ? -errno : 0;
	close(fds[1]);
	job->fd = fds[0];
	if (err) {
		job->pid = 0;
		close(fds[0]);
	}
	return err;
}

int dwarf_job__poll(struct dwarf_job *job, int timeout_ms, struct dwarf_member *members, u32 n)
{
	struct pollfd p = { .fd = job->fd, .events = POLLIN };
	struct answer a;
	ssize_t got;

	poll(&p, 1, timeout_ms);
	got = read(job->fd, &a, sizeof(a));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	close(job->fd);
	/* it has answered, or has closed the pipe because it is gone */
	kill(job->pid, SIGKILL);
	while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
		;
	job->pid = 0;
	if (got != sizeof(a))
		return -EFAULT;
	for (u32 i = 0; i < n && i < DWARF_MEMBERS; i++)
		members[i].offset = a.offsets[i];
	return a.err;
}
