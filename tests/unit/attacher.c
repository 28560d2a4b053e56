// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The attacher with a compromised worker: it refuses invalid requests and opens only ELF files. */
#include "attach/attacher_wire.h"
#include "elf/elf.h"
#include "site/verify_site.h"
#include "test.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODYS_PID 0x7ffffff0 /* higher than any pid */

static struct program programs[] = {
	{ .name = "off", .section.kind = SECTION_SPAN },
	{ .name = "span", .section.kind = SECTION_SPAN, .enabled = true },
	{ .name = "entry", .section.kind = SECTION_ENTRY, .enabled = true },
	{ .name = "tracepoint", .section.kind = SECTION_TRACEPOINT },
	{ .name = "clock", .section.kind = SECTION_CLOCK },
	{ .name = "site", .section.kind = SECTION_SITE, .enabled = true },
};
static const struct probes probes = { .programs = programs, .n_programs = 5 };

static struct attacher_request request;
static struct attacher_reply reply;
static int sock, opener; /* opener: -1 if none is requested */
static pid_t attacher;
static bool trusted_files;

static bool start(pid_t command)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	fflush(stdout);
	attacher = fork();
	if (!attacher) {
		close(pair[0]);
		attacher__serve(pair[1], &probes,
				&(struct attacher_options){ .command = command, .trusted_files = trusted_files });
	}
	close(pair[1]);
	sock = pair[0];
	opener = -1;
	return attacher > 0;
}

/* True if the attacher ended normally. */
static bool end(void)
{
	int status;

	if (opener >= 0)
		close(opener);
	close(sock);
	return waitpid(attacher, &status, 0) == attacher && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The answer, or 1 without one. */
static int ask_at(int at, const void *data, size_t len, int fd, int *got)
{
	int other;

	if (message__send(at, data, len, fd) ||
	    message__receive(at, &reply, sizeof(reply), &other) < (ssize_t)REPLY_HEAD)
		return 1;
	if (got)
		*got = other;
	else if (other >= 0)
		close(other);
	return reply.result;
}

static int ask_raw(const void *data, size_t len, int fd, int *got)
{
	return ask_at(sock, data, len, fd, got);
}

/* The answer of the opener, which the attacher starts; the last one if there are several. */
static int ask_opener(size_t len, int fd, int *got)
{
	const struct attacher_request start = { .op = OP_OPENER };
	int result;

	if (opener < 0 && ask_raw(&start, REQUEST_HEAD, -1, &opener))
		return 1;
	result = ask_at(opener, &request, REQUEST_HEAD + len, fd, got);
	while (result > 0 && message__receive(opener, &reply, sizeof(reply), &fd) >= (ssize_t)REPLY_HEAD)
		result = reply.result;
	return result;
}

static int ask(enum attacher_op op, u32 program, size_t len)
{
	request.op = op;
	request.program = program;
	if (op >= OP_OPEN && op <= OP_PROCESSES)
		return ask_opener(len, -1, NULL);
	return ask_raw(&request, REQUEST_HEAD + len, -1, NULL);
}

static int ask_sites(u32 program, u32 method, u32 n, size_t len, int fd)
{
	request = (struct attacher_request){ .op = OP_SITES, .program = program, .method = method, .n = n };
	return ask_raw(&request, REQUEST_HEAD + len, fd, NULL);
}

/* The number of perf events that a process has open. */
static u32 events_of(pid_t pid)
{
	char path[64], to[64];
	struct dirent *e;
	u32 n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);

		to[len < 0 ? 0 : len] = '\0';
		n += !strcmp(to, "anon_inode:[perf_event]");
	}
	if (d)
		closedir(d);
	return n;
}

