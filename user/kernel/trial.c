// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/trial.h"

#include "kernel/link.h"
#include "util/array.h"
#include "util/test_switch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each function begins with an instruction that the kernel emulates. */
#define TARGET(name)                                                  \
	__attribute__((naked, noinline, used)) static void name(void) \
	{                                                             \
		__asm__ volatile("push %rbp; pop %rbp; ret");         \
	}

TARGET(target_multi)
TARGET(target_session)
TARGET(target_return)

void (*const trial__targets[])(void) = { target_multi, target_session, target_return };

struct search {
	u64 addr, offset;
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		u64 start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && s->addr >= start && s->addr < start + p->p_filesz) {
			s->offset = s->addr - start + p->p_offset;
			return 1;
		}
	}
	return 0;
}

int trial__load(u32 attach_type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sonde_try", "GPL", insns, 2, &opts);

	return fd < 0 ? -errno : fd;
}

int trial__open(struct trial *t, enum trial_target target, u32 attach_type, pid_t pid, bool returns)
{
	struct search s = { .addr = (u64)(uintptr_t)trial__targets[target] };
	u64 cookie = 0;
	struct link_sites sites = { .offsets = &s.offset, .cookies = &cookie, .n = 1, .pid = pid, .returns = returns };
	int err = dl_iterate_phdr(find_offset, &s) ? 0 : -ENOENT;

	t->file = t->prog = t->link = -1;
	if (!err) {
		sites.fd = t->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		t->prog = t->file < 0 ? -errno : trial__load(attach_type);
		err = t->prog < 0 ? t->prog : 0;
	}
	if (!err) {
		t->link = link__create_multi(t->prog, attach_type, &sites);
		err = t->link < 0 ? t->link : 0;
	}
	if (err)
		trial__close(t);
	return err;
}

void trial__close(struct trial *t)
{
	if (t->link >= 0)
		close(t->link);
	if (t->prog >= 0)
		close(t->prog);
	if (t->file >= 0)
		close(t->file);
}

/* Waits for a byte, then returns from the function with a seccomp filter that allows only exit_group. */
static void return_confined(int go)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { .len = ARRAY_LEN(code), .filter = code };
	bool die = test_switch__is_set("no-returns");
	char byte;

	if (read(go, &byte, 1) != 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		_exit(0); /* a kernel without filters: none can kill */
	target_return();
	if (die)
		syscall(SYS_getpid);
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

bool trial__return(struct trial *t, bool session)
{
	u32 type = session ? ATTACH_TYPE_UPROBE_SESSION : ATTACH_TYPE_UPROBE_MULTI;
	int go[2], status = 0;
	pid_t pid;
	bool tried;

	t->file = t->prog = t->link = -1;
	if (pipe2(go, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		close(go[1]);
		return_confined(go[0]);
	}
	close(go[0]);
	tried = pid > 0 && !trial__open(t, TRIAL_RETURN, type, pid, !session) && write(go[1], "", 1) == 1;
	close(go[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return tried && WIFEXITED(status) && !WEXITSTATUS(status);
}
