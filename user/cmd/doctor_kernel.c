// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests what the kernel can do, and what this user may do. */
#include "cmd/doctor.h"

#include "util/array.h"
#include "util/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#define NOT_ALLOWED "not allowed"
#define AS_ROOT	    "run sonde as root: sudo sonde doctor"

static void kernel(struct doctor *d)
{
	struct utsname un;

	uname(&un);
	doctor__check(d, "kernel", "kernel", un.release, "sonde supports 6.1 and later; everything works from 6.13 on");
}

static void privileges(struct doctor *d)
{
	/* docs/design.md, "Safety", explains these; `admin`: CAP_SYS_ADMIN includes it. */
	static const struct {
		cap_value_t cap;
		const char *name;
		bool admin;
	} needed[] = {
		{ CAP_BPF, "CAP_BPF", true },
		{ CAP_PERFMON, "CAP_PERFMON", true },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false },
		{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", false },
		{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", true },
	};
	cap_t had = cap_get_proc();
	cap_flag_value_t has, admin = CAP_CLEAR;
	char lacks[160] = "", user[32];
	size_t used = 0;

	if (had)
		cap_get_flag(had, CAP_SYS_ADMIN, CAP_EFFECTIVE, &admin);
	for (u32 i = 0; had && i < ARRAY_LEN(needed); i++) {
		has = CAP_CLEAR;
		cap_get_flag(had, needed[i].cap, CAP_EFFECTIVE, &has);
		if (has == CAP_CLEAR && !(needed[i].admin && admin == CAP_SET) && used < sizeof(lacks))
			used += snprintf(lacks + used, sizeof(lacks) - used, "%s%s", used ? ", " : "", needed[i].name);
	}
	cap_free(had);
	snprintf(user, sizeof(user), geteuid() ? "uid %u" : "root", geteuid());
	doctor__check(d, "privileges", "user", user, *lacks ? "recording needs root" : "may record");
	doctor__check(d, "privileges", "capabilities", *lacks ? "some are missing" : "all",
		      *lacks ? lacks : "as recording needs");
	if (*lacks)
		doctor__missing(
			d, "privileges", "nothing can be recorded; of other users' processes little can be read",
			geteuid() ? AS_ROOT : "run it with these capabilities: docker run --privileged --pid=host");
}

static void bpf(struct doctor *d)
{
	const struct features *f = &d->features;
	bool denied = f->error == -EPERM || f->error == -EACCES;
	char lockdown[128];

	doctor__check(d, "kernel", "BPF",
		      f->bpf ? "works" :
		      denied ? NOT_ALLOWED :
			       strerror(-f->error),
		      f->bpf ? "programs load" :
		      denied ? "loading programs needs root: whether the kernel can was not tried" :
			       "this kernel loads no BPF programs");
	if (!f->bpf && denied && !geteuid())
		doctor__missing(d, "BPF for this root", "nothing can be recorded",
				"docker run --privileged --pid=host (a container's root has too few rights)");
	else if (!f->bpf && !denied)
		doctor__missing(d, "BPF", "nothing can be recorded", "a kernel built with CONFIG_BPF_SYSCALL=y");
	if (!*file__first_line("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown)))
		return;
	doctor__check(d, "kernel", "lockdown", lockdown,
		      strstr(lockdown, "[confidentiality]") ?
			      "BPF may not read kernel memory: nothing can be recorded" :
			      "not restrictive: BPF may read kernel memory");
	if (strstr(lockdown, "[confidentiality]"))
		doctor__missing(d, "BPF reads of kernel memory", "the kernel is locked down: nothing can be recorded",
				"boot with lockdown=integrity");
}

static void btf(struct doctor *d)
{
	doctor__check(d, "kernel", "BTF", d->features.btf ? "there" : "missing",
		      d->features.btf ? "/sys/kernel/btf/vmlinux" :
					"without the kernel's types no program can be adapted to it");
	/* a missing /sys is reported with the mounts */
	if (!d->features.btf && !access("/sys/kernel", F_OK))
		doctor__missing(d, "/sys/kernel/btf/vmlinux", "nothing can be recorded",
				"a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are");
}

/* Reports whether one way of attaching works: good and bad are the consequences, since names the kernel that has it. */
static void link_kind(struct doctor *d, const char *name, bool works, const char *good, const char *bad,
		      const char *since)
{
	doctor__check(d, "kernel", name,
		      works	  ? "works" :
		      !d->allowed ? NOT_ALLOWED :
				    "no",
		      works	  ? good :
		      !d->allowed ? "not tried" :
				    bad);
	if (!works && d->allowed)
		doctor__missing(d, name, bad, since);
}

static void links(struct doctor *d)
{
	const struct features *f = &d->features;

	link_kind(d, "uprobe_multi", f->multi, "many probes in one link",
		  "each probe is a perf event: attaching is slow", "Linux 6.6 or newer");
	link_kind(d, "uprobe_session", f->session, "durations of calls in every process",
		  "durations of calls only in the processes that -p names", "Linux 6.13 or newer");
	if (f->multi) {
		doctor__check(d, "kernel", "returns", f->returns ? "safe" : "no",
			      f->returns ?
				      "a probed return passes a strict seccomp filter" :
				      "a strict seccomp filter kills for a probed return: calls have no durations");
		if (!f->returns)
			doctor__missing(d, "safe return probes",
					"calls have no durations: a strict seccomp filter would kill",
					"a kernel that lets uretprobe pass seccomp (6.14, or an update of this one)");
	}
}

void doctor__kernel(struct doctor *d)
{
	kernel(d);
	privileges(d);
	bpf(d);
	btf(d);
	links(d);
}
