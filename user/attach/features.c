// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/features.h"

#include "attach/attacher.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool features__test_switch(const char *word)
{
	const char *list = getenv("SONDE_TEST");
	size_t len = strlen(word);

	for (; list && *list; list = *list ? list + 1 : list) {
		const char *end = strchrnul(list, ',');

		if ((size_t)(end - list) == len && !memcmp(list, word, len))
			return true;
		list = end;
		if (!*list)
			break;
	}
	return false;
}

/* What the links are tried on: begins with an instruction that the kernel emulates. */
__attribute__((naked, noinline, used)) void features_target(void);
__attribute__((naked, noinline, used)) void features_target(void)
{
#if defined(__x86_64__)
	__asm__ volatile("push %rbp; pop %rbp; ret");
#else
	__asm__ volatile("ret");
#endif
}

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	u64 addr = (u64)(uintptr_t)features_target, *offset = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		u64 start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && addr >= start && addr < start + p->p_filesz) {
			*offset = addr - start + p->p_offset;
			return 1;
		}
	}
	return 0;
}

/* A program that does nothing: a descriptor or negative errno. */
static int load_empty(u32 attach_type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sonde_try", "GPL", insns, 2, &opts);

	return fd < 0 ? -errno : fd;
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The lowest of several rounds: interruptions only ever add. */
static u64 time_calls(void)
{
	u64 best = ~0ULL;

	for (int round = 0; round < 10; round++) {
		u64 start = now_ns(), took;

		for (int i = 0; i < 20; i++)
			features_target();
		took = (now_ns() - start) / 20;
		if (took < best)
			best = took;
	}
	return best;
}

static bool try_link(u32 attach_type, u64 *cost)
{
	u64 offset = 0, cookie = 0;
	struct link_sites sites = {
		.offsets = &offset,
		.cookies = &cookie,
		.n = 1,
		.pid = getpid(),
	};
	int prog, link;

	if (!dl_iterate_phdr(find_offset, &offset))
		return false;
	sites.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	prog = sites.fd < 0 ? -errno : load_empty(attach_type);
	if (prog < 0) {
		close(sites.fd);
		return false;
	}
	link = link__create_multi(prog, attach_type, &sites);
	if (link >= 0 && cost)
		*cost = time_calls();
	if (link >= 0)
		close(link);
	close(prog);
	close(sites.fd);
	return link >= 0;
}

bool features__tracepoint(const char *name)
{
	static struct btf *vmlinux; /* some 10 ms to parse, so once */
	char type[128];

	if (!vmlinux)
		vmlinux = btf__load_vmlinux_btf();
	if (!vmlinux || libbpf_get_error(vmlinux))
		return false;
	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(vmlinux, type, BTF_KIND_TYPEDEF) > 0;
}

static void probe_here(struct features *f, bool calibrate)
{
	struct btf *btf;
	int fd;

	memset(f, 0, sizeof(*f));
	btf = btf__load_vmlinux_btf();
	f->btf = btf && !libbpf_get_error(btf);
	fd = load_empty(0);
	f->bpf = fd >= 0;
	f->error = fd < 0 ? fd : 0;
	if (fd >= 0)
		close(fd);
	if (!f->bpf)
		goto out;
	if (!features__test_switch("no-multi"))
		f->multi = try_link(ATTACH_TYPE_UPROBE_MULTI, calibrate ? &f->entry_ns : NULL);
	if (!features__test_switch("no-session"))
		f->session = try_link(ATTACH_TYPE_UPROBE_SESSION, calibrate ? &f->span_ns : NULL);
out:
	if (f->btf)
		btf__free(btf);
}

/* In a child, so that a kill of this process in the middle leaves no breakpoint: see attach/attacher.h. */
void features__probe(struct features *f, bool calibrate)
{
	int fds[2];
	pid_t pid;

	memset(f, 0, sizeof(*f));
	if (pipe2(fds, O_CLOEXEC)) {
		f->error = -errno;
		return;
	}
	pid = fork();
	if (!pid) {
		attacher__ignore_signals();
		probe_here(f, calibrate);
		/* a short answer is no answer: the parent sees to that */
		if (write(fds[1], f, sizeof(*f)) < 0)
			_exit(1);
		_exit(0);
	}
	close(fds[1]);
	if (pid < 0 || read(fds[0], f, sizeof(*f)) != sizeof(*f)) {
		memset(f, 0, sizeof(*f));
		f->error = -ECHILD;
	}
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