/* With Debian's kernel.perf_event_paranoid=3 they can't be opened later, when they are requested. */
TEST(opens_clocks_before_it_gives_up_privileges)
{
	if (geteuid())
		SKIP("needs root");
	REQUIRE(start(0));
	CHECK(ask(99, 0, 0) == -EINVAL); /* it answers requests, so it has dropped its privileges */
	CHECK(events_of(attacher) == 0);
	CHECK(end());
	programs[4].enabled = true;
	REQUIRE(start(0));
	CHECK(ask(99, 0, 0) == -EINVAL);
	CHECK(events_of(attacher) == (u32)sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(end());
	programs[4].enabled = false;
}

TEST(refuses_invalid_requests)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	REQUIRE(start(0));
	CHECK(ask(99, 0, 0) == -EINVAL);
	CHECK(ask_raw("x", 1, -1, NULL) == -EINVAL);
	CHECK(ask_sites(0, ATTACH_MULTI, 1, 16, fd) == -EINVAL); /* a program that is not loaded */
	CHECK(ask_sites(5, ATTACH_MULTI, 1, 16, fd) == -EINVAL);
	CHECK(ask_sites(~0U, ATTACH_MULTI, 1, 16, fd) == -EINVAL);
	CHECK(ask_sites(1, 99, 1, 16, fd) == -EINVAL);
	CHECK(ask_sites(1, ATTACH_MULTI, 0, 0, fd) == -EINVAL);
	CHECK(ask_sites(1, ATTACH_MULTI, 2, 16, fd) == -EINVAL);
	CHECK(ask_sites(1, ATTACH_MULTI, ATTACHER_SITES_MAX + 1, sizeof(request.data), fd) == -EINVAL);
	CHECK(ask_sites(1, ATTACH_MULTI, 0x10000001, 16, fd) == -EINVAL); /* 16 bytes each, in 32 bits */
	CHECK(ask_sites(1, ATTACH_MULTI, 1, 16, -1) == -EINVAL);
	CHECK(ask_sites(2, ATTACH_SESSION, 1, 16, fd) == -EINVAL); /* only spans have a probe at the return */
	request =
		(struct attacher_request){ .op = OP_SITES, .program = 2, .method = ATTACH_MULTI, .n = 1, .returns = 1 };
	CHECK(ask_raw(&request, REQUEST_HEAD + 16, fd, NULL) == -EINVAL);
	/* semaphores are accepted only with a family's own sites, one for each */
	request = (struct attacher_request){
		.op = OP_SITES, .program = 2, .method = ATTACH_MULTI, .n = 1, .counters = 1
	};
	CHECK(ask_raw(&request, REQUEST_HEAD + 24, fd, NULL) == -EINVAL);
	request.program = 4;
	CHECK(ask_raw(&request, REQUEST_HEAD + 16, fd, NULL) == -EINVAL);
	/* and no semaphore in other data */
	CHECK(ask_raw(&request, REQUEST_HEAD + 24, fd, NULL) == -EINVAL);
	CHECK(ask(OP_ATTACH, 1, 0) == -EINVAL); /* not a tracepoint */
	CHECK(ask(OP_ATTACH, 3, 0) == -EINVAL); /* not loaded */
	request.n = 99;
	CHECK(ask(OP_ATTACH, 4, 0) == -EINVAL); /* not loaded */
	programs[4].enabled = true;
	CHECK(end());
	REQUIRE(start(0));
	request.n = 0;
	CHECK(ask(OP_ATTACH, 4, 0) == -EINVAL); /* without sampling */
	request.n = ATTACHER_HZ_MAX + 1;
	CHECK(ask(OP_ATTACH, 4, 0) == -EINVAL);
	CHECK(ask(OP_DETACH, 77, 0) == -EINVAL);
	CHECK(ask(OP_ITER, 1, 0) == -EINVAL);
	CHECK(ask(OP_DETACH_SITES, 0, 0) == 0);
	programs[4].enabled = false;
	CHECK(end());
	close(fd);
}

/* A function of this program in place of a library's; each of its bytes is requested as a site. */
TEST(refuses_sites_within_an_instruction)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err;
	u32 begin = 0, inside = 0, other = 0;
	struct elf_symbol sym = {};
	u64 *data = (u64 *)request.data;
	struct elf *elf = NULL;

	REQUIRE(!elf__open(&elf, fd) && !elf__find_symbol(elf, "main", &sym) && sym.size > 16);
	REQUIRE(start(0));
	for (u32 i = 0; i < 16; i++) {
		request = (struct attacher_request){ .op = OP_SITES, .program = 2, .method = ATTACH_MULTI, .n = 1 };
		data[0] = sym.offset + i;
		err = ask_raw(&request, REQUEST_HEAD + 16, fd, NULL);
		if (err == -EBADMSG && reply.verdicts[0] == SITE_INSIDE)
			inside++;
		else if (err == -EBADMSG || !err)
			other++;
		else
			begin++; /* refused by the kernel, which has no such program */
	}
	CHECK(begin >= 3 && inside >= 3 && !other);
	/* the only valid one of many is found */
	request = (struct attacher_request){ .op = OP_SITES, .program = 2, .method = ATTACH_MULTI, .n = 3 };
	data[0] = data[2] = sym.offset;
	data[1] = 64; /* a site in the ELF headers */
	CHECK(ask_raw(&request, REQUEST_HEAD + 48, fd, NULL) == -EBADMSG);
	CHECK(reply.verdicts[0] == SITE_OK && reply.verdicts[1] == SITE_NO_CODE && reply.verdicts[2] == SITE_OK);
	CHECK(end());
	elf__close(elf);
	close(fd);
}

