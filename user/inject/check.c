// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "inject/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/mapped.h"
#include "process/procs.h"
#include "sandbox/bounded.h"
#include "sandbox/privileges.h"
#include "util/file.h"

#define ENVIRONMENT_MAX (8 << 20) /* bytes: more than the kernel allows for the environment of a program by default */

static int refuse(char *why, size_t len, const char *text)
{
	snprintf(why, len, "%s", text);
	return -ENOTSUP;
}

/* Checks the program by its file's header: it may be 32-bit or of another machine. */
static int check_program(u32 pid, bool remote_files, char *why, size_t len)
{
	const char *remote;
	char refusal[512];
	Elf64_Ehdr head;
	ssize_t n;
	int fd;

	fd = mapped__open_program(pid, remote_files, &remote);
	if (remote) {
		snprintf(
			why, len,
			"its program lies on %s, whose server may never answer, and is not opened; --remote-files allows it",
			remote);
		return -ENOTSUP;
	}
	if (fd < 0) {
		snprintf(why, len, "its program can't be read: %s%s%s", strerror(-fd),
			 fd == -EPERM || fd == -EACCES ? "; " : "",
			 fd == -EPERM || fd == -EACCES ? privileges__refusal(refusal, sizeof(refusal)) : "");
		return -ENOTSUP;
	}
	n = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (n != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG))
		return refuse(why, len, "its program is not an ELF file");
	if (head.e_ident[EI_CLASS] != ELFCLASS64)
		return refuse(why, len, "it is a 32-bit program; the library is a 64-bit one");
	if (head.e_machine != EM_X86_64)
		return refuse(why, len, "its program is for a machine other than x86-64");
	return 0;
}

/* A child of vfork runs in its parent's memory until it execs: the library would be loaded into its parent. */
static bool shares_memory(u32 pid)
{
	u32 parent = (u32)procs__status(pid, "PPid: %llu");

	return parent && !syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0);
}

void check__plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text == 0x7f)
			*text = '?';
}

static int check_tracer(u32 pid, char *why, size_t len)
{
	u32 tracer = (u32)procs__status(pid, "TracerPid: %llu");
	char path[32], name[64] = "";

	if (!tracer)
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/status", tracer);
	file__scan(path, 1, "Name: %63[^\n]", name);
	check__plain(name);
	snprintf(why, len, "it is being traced by process %u (%s), and a process has one tracer", tracer, name);
	return -ENOTSUP;
}

int check__process(u32 pid, bool remote_files, char *why, size_t len)
{
	u32 leader = (u32)procs__status(pid, "Tgid: %llu");
	char state = procs__state(pid), exe[64], link[8];

	*why = '\0';
	if (!leader) {
		snprintf(why, len, "there is no such process");
		return -ESRCH;
	}
	if (leader != pid) {
		snprintf(why, len, "it is a thread of process %u: name that", leader);
		return -ENOTSUP;
	}
	if ((state == 'Z' || state == 'X') && procs__status(pid, "Threads: %llu") > 1)
		return refuse(why, len, "its main thread has ended, and the others can't be reached without it");
	if (state == 'Z' || state == 'X')
		return refuse(why, len, "it has ended (a zombie)");
	snprintf(exe, sizeof(exe), "/proc/%u/exe", pid);
	if (readlink(exe, link, sizeof(link)) < 0 && errno == ENOENT)
		return refuse(why, len, "it is a thread of the kernel");
	if (check_tracer(pid, why, len))
		return -ENOTSUP;
	if (state == 'T' || state == 't')
		return refuse(why, len, "it is stopped; continue it first (kill -CONT)");
	if (procs__status(pid, "SigIgn: %llx") >> (SIGSEGV - 1) & 1)
		return refuse(why, len, "it ignores SIGSEGV, by which sonde notices the end of a call");
	if (shares_memory(pid))
		return refuse(
			why, len,
			"it runs in its parent's memory (a child of vfork); try again once it has executed its program");
	return check_program(pid, remote_files, why, len);
}

