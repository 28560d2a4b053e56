// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The opener with a compromised worker: it opens only ELF files, and one that hangs or has ended is replaced. */
#include "attach/opener.h"
#include "attacher_support.h"

#include <elf.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* The only child of a process, or 0. */
static pid_t child_of(pid_t parent)
{
	char path[64];
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

/* An empty pipe simulates a file system that does not answer. */
TEST(gives_up_an_opener_that_does_not_answer)
{
	static const struct probes none;
	volatile sig_atomic_t stop = 1;
	struct attacher *a;
	char *text = NULL;
	size_t len = 0;
	int pipes[2];

	REQUIRE(!pipe(pipes));
	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){ .stop = &stop }));
	CHECK(attacher__read(a, pipes[0], &text, &len) == -ETIMEDOUT);
	CHECK(!attacher__stuck(a));
	/* a busy machine may need more than the short limit of a stopping recording */
	stop = 0;
	CHECK(!attacher__maps(a, getpid(), &text, &len) && len && strstr(text, "opener"));
	free(text);
	CHECK(write(pipes[1], "whole", 5) == 5);
	close(pipes[1]);
	CHECK(!attacher__read(a, pipes[0], &text, &len) && len == 5 && !strcmp(text, "whole"));
	free(text);
	close(pipes[0]);
	attacher__free(a);
}

/* A pipe that gets data only after a longer time than the worker waited for silent openers. */
struct slow {
	int pipe, waits;
};

static void write_late(void *arg)
{
	struct slow *slow = arg;

	/* times 50 ms */
	if (slow->pipe >= 0 && ++slow->waits == 8) {
		CHECK(write(slow->pipe, "late", 4) == 4);
		close(slow->pipe);
		slow->pipe = -1;
	}
}

TEST(waits_as_long_as_requested)
{
	static const struct probes none;
	struct slow slow = { .pipe = -1 };
	struct attacher *a;
	char *text = NULL;
	size_t len = 0;
	int silent[2], late[2];

	REQUIRE(!pipe2(silent, O_CLOEXEC));
	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){ .idle = write_late, .arg = &slow }));
	attacher__limit(a, 20);
	for (int i = 0; i < 3; i++)
		CHECK(attacher__read(a, silent[0], &text, &len) == -ETIMEDOUT);
	attacher__limit(a, 60000);
	REQUIRE(!pipe2(late, O_CLOEXEC));
	slow.pipe = late[1];
	text = NULL;
	CHECK(!attacher__read(a, late[0], &text, &len) && len == 4);
	free(text);
	close(late[0]);
	close(silent[0]);
	close(silent[1]);
	attacher__free(a);
}

/* An answer for a child that shared the socket and ended before it read the answer. */
TEST(ignores_the_answer_to_another_request)
{
	static const struct probes none;
	struct attacher *a;
	char *text = NULL;
	size_t len = 0;

	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){}));
	request = (struct attacher_request){ .op = OP_OPENER, .seq = 1ULL << 63 };
	CHECK(!message__send(attacher__fd(a), &request, REQUEST_HEAD, -1));
	CHECK(attacher__signal(a, getpid(), SIGTERM) == -EPERM);
	CHECK(!attacher__maps(a, getpid(), &text, &len) && len && strstr(text, "opener"));
	free(text);
	attacher__free(a);
}

/* A request that killed the opener must not affect the next process's request. */
TEST(replaces_an_opener_that_has_ended)
{
	static const struct probes none;
	struct attacher *a;
	char *text = NULL;
	size_t len = 0;
	pid_t opener_pid;

	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){}));
	REQUIRE(!attacher__maps(a, getpid(), &text, &len));
	free(text);
	attacher = child_of(getpid());
	opener_pid = child_of(attacher);
	if (opener_pid && !kill(opener_pid, SIGKILL)) {
		CHECK(!attacher__maps(a, getpid(), &text, &len) && len);
		free(text);
	}
	attacher__free(a);
	if (!opener_pid)
		SKIP("the kernel does not list a process's children");
}

