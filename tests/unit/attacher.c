// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The attacher with a compromised worker: it refuses invalid requests and opens only ELF files. */
#include "attacher_support.h"
#include "elf/elf.h"
#include "site/verify_site.h"

#include <dirent.h>

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

TEST_MAIN()