/* Random numbers that are the same in every run. */
static u32 next_random(void)
{
	static u32 x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	return x ^= x << 5;
}

TEST(survives_random_requests)
{
	int answered = 0, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	programs[1].enabled = programs[2].enabled = false;
	REQUIRE(start(0));
	for (int i = 0; i < 20000; i++) {
		size_t len = 1 + next_random() % (i % 2 ? sizeof(request) : REQUEST_HEAD + 64);
		u32 *words = (u32 *)&request;

		for (u32 k = 0; k < (len + 3) / 4; k++)
			words[k] = next_random();
		if (i % 4)
			request.op = next_random() % OP_OPENER;
		if (i % 3)
			request.program = next_random() % 5;
		answered += ask_raw(&request, len, i % 5 ? -1 : fd, NULL) <= 0;
	}
	CHECK(answered == 20000);
	answered = 0;
	for (int i = 0; i < 5000; i++) {
		size_t len = next_random() % (i % 2 ? sizeof(request.data) : 64);
		u32 *words = (u32 *)&request;

		for (u32 k = 0; k < (REQUEST_HEAD + len + 3) / 4; k++)
			words[k] = next_random();
		if (i % 4)
			request.op = OP_OPEN + next_random() % (OP_PROCESSES + 2 - OP_OPEN);
		answered += ask_opener(len, -1, NULL) <= 0;
	}
	CHECK(answered == 5000);
	CHECK(end());
	close(fd);
}

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

	programs[1].enabled = programs[2].enabled = false;
	REQUIRE(!pipe(pipes));
	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){ .stop = &stop }));
	CHECK(attacher__read(a, pipes[0], &text, &len) == -ETIMEDOUT);
	CHECK(!attacher__stuck(a));
	CHECK(!attacher__maps(a, getpid(), &text, &len) && len && strstr(text, "attacher"));
	free(text);
	CHECK(write(pipes[1], "whole", 5) == 5);
	close(pipes[1]);
	CHECK(!attacher__read(a, pipes[0], &text, &len) && len == 5 && !strcmp(text, "whole"));
	free(text);
	close(pipes[0]);
	attacher__free(a);
}

/* A pipe that gets data only after a longer time than the worker waits for an opener after many silent ones. */
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

TEST(trusts_openers_again_after_many_answers)
{
	static const struct probes none;
	volatile sig_atomic_t stop = 1;
	struct slow slow = { .pipe = -1 };
	struct attacher *a;
	char *text = NULL;
	size_t len = 0;
	int silent[2], late[2];

	programs[1].enabled = programs[2].enabled = false;
	REQUIRE(!pipe2(silent, O_CLOEXEC));
	REQUIRE(!attacher__start(&a, &none,
				 &(struct attacher_options){ .stop = &stop, .idle = write_late, .arg = &slow }));
	for (int i = 0; i < 3; i++)
		CHECK(attacher__read(a, silent[0], &text, &len) == -ETIMEDOUT);
	for (int i = 0; i < 70; i++) {
		text = NULL;
		CHECK(!attacher__maps(a, getpid(), &text, &len));
		free(text);
	}
	REQUIRE(!pipe2(late, O_CLOEXEC));
	slow.pipe = late[1];
	stop = 0;
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

	programs[1].enabled = programs[2].enabled = false;
	REQUIRE(!attacher__start(&a, &none, &(struct attacher_options){}));
	request = (struct attacher_request){ .op = OP_OPENER, .seq = 1ULL << 63 };
	CHECK(!message__send(attacher__fd(a), &request, REQUEST_HEAD, -1));
	CHECK(attacher__signal(a, getpid(), SIGTERM) == -EPERM);
	CHECK(!attacher__maps(a, getpid(), &text, &len) && len && strstr(text, "attacher"));
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

TEST(signals_only_the_command)
{
	int status;
	pid_t command = fork();

	if (!command) {
		pause();
		_exit(0);
	}
	REQUIRE(command > 0 && start(command));
	request = (struct attacher_request){ .pid = getpid(), .n = SIGTERM };
	CHECK(ask(OP_SIGNAL, 0, 0) == -EPERM);
	request = (struct attacher_request){ .pid = command, .n = 1000 };
	CHECK(ask(OP_SIGNAL, 0, 0) == -EPERM);
	request = (struct attacher_request){ .pid = command, .n = SIGTERM };
	CHECK(ask(OP_SIGNAL, 0, 0) == 0);
	CHECK(waitpid(command, &status, 0) == command && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(ask(OP_SIGNAL, 0, 0) == -ESRCH);
	CHECK(end());
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
