// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/privileges.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/sudo.h"

#define NOBODY 65534 /* the kernel's overflowuid, and the user `nobody` almost everywhere */

/* Those of the list that this process has; the three newest were split off CAP_SYS_ADMIN, which may stand in for them. */
static int keep(const cap_value_t *list, int n)
{
	cap_t had = cap_get_proc(), next = cap_init();
	const cap_value_t admin = CAP_SYS_ADMIN;
	cap_flag_value_t has = CAP_CLEAR;
	int err = had && next ? 0 : -ENOMEM;

	for (int i = 0; i < n && !err; i++) {
		const cap_value_t *c = &list[i];

		if (!cap_get_flag(had, *c, CAP_PERMITTED, &has) && has == CAP_CLEAR &&
		    (*c == CAP_BPF || *c == CAP_PERFMON || *c == CAP_CHECKPOINT_RESTORE)) {
			c = &admin;
			cap_get_flag(had, admin, CAP_PERMITTED, &has);
		}
		if (has == CAP_SET && (cap_set_flag(next, CAP_PERMITTED, 1, c, CAP_SET) ||
				       cap_set_flag(next, CAP_EFFECTIVE, 1, c, CAP_SET)))
			err = -errno;
	}
	if (!err && cap_set_proc(next))
		err = -errno;
	cap_free(had);
	cap_free(next);
	return err;
}

int privileges__attacher(bool signals, bool perf_events)
{
	cap_value_t list[7] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };
	int n = 5;

	if (signals)
		list[n++] = CAP_KILL;
	if (perf_events)
		list[n++] = CAP_SYS_ADMIN;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return keep(list, n);
}

int privileges__injector(void)
{
	static const cap_value_t list[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN,
					    CAP_KILL,	    CAP_SYS_NICE };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return keep(list, sizeof(list) / sizeof(list[0]));
}

static bool has(cap_value_t c)
{
	cap_t had = cap_get_proc();
	cap_flag_value_t value = CAP_CLEAR;

	if (had)
		cap_get_flag(had, c, CAP_EFFECTIVE, &value);
	cap_free(had);
	return value == CAP_SET;
}

/*
 * Without a capability root would still own root's files: /etc/shadow, the kernel's
 * own under /proc/sys. A container may have a root that cannot become anybody else.
 */
static int leave_root(void)
{
	uid_t uid;
	gid_t gid;

	if (!sudo__user(&uid, &gid))
		uid = gid = NOBODY;
	else if (!gid)
		gid = NOBODY;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	return 0;
}

static int give_up(int err)
{
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err)
		err = keep(NULL, 0);
		/*
	 * The kernel has made a process that changes its user unreadable to that user's
	 * others, and so it stays: this one has descriptors of files and maps that are not
	 * theirs. Only the leak checker of a sanitized build has to look into its own parent.
	 */
#ifdef __SANITIZE_ADDRESS__
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#endif
	return err;
}

int privileges__worker(void)
{
	return give_up(geteuid() == 0 && has(CAP_SETUID) && has(CAP_SETGID) ? leave_root() : 0);
}

int privileges__reader(void)
{
	int err = geteuid() == 0 && has(CAP_SETUID) && has(CAP_SETGID) ? leave_root() : 0;

	/* where no other user is known (user_namespaces(7)), or no groups may be given up */
	return give_up(err == -EINVAL || err == -EPERM ? 0 : err);
}

/* The first line of a file, "" if it can't be read. */
static char *first_line(const char *path, char *buf, size_t len)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (f && fgets(buf, (int)len, f))
		buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
	return buf;
}

/* 0xEFFFFFFD: PROC_USER_INIT_INO, linux/proc_ns.h */
static bool in_first_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) || st.st_ino == 0xEFFFFFFD;
}

char *privileges__refusal(char *buf, size_t len)
{
	char line[256];

	if (!has(CAP_SYS_PTRACE) && geteuid())
		snprintf(buf, len, "run sonde as root, or as its user with kernel.yama.ptrace_scope=0");
	else if (!has(CAP_SYS_PTRACE))
		snprintf(buf, len, "this root has no CAP_SYS_PTRACE: a container gets it by --cap-add SYS_PTRACE");
	else if (!in_first_user_namespace())
		snprintf(buf, len,
			 "sonde runs in a user namespace, whose root has no rights outside it: run it in the host's");
	else if (atoi(first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line))) > 2)
		snprintf(buf, len, "kernel.yama.ptrace_scope is 3, which lets no process do that until the next boot");
	else
		snprintf(
			buf, len,
			"sonde has the rights (CAP_SYS_PTRACE): a security module of the kernel protects this process%s%s%s",
			*first_line("/sys/kernel/security/lsm", line, sizeof(line)) ? " (active: " : "", line,
			*line ? ")" : "");
	return buf;
}