/* In a mount namespace whose /proc has this many folders: 0 if all are listed, 2 if it can't be created. */
static int list_many(int many)
{
	static const struct probes none;
	struct attacher *a;
	char path[32], *text;
	int lines = 0;
	size_t len;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "tmpfs", 0, NULL))
		return 2;
	for (int i = 0; i < many; i++) {
		snprintf(path, sizeof(path), "/proc/%d", 1000000 + i);
		if (mkdir(path, 0755))
			return 2;
	}
	if (attacher__start(&a, &none, &(struct attacher_options){}) || attacher__processes(a, &text, &len))
		return 1;
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	free(text);
	attacher__free(a);
	return lines != many;
}

TEST(lists_more_processes_than_one_message_holds)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(list_many(20000));
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		SKIP("/proc can't be replaced here");
	CHECK(!WEXITSTATUS(status));
}

/* Opens by path, as for a process that has ended. */
static int ask_open(const char *path, const struct stat *st, int *fd)
{
	request = (struct attacher_request){
		.op = OP_OPEN,
		.pid = NOBODYS_PID,
		.n = strlen(path) + 1,
		.dev = (u64)major(st->st_dev) << 20 | minor(st->st_dev),
		.ino = st->st_ino,
	};
	strcpy(request.data, path);
	return ask_opener(request.n, -1, fd);
}

