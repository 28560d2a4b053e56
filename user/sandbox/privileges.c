// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/landlock.h"
#include "sandbox/namespaces.h"
#include "sandbox/syscalls.h"
#include "util/array.h"
#include "util/file.h"
#include "util/sanitizer.h"
#include "util/sudo.h"
#include "util/test_switch.h"

#define SYSTEM_MAX 999 /* the highest uid of system accounts */

static void note_failure(char *lacks, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void note_failure(char *lacks, size_t len, const char *fmt, ...)
{
	size_t used = lacks ? strlen(lacks) : 0;
	va_list ap;

	if (!lacks)
		return;
	if (used && used < len)
		used += snprintf(lacks + used, len - used, "; ");
	va_start(ap, fmt);
	if (used < len)
		vsnprintf(lacks + used, len - used, fmt, ap);
	va_end(ap);
}

/*
 * Keeps those capabilities of the list that this process has. The three newest were split off CAP_SYS_ADMIN, which
 * may replace them.
 */
static int keep_capabilities(const cap_value_t *list, int n, char *lacks, size_t len)
{
	cap_t had = cap_get_proc(), next = cap_init();
	const cap_value_t admin = CAP_SYS_ADMIN;
	cap_flag_value_t has = CAP_CLEAR;
	bool stands_in = false;
	int err = had && next ? 0 : -ENOMEM;

	for (int i = 0; i < n && !err; i++) {
		const cap_value_t *c = &list[i];

		if (!cap_get_flag(had, *c, CAP_PERMITTED, &has) && has == CAP_CLEAR &&
		    (*c == CAP_BPF || *c == CAP_PERFMON || *c == CAP_CHECKPOINT_RESTORE)) {
			c = &admin;
			cap_get_flag(had, admin, CAP_PERMITTED, &has);
			stands_in |= has == CAP_SET;
		}
		if (has == CAP_SET && (cap_set_flag(next, CAP_PERMITTED, 1, c, CAP_SET) ||
				       cap_set_flag(next, CAP_EFFECTIVE, 1, c, CAP_SET)))
			err = -errno;
	}
	if (!err && cap_set_proc(next))
		err = -errno;
	if (stands_in)
		note_failure(lacks, len,
			     "it has CAP_SYS_ADMIN, because it was not given all of CAP_BPF, CAP_PERFMON and "
			     "CAP_CHECKPOINT_RESTORE");
	cap_free(had);
	cap_free(next);
	return err;
}

int privileges__opener(void)
{
	static const cap_value_t list[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };

	return keep_capabilities(list, ARRAY_LEN(list), NULL, 0);
}

int privileges__injector(bool opens)
{
	static const cap_value_t list[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN,
					    CAP_KILL,	    CAP_SYS_NICE,	 CAP_DAC_OVERRIDE };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* CAP_DAC_OVERRIDE, the last one of the list, is kept only if `opens` is set */
	return keep_capabilities(list, ARRAY_LEN(list) - !opens, NULL, 0);
}

static bool has_capability(cap_value_t c)
{
	cap_t had = cap_get_proc();
	cap_flag_value_t value = CAP_CLEAR;

	if (had)
		cap_get_flag(had, c, CAP_EFFECTIVE, &value);
	cap_free(had);
	return value == CAP_SET;
}

/* Finds a system account with this name (not a person's account with the same name), else uses the number. */
static void find_account(const char *name, unsigned int number, uid_t *uid, gid_t *gid)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd entry = { 0 }, *p;
	char text[4096];

	*uid = *gid = number;
	while (f && !fgetpwent_r(f, &entry, text, sizeof(text), &p))
		if (!strcmp(p->pw_name, name) && p->pw_uid && p->pw_uid <= SYSTEM_MAX && p->pw_gid) {
			*uid = p->pw_uid;
			*gid = p->pw_gid;
			break;
		}
	if (f)
		fclose(f);
}

/*
 * Changes the user. Even without capabilities root owns files: /etc/shadow, the kernel's files in /proc/sys. In some
 * containers root cannot become any other user.
 */
static int become(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	return 0;
}

static bool may_leave_root(void)
{
	return geteuid() == 0 && has_capability(CAP_SETUID) && has_capability(CAP_SETGID);
}

/*
 * Prevents regaining a capability, by programs with file capabilities (bounding set, no_new_privs) or by becoming
 * root (securebits). From here on a change of the user changes no capability; keep() drops them.
 */
static int lock_up(char *lacks, size_t len)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	bool dropped = true;

	for (int c = 0; c <= cap_max_bits() - 1; c++)
		dropped &= !prctl(PR_CAPBSET_DROP, c, 0, 0, 0) || errno == EINVAL;
	if (!dropped || prctl(PR_SET_SECUREBITS, bits, 0, 0, 0))
		note_failure(lacks, len, "its bounding set of capabilities is not empty (%s)", strerror(errno));
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

/*
 * This process has descriptors of files and maps that do not belong to its user, so other processes of that user must
 * not be able to trace it. Only in a sanitized build the leak checker has to trace its parent.
 */
static void hide(void)
{
	prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0);
}

static void note_root(char *lacks, size_t len)
{
	if (!geteuid())
		note_failure(lacks, len,
			     "it is still root's, and owns root's files: it was not given CAP_SETUID and CAP_SETGID");
}

/*
 * Returns 0 or -ENOMEM. A kernel that has no filters is only noted in lacks; but a process that limits sonde's memory
 * must not be able to prevent the filter.
 */
static int filter_calls(enum syscalls_role role, char *lacks, size_t len)
{
	int err = syscalls__confine(role);

	if (err && err != -ENOMEM)
		note_failure(lacks, len, "its system calls are not filtered (%s)", strerror(-err));
	return err == -ENOMEM ? err : 0;
}

