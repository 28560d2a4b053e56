// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attaches an empty BPF program to entry and return of a function by a uprobe_session
 * link, to measure the kernel's own cost of a span.
 *
 *	empty_session FILE OFFSET..	prints "ready"; detaches when stdin ends
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPROBE_SESSION 57
#define SITES	       16

/* include/uapi/linux/bpf.h of Linux 6.13; Debian's header is older */
struct link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

static long bpf(int cmd, void *attr, unsigned size)
{
	return syscall(__NR_bpf, cmd, attr, size);
}

static int load(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.expected_attach_type = UPROBE_SESSION;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	return bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
}

int main(int argc, char **argv)
{
	struct link_create_uprobe_multi attr = { .attach_type = UPROBE_SESSION };
	uint64_t offsets[SITES];
	char byte;

	if (argc < 3 || argc > 2 + SITES)
		return 2;
	for (int i = 2; i < argc; i++)
		offsets[attr.cnt++] = strtoull(argv[i], NULL, 0);
	attr.path = (uintptr_t)argv[1];
	attr.offsets = (uintptr_t)offsets;
	attr.prog_fd = load();
	if ((int)attr.prog_fd < 0 || bpf(BPF_LINK_CREATE, &attr, sizeof(attr)) < 0) {
		fprintf(stderr, "empty_session: %s\n", strerror(errno));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