TEST(opens_only_elf_files)
{
	char dir[] = "/tmp/sonde-attacher-XXXXXX", elf[64], text[64], fifo[64];
	struct stat st, got;
	int fd, err;

	REQUIRE(mkdtemp(dir));
	snprintf(elf, sizeof(elf), "%s/elf", dir);
	snprintf(text, sizeof(text), "%s/text", dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	fd = open(elf, O_WRONLY | O_CREAT, 0600);
	CHECK(write(fd, ELFMAG, SELFMAG) == SELFMAG);
	close(fd);
	fd = open(text, O_WRONLY | O_CREAT, 0600);
	CHECK(write(fd, "a secret", 8) == 8);
	close(fd);
	CHECK(!mkfifo(fifo, 0600));
	REQUIRE(start(0));
	stat(elf, &st);
	err = ask_open(elf, &st, &fd);
	/* on overlayfs a path's inode differs from the probed inode */
	CHECK(err == -ESTALE || (!err && !fstat(fd, &got) && got.st_ino == st.st_ino));
	CHECK(err || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	if (!err) {
		close(fd);
		stat(text, &st);
		CHECK(ask_open(text, &st, NULL) == -ENOEXEC);
		stat(fifo, &st);
		CHECK(ask_open(fifo, &st, NULL) == -ENOEXEC);
		stat(text, &st);
		CHECK(ask_open(elf, &st, NULL) == -ESTALE);
	}
	stat("/dev/null", &st);
	CHECK(ask_open("/dev/null", &st, NULL) < 0);
	request = (struct attacher_request){ .op = OP_OPEN, .pid = NOBODYS_PID, .n = 4, .data = "/etc" };
	CHECK(ask_opener(4, -1, NULL) == -EINVAL); /* without NUL */
	CHECK(end());
	unlink(elf);
	unlink(text);
	unlink(fifo);
	rmdir(dir);
}

/* Forks a child with this pid, which must be free. Returns -1 if that fails. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1 };
	pid_t got = syscall(SYS_clone3, &args, sizeof(args));

	if (!got) {
		close(sock);
		pause();
		_exit(0);
	}
	return got;
}

static int open_perf_map(struct attacher *a, u32 account)
{
	int fd = attacher__open_perf_map(a, getpid(), account);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST(opens_only_perf_maps_of_the_account_or_root)
{
	static const struct probes none;
	char path[64], other[80];
	struct attacher *a;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(other, sizeof(other), "%s.other", path);
	unlink(path);
	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){}));
	CHECK(open_perf_map(a, getuid()) == -ENOENT);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0);
	CHECK(!open_perf_map(a, getuid()));
	CHECK(!ftruncate(fd, PERF_MAP_MAX + 1) && open_perf_map(a, getuid()) == -EFBIG);
	CHECK(!ftruncate(fd, 0) && !link(path, other) && open_perf_map(a, getuid()) == -EPERM);
	CHECK(!unlink(path) && !symlink(other, path) && open_perf_map(a, getuid()) == -EPERM);
	CHECK(!unlink(path) && !mkfifo(path, 0600) && open_perf_map(a, getuid()) == -EPERM);
	CHECK(!unlink(path) && !rename(other, path));
	if (!getuid()) {
		CHECK(!fchown(fd, 4711, 4711) && open_perf_map(a, 4712) == -EPERM && !open_perf_map(a, 4711));
	}
	unlink(path);
	close(fd);
	attacher__free(a);
}

/* The pid of an opener that has ended may be another process's when the next opener is requested. */
TEST(kills_no_process_that_reused_an_openers_pid)
{
	const struct attacher_request again = { .op = OP_OPENER };
	pid_t first, victim;
	int status;

	/* with a command, it may signal other users' processes */
	REQUIRE(start(getpid()));
	REQUIRE(!ask_raw(&again, REQUEST_HEAD, -1, &opener));
	first = child_of(attacher);
	close(opener);
	opener = -1;
	for (int i = 0; first && i < 2000 && !kill(first, 0); i++) {
		usleep(5000);
		CHECK(ask(99, 0, 0) == -EINVAL);
	}
	victim = first ? fork_as(first) : -1;
	CHECK(!ask_raw(&again, REQUEST_HEAD, -1, &opener));
	CHECK(end());
	if (victim <= 0)
		SKIP("no process of a chosen number can be made here");
	/* a process that was not killed ends by this signal */
	CHECK(!waitpid(victim, &status, WNOHANG) && !kill(victim, SIGTERM));
	CHECK(waitpid(victim, &status, 0) == victim && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int ask_debug(size_t len, int object)
{
	request.op = OP_OPEN_DEBUG;
	return ask_opener(len, object, NULL);
}

TEST(opens_elf_files_in_a_root)
{
	char path[] = "/proc/self/exe";
	int object = open(path, O_RDONLY | O_CLOEXEC);

	REQUIRE(start(0));
	request = (struct attacher_request){ .n = sizeof("/bin/sh") };
	memcpy(request.data, "/bin/sh", sizeof("/bin/sh"));
	CHECK(ask_debug(request.n, object) == 0);
	request.pid = getpid();
	CHECK(ask_debug(request.n, object) == 0);
	request.n = sizeof("/etc/passwd");
	memcpy(request.data, "/etc/passwd", sizeof("/etc/passwd"));
	CHECK(ask_debug(request.n, object) == -ENOEXEC);
	request.n = sizeof("/dev/null");
	memcpy(request.data, "/dev/null", sizeof("/dev/null"));
	CHECK(ask_debug(request.n, object) == -EINVAL);
	/* a link that leads out of the root directory */
	request.n = sizeof(path);
	memcpy(request.data, path, sizeof(path));
	CHECK(ask_debug(request.n, object) == -ELOOP);
	/* without object, without NUL, without path, for an unknown process */
	CHECK(ask_debug(request.n, -1) == -EINVAL);
	request.n--;
	CHECK(ask_debug(request.n, object) == -EINVAL);
	CHECK(ask_debug(0, object) == -EINVAL);
	request = (struct attacher_request){ .pid = NOBODYS_PID };
	CHECK(ask(OP_MAPS, 0, 0) == -ENOENT);
	request.pid = 0;
	CHECK(ask(OP_MAPS, 0, 0) == -EINVAL);
	request.pid = getpid();
	CHECK(ask(OP_MAPS, 0, 0) == 0);
	CHECK(end());
	close(object);
}

TEST(reports_a_processs_program)
{
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));

	REQUIRE(n > 0 && n < (ssize_t)sizeof(reply.image.exe) && start(0));
	request = (struct attacher_request){ .pid = getpid() };
	CHECK(ask(OP_IMAGE, 0, 0) == 0);
	CHECK(strlen(reply.image.exe) == (size_t)n && !memcmp(reply.image.exe, exe, n));
	CHECK(*reply.image.command && strchr(reply.image.cgroup, ':'));
	CHECK(ask(OP_USER, 0, 0) == 0 && reply.user == geteuid());
	request.pid = NOBODYS_PID;
	CHECK(ask(OP_IMAGE, 0, 0) == -ESRCH);
	CHECK(ask(OP_USER, 0, 0) == -ESRCH);
	request.pid = -1;
	CHECK(ask(OP_IMAGE, 0, 0) == -ESRCH);
	CHECK(ask(OP_USER, 0, 0) == -ESRCH);
	CHECK(end());
}

TEST_MAIN()