int privileges__filter_injector(void)
{
	static bool filtered;
	char lacks[256] = "";
	int err;

	if (filtered)
		return 0;
	err = filter_calls(SYSCALLS_INJECTOR, lacks, sizeof(lacks));
	filtered = !err;
	test_switch__captured(NULL, false);
	return err;
}

int privileges__attacher(bool signals, bool perf_events, char *lacks, size_t len)
{
	cap_value_t list[7] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };
	int n = 5, err;
	uid_t uid;
	gid_t gid;

	if (signals)
		list[n++] = CAP_KILL;
	if (perf_events)
		list[n++] = CAP_SYS_ADMIN;
	find_account(ACCOUNT_ATTACHER, UID_ATTACHER, &uid, &gid);
	err = lock_up(lacks, len);
	/* only if the user can be changed without losing the capabilities */
	if (!err && may_leave_root() && (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NO_SETUID_FIXUP) &&
	    become(uid, gid))
		errno = 0;
	note_root(lacks, len);
	if (!err)
		err = keep_capabilities(list, n, lacks, len);
	hide();
	if (!err)
		err = filter_calls(perf_events ? SYSCALLS_PERF : SYSCALLS_ATTACHER, lacks, len);
	return err;
}

int privileges__observer(void)
{
	static const cap_value_t list[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
					    CAP_SYS_ADMIN };
	char lacks[256] = "";
	uid_t uid;
	gid_t gid;
	int err;

	if (!may_leave_root()) {
		err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
		if (!err)
			err = filter_calls(SYSCALLS_OBSERVER, lacks, sizeof(lacks));
		return err;
	}
	find_account(ACCOUNT_ATTACHER, UID_ATTACHER, &uid, &gid);
	err = lock_up(lacks, sizeof(lacks));
	if (!err && (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NO_SETUID_FIXUP))
		err = become(uid, gid);
	/* as in privileges__reader: at least drop the capabilities that are not needed */
	if (!err || err == -EINVAL || err == -EPERM)
		err = keep_capabilities(list, ARRAY_LEN(list), NULL, 0);
	hide();
	if (!err)
		err = filter_calls(SYSCALLS_OBSERVER, lacks, sizeof(lacks));
	test_switch__captured(NULL, true);
	return err;
}

/* Changes from root to the worker's account, irreversibly. */
static int become_worker(char *lacks, size_t len)
{
	uid_t uid;
	gid_t gid;
	int err;

	find_account(ACCOUNT_WORKER, UID_WORKER, &uid, &gid);
	err = lock_up(lacks, len);
	if (!err && may_leave_root())
		err = become(uid, gid);
	note_root(lacks, len);
	if (!err)
		err = keep_capabilities(NULL, 0, NULL, 0);
	hide();
	return err;
}

int privileges__worker(char *lacks, size_t len)
{
	int err;

	/* let the C library read its files now: the time zone */
	tzset();
	namespaces__leave(lacks, len);
	err = become_worker(lacks, len);
	if (!err)
		err = filter_calls(SYSCALLS_WORKER, lacks, len);
	return err;
}

int privileges__meter(const char *const *read, const char *const *write)
{
	char lacks[256] = "";
	int err = become_worker(lacks, sizeof(lacks));

	if (!err && !SANITIZED && landlock__restrict(read, write))
		errno = 0; /* a kernel without it; the account has no rights to other users' files */
	if (!err)
		err = filter_calls(SYSCALLS_METER, lacks, sizeof(lacks));
	return err;
}

int privileges__user(void)
{
	uid_t uid;
	gid_t gid;
	char lacks[256] = "";
	int err;

	/* let the C library read its files now */
	tzset();
	if (!sudo__user(&uid, &gid))
		find_account(ACCOUNT_WORKER, UID_WORKER, &uid, &gid);
	else if (!gid)
		gid = UID_WORKER;
	err = lock_up(lacks, sizeof(lacks));
	if (!err && may_leave_root())
		err = become(uid, gid);
	if (!err)
		err = keep_capabilities(NULL, 0, NULL, 0);
	hide();
	return err;
}

int privileges__reader(bool sources)
{
	char lacks[256] = "";
	int err = privileges__user();

	/* the user namespace has no other user (user_namespaces(7)), or groups can't be dropped */
	if (err == -EINVAL || err == -EPERM)
		err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : keep_capabilities(NULL, 0, NULL, 0);
	hide();
	if (!err)
		err = filter_calls(sources ? SYSCALLS_SOURCES : SYSCALLS_READER, lacks, sizeof(lacks));
	test_switch__captured(NULL, true);
	return err;
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

	if (!has_capability(CAP_SYS_PTRACE) && geteuid())
		snprintf(buf, len, "run sonde as root, or as its user with kernel.yama.ptrace_scope=0");
	else if (!has_capability(CAP_SYS_PTRACE))
		snprintf(buf, len, "this root has no CAP_SYS_PTRACE: a container gets it by --cap-add SYS_PTRACE");
	else if (!in_first_user_namespace())
		snprintf(buf, len,
			 "sonde runs in a user namespace, whose root has no rights outside it: run it in the host's");
	else if (atoi(file__first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line))) > 2)
		snprintf(buf, len, "kernel.yama.ptrace_scope is 3, which lets no process do that until the next boot");
	else
		snprintf(
			buf, len,
			"sonde has the rights (CAP_SYS_PTRACE): a security module of the kernel protects this process%s%s%s",
			*file__first_line("/sys/kernel/security/lsm", line, sizeof(line)) ? " (active: " : "", line,
			*line ? ")" : "");
	return buf;
}