/* Writes a reason with the name of a library, made printable because the process chooses it. */
static int refuse_library(char *why, size_t len, const char *format, const char *name)
{
	snprintf(why, len, format, name);
	check__plain(why);
	return -ENOTSUP;
}

struct versions {
	struct foreign_file *libc;
	char missing[64];
};

static int check_version(const char *name, void *arg)
{
	struct versions *v = arg;

	if (foreign_file__defines_version(v->libc, name))
		return 0;
	snprintf(v->missing, sizeof(v->missing), "%s", name);
	return 1;
}

/*
 * Checks this in advance: the dynamic loader would report the same, but may leave the library half loaded when a
 * symbol is missing.
 */
static int check_versions(struct foreign_file *libc, const char *shim, char *why, size_t len)
{
	struct versions v = { .libc = libc };
	struct elf *elf = NULL;
	int fd = file__open_regular(shim), err = fd < 0 ? fd : elf__open(&elf, fd);

	if (!err)
		elf__each_needed_version(elf, check_version, &v);
	elf__close(elf);
	if (fd >= 0)
		close(fd);
	if (err) {
		snprintf(why, len, "%.400s: %s", shim, strerror(-err));
		return -ENOTSUP;
	}
	if (*v.missing)
		return refuse_library(why, len, "its C library is too old: the shim needs %s", v.missing);
	return 0;
}

int check__libraries(struct space *s, const char *shim, char *why, size_t len)
{
	struct code *libc = space__library(s, "libc.so.6"), *musl;
	char refusal[512];

	libc = libc ? libc : space__library(s, "libc-2.");
	musl = space__library(s, "ld-musl");
	musl = musl ? musl : space__library(s, "libc.musl");
	if (!libc && musl)
		return refuse_library(why, len, "its C library is musl (%.64s); the shim needs glibc",
				      code__name(musl));
	if (!libc && space__library(s, "ld-android"))
		return refuse(why, len, "its C library is Android's; the shim needs glibc");
	if (!libc && space__library(s, "ld-linux"))
		return refuse(why, len, "it has just started: its C library is not loaded yet; try again");
	if (!libc)
		return refuse(
			why, len,
			"it is statically linked (it maps no libc.so.6): it has no function that loads a library");
	if (!code__open(s, libc) && s->remote) {
		snprintf(
			why, len,
			"its C library lies on %s, whose server may never answer, and is not opened; --remote-files allows it",
			s->remote);
		return -ENOTSUP;
	}
	if (!libc->readable) {
		snprintf(why, len, "its C library can't be read; %s", privileges__refusal(refusal, sizeof(refusal)));
		return -ENOTSUP;
	}
	return check_versions(&libc->file, shim, why, len);
}

u64 check__file_limit(u32 pid)
{
	unsigned long long limit = ~0ULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/limits", pid);
	/* "unlimited" does not match, so the initial value remains */
	file__scan(path, 1, "Max file size %llu", &limit);
	return limit;
}

/*
 * In a child. A process can declare any of its memory to be its environment (prctl(PR_SET_MM)), also memory that is
 * never delivered; and only a limited part is read.
 */
static int read_environment(const void *arg, struct bounded_reply *reply)
{
	char path[64], part[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/environ", *(const u32 *)arg);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && reply->n < ENVIRONMENT_MAX && (n = read(fd, part, sizeof(part))) > 0)
		bounded__add(reply, part, (size_t)n);
	if (fd >= 0)
		close(fd);
	bounded__add(reply, "", 1);
	return 0;
}

void check__environment(u32 pid, const char *name, char *value, size_t len)
{
	struct bounded_reply text;
	size_t n = strlen(name);

	*value = '\0';
	bounded__call(pid, read_environment, &pid, sizeof(pid), &text);
	for (size_t at = 0; at < text.n; at += strlen(text.bytes + at) + 1)
		if (!strncmp(text.bytes + at, name, n) && text.bytes[at + n] == '=')
			snprintf(value, len, "%s", text.bytes + at + n + 1);
	free(text.bytes);
	check__plain(value);
}
