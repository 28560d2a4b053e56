// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Answers of a parser child that a file has compromised: each is validated. */
#include <errno.h>
#include <stdlib.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/discover/objects.h"
#include "record/discover/shares.h"
#include "record/examine/children.h"
#include "record/parts.h"
#include "sandbox/message.h"
#include "sandbox/sandbox.h"
#include "test.h"
#include "util/sanitizer.h"

#define FILE_SIZE 65536

static const struct schema_family families[] = { { .id = 3, .name = "three" }, { .id = 4, .name = "four" } };
static struct program programs[] = {
	{ .name = "three_call",
	  .section = { .kind = SECTION_SPAN, .library = "libthree.so" },
	  .family = &families[0],
	  .enabled = true },
	{ .name = "four_site", .section = { .kind = SECTION_SITE }, .family = &families[1], .enabled = true },
	{ .name = "three_off", .section = { .kind = SECTION_SPAN }, .family = &families[0] },
};
static struct session session = {
	.embedded.probes = { .programs = programs, .n_programs = 3 },
	.load.family_on = { [3] = true, [4] = true },
};
static struct object object = { .path = "/some/file" };
static struct examination x;
static struct answer answer;

static int take(u32 kind, u32 n, size_t len)
{
	answer.head = (struct answer_head){ .kind = kind, .n = n };
	return examination__take(&x, &session, &object, &answer, ANSWER_HEAD + len, FILE_SIZE);
}

static int take_name(const char *name, size_t len)
{
	memcpy(answer.text, name, len);
	return take(ANSWER_NAME, 0, len);
}

static int take_site(struct found_site site)
{
	answer.sites[0] = site;
	return take(ANSWER_SITES, 1, sizeof(site));
}

static int take_family(struct found_family family)
{
	answer.family = family;
	return take(ANSWER_FAMILY, 0, sizeof(family));
}

static void begin(void)
{
	examination__free(&x);
	memset(&x, 0, sizeof(x));
}

TEST(an_honest_answer_is_accepted)
{
	begin();
	CHECK(!take_name("call", 5));
	CHECK(!take_site((struct found_site){ .program = 0, .name = 0, .offset = 64 }));
	CHECK(!take_family((struct found_family){ .id = 3 }));
	CHECK(!take_site((struct found_site){ .program = 1, .name = SITE_NO_NAME, .offset = 8, .counter = 16 }));
	CHECK(!take_family((struct found_family){ .id = 4, .why = "not all\n" }));
	answer.end = (struct found_end){ .result = 0 };
	CHECK(take(ANSWER_END, 0, sizeof(answer.end)) == 1);
	CHECK(x.n_families == 2 && x.families[0].n == 1 && x.families[1].first == 1 && x.families[1].n == 1);
	CHECK(!strcmp(x.families[1].family.why, "not all?"));
}

TEST(sites_are_in_the_file_and_of_the_family)
{
	begin();
	CHECK(take_site((struct found_site){ .program = 0, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(!take_name("call", 5));
	CHECK(take_site((struct found_site){ .program = 0, .name = 1, .offset = 64 }) == -EPROTO);
	CHECK(take_site((struct found_site){ .program = 0, .name = 0, .offset = FILE_SIZE }) == -EPROTO);
	CHECK(take_site((struct found_site){ .program = 0, .name = 0, .offset = 64, .counter = 64 }) == -EPROTO);
	CHECK(take_site((struct found_site){ .program = 2, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(take_site((struct found_site){ .program = 3, .name = 0, .offset = 64 }) == -EPROTO);
	CHECK(take_site((struct found_site){ .program = 1, .name = 1, .offset = 64 }) == -EPROTO);
	CHECK(!x.n_sites);
	/* host code may name the probe of its site */
	CHECK(!take_site((struct found_site){ .program = 1, .name = 0, .offset = 64 }));
	CHECK(!take_site((struct found_site){ .program = 0, .name = 0, .offset = 64 }));
	CHECK(take_family((struct found_family){ .id = 4 }) == -EPROTO);
}

TEST(families_are_requested_and_answered_once)
{
	struct found_family endless = { .id = 3 };

	begin();
	memset(endless.why, 'x', sizeof(endless.why));
	CHECK(take_family(endless) == -EPROTO);
	CHECK(take_family((struct found_family){ .id = 5 }) == -EPROTO);
	CHECK(take_family((struct found_family){ .id = 70000 }) == -EPROTO);
	CHECK(take_family((struct found_family){ .id = 3, .error = 1 }) == -EPROTO);
	CHECK(!take_family((struct found_family){ .id = 3 }));
	CHECK(take_family((struct found_family){ .id = 3 }) == -EPROTO);
	object.families = FAMILY_BIT(4);
	CHECK(take_family((struct found_family){ .id = 4 }) == -EPROTO);
	object.families = 0;
}

TEST(lengths_and_counts_agree)
{
	begin();
	CHECK(take_name("call", 4) == -EPROTO);
	CHECK(take_name("", 1) == -EPROTO);
	CHECK(take(ANSWER_SITES, 0, 0) == -EPROTO);
	CHECK(take(ANSWER_SITES, SITES_BATCH + 1, sizeof(struct found_site)) == -EPROTO);
	CHECK(take(ANSWER_SITES, 2, sizeof(struct found_site)) == -EPROTO);
	CHECK(take(ANSWER_FACTS, 0, sizeof(struct file_facts) - 1) == -EPROTO);
	CHECK(take(ANSWER_END, 0, 1) == -EPROTO);
	CHECK(examination__take(&x, &session, &object, &answer, ANSWER_HEAD - 1, FILE_SIZE) == -EPROTO);
	memset(&answer.facts, 0, sizeof(answer.facts));
	answer.facts.n_segments = FILE_SEGMENTS_MAX + 1;
	CHECK(take(ANSWER_FACTS, 0, sizeof(answer.facts)) == -EPROTO);
	answer.facts.n_segments = 0;
	strcpy(answer.facts.build_id, "../../etc");
	CHECK(take(ANSWER_FACTS, 0, sizeof(answer.facts)) == -EPROTO);
	CHECK(take(ANSWER_SYMBOL + 100, 0, 0) == -EPROTO);
	memset(answer.text, 'a', sizeof(answer.sites));
	answer.text[FILE_NAME_MAX - 1] = '\0';
	CHECK(!take(ANSWER_NAME, 0, FILE_NAME_MAX));
	answer.text[FILE_NAME_MAX - 1] = 'a';
	answer.text[FILE_NAME_MAX] = '\0';
	CHECK(take(ANSWER_NAME, 0, FILE_NAME_MAX + 1) == -EPROTO);
}

/* An answer is accepted only for a request, and only as often as an honest process sends it. */
TEST(answers_are_counted_and_match_the_request)
{
	begin();
	memset(&answer, 0, sizeof(answer));
	for (u32 i = 0; i < FILE_FACTS_MAX; i++)
		CHECK(!take(ANSWER_FACTS, 0, sizeof(answer.facts)));
	CHECK(take(ANSWER_FACTS, 0, sizeof(answer.facts)) == -EPROTO);
	memset(&answer, 0, sizeof(answer));
	CHECK(!take(ANSWER_NOTE, 0, 1));
	CHECK(take(ANSWER_NOTE, 0, 1) == -EPROTO);
	CHECK(take(ANSWER_SYMBOL, 0, sizeof(answer.symbol)) == -EPROTO);
	CHECK(take(ANSWER_CODE, 0, sizeof(answer.code)) == -EPROTO);
	begin();
	x.op = FILE_CODE;
	CHECK(take(ANSWER_FACTS, 0, sizeof(answer.facts)) == -EPROTO);
	CHECK(take_name("call", 5) == -EPROTO);
	memset(&answer, 0, sizeof(answer));
	CHECK(!take(ANSWER_CODE, 0, sizeof(answer.code)));
	CHECK(take(ANSWER_CODE, 0, sizeof(answer.code)) == -EPROTO);
}

static u32 idles;

static void on_idle(void *arg)
{
	idles++;
}

/* A child that never reads does not block its parent, and one that answers without end gets no more time. */
TEST(messages_have_limits)
{
	struct message_wait wait = { .limit_ms = 120, .idle = on_idle };
	static char bytes[4096], small[16];
	int pair[2], err = 0, fd;

	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	CHECK(!message__pending(pair[0]));
	for (u32 i = 0; i < 100000 && !err; i++)
		err = message__send_now(pair[0], bytes, sizeof(bytes), STDERR_FILENO);
	CHECK(err == -EAGAIN);
	CHECK(message__pending(pair[1]));
	CHECK(message__receive(pair[1], small, sizeof(small), &fd) == -EMSGSIZE && fd < 0);
	for (err = 0; !err;)
		err = message__await(pair[1], &wait);
	CHECK(err == -ETIMEDOUT && idles);
	close(pair[0]);
	CHECK(message__pending(pair[1]));
	close(pair[1]);
}

/* Random answers: each has a result, and no more is stored than the limit for a file. */
TEST(random_answers)
{
	/* a warning about a library counts for its owner */
	session.shares = shares__new();
	REQUIRE(session.shares);
	srand(1);
	for (u32 round = 0; round < 20; round++) {
		begin();
		for (u32 i = 0; i < 2000; i++) {
			size_t len = (size_t)rand() % (sizeof(answer) - ANSWER_HEAD);
			u32 kind = (u32)rand() % (ANSWER_END + 2);
			int err;

			for (size_t k = 0; k < len; k += 1 + (size_t)rand() % 64)
				((char *)&answer)[ANSWER_HEAD + k] = (char)(rand() % 4 ? 0 : rand());
			err = take(kind, (u32)rand() % 4, kind == ANSWER_SITES ? sizeof(struct found_site) * 2 : len);
			CHECK(err <= 1);
		}
		CHECK(x.n_sites <= FILE_SITES_MAX && x.n_names <= FILE_NAMES_MAX);
	}
	examination__free(&x);
	for (u32 i = 0; i < session.warnings.n; i++)
		free(session.warnings.texts[i]);
	shares__free(session.shares);
}

static bool has_memory(int flags)
{
	int prot = PROT_READ | PROT_WRITE;

	return mmap(NULL, 1 << 16, prot, flags | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static void try_memory(int sock, void *arg)
{
	u8 had[7] = {
		has_memory(MAP_PRIVATE),
		has_memory(MAP_SHARED),
		has_memory(MAP_PRIVATE | MAP_GROWSDOWN),
		memfd_create("memory", MFD_CLOEXEC) >= 0,
		mmap(NULL, 2ULL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
		/* read only, so that it costs only page tables */
		mmap(NULL, 2ULL << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
		mmap(NULL, 16ULL << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
	};

	message__send(sock, had, sizeof(had), -1);
}

/* All memory of the process is of the kind that its limit counts. */
TEST(memory_of_a_process_is_limited)
{
	struct message_wait wait = { .limit_ms = 10000 };
	struct sandbox child;
	u8 had[7];
	int fd;

	if (SANITIZED)
		return;
	REQUIRE(!sandbox__fork(&child, try_memory, NULL));
	REQUIRE(!message__await(child.sock, &wait));
	REQUIRE(message__receive(child.sock, had, sizeof(had), &fd) == sizeof(had));
	sandbox__end(&child);
	CHECK(had[0] && !had[1] && !had[2] && !had[3] && !had[4] && had[5] && !had[6]);
}

/* This program's file, as if a user owned it. */
static int copy_self(char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkostemp(path, O_CLOEXEC);

	while (from >= 0 && to >= 0 && sendfile(to, from, NULL, 1 << 20) > 0)
		;
	close(from);
	if (!geteuid() && fchown(to, 65534, 65534))
		return -1;
	return to;
}

static volatile sig_atomic_t stopping;

#define SHARE_LEAST_MS 3000 /* a full share of a user lasts longer, and the child needs a second of CPU time */

/* If tables take longer than functions, the child first completes them and then names the functions. */
TEST(large_files_are_named_later)
{
	static const struct session_args args = { .stop = &stopping };
	char path[] = "/tmp/sonde-examine-XXXXXX";
	struct code_request q = { .number = 7, .path = path };
	struct found_code found;
	struct found_end end;
	struct elf_symbol sym;
	struct elf *elf;
	u32 uid = geteuid() ? geteuid() : 65534;
	int err, waits = 0;
	u64 begun;
	s64 left;

	q.fd = copy_self(path);
	REQUIRE(q.fd >= 0 && !elf__open(&elf, q.fd) && !elf__find_symbol(elf, "main", &sym));
	q.offset = sym.offset + 1;
	session.args = &args;
	setenv("SONDE_TEST", "examine-slow:/tmp/sonde-examine-*", 1);
	session.shares = shares__new();
	REQUIRE(session.shares && !examiner__start(&session));
	left = shares__left(&session, uid);
	/* its user is charged for the time until its answer, independent of the next request */
	begun = message__now();
	CHECK(examine__code_at(&session, &q, &found, &end) == -EBUSY && session.examiner->children[0].busy);
	while (examiner__tick(&session) && waits++ < 1000)
		usleep(10000);
	CHECK(!session.examiner->children[0].busy && shares__left(&session, uid) < left);
	left = shares__left(&session, uid);
	usleep(10000);
	CHECK(shares__left(&session, uid) >= left);
	/* a child that gets little of a CPU is given up when its user's share is used up: such a try proves nothing */
	for (u32 tries = 0; tries < 4; tries++) {
		shares__free(session.shares);
		session.shares = shares__new();
		REQUIRE(session.shares);
		while ((err = examine__code_at(&session, &q, &found, &end)) == -EBUSY && waits++ < 10000)
			usleep(10000);
		if (err != -ETIMEDOUT || message__now() - begun < SHARE_LEAST_MS)
			break;
		printf("# the child had no second of CPU time in %llu ms: once more\n", message__now() - begun);
		begun = message__now();
		q.number++;
	}
	CHECK(!err && waits && found.has_name && !strcmp(found.name, "main"));
	left = shares__left(&session, uid);
	/* a file whose child never answers is given up, and no other file is */
	setenv("SONDE_TEST", "examine-loop:/busy", 1);
	examiner__free(session.examiner);
	REQUIRE(!examiner__start(&session));
	q.path = "/busy";
	for (waits = 0; (err = examine__code_at(&session, &q, &found, &end)) == -EBUSY && waits < 10000; waits++)
		usleep(10000);
	CHECK(err == -ETIMEDOUT && shares__left(&session, uid) < left);
	shares__free(session.shares);
	session.shares = NULL;
	q.path = path;
	q.number++;
	CHECK(!examine__code_at(&session, &q, &found, &end) && !strcmp(found.name, "main"));
	examiner__free(session.examiner);
	session.examiner = NULL;
	elf__close(elf);
	close(q.fd);
	unlink(path);
}

/* Naming functions: a child that a file keeps busy gets little time, and meanwhile its owner's other files get none. */
TEST(functions_are_named_in_time)
{
	static const struct session_args args = { .stop = &stopping };
	char path[] = "/tmp/sonde-examine-XXXXXX", name[256];
	struct elf_symbol sym;
	struct elf *elf;
	u64 begins, begun;
	int fd = copy_self(path);

	REQUIRE(fd >= 0 && !elf__open(&elf, fd));
	REQUIRE(!elf__find_symbol(elf, "main", &sym));
	session.args = &args;
	setenv("SONDE_TEST", "examine-loop:/busy", 1);
	REQUIRE(!examiner__start(&session));
	for (u32 i = 0; i < 3; i++) {
		CHECK(!session__symbol(&session, fd, path, sym.offset + 1, name, sizeof(name), &begins));
		CHECK(!strcmp(name, "main") && begins == sym.offset);
	}
	begun = message__now();
	CHECK(session__symbol(&session, fd, "/busy", sym.offset, name, sizeof(name), &begins) == -EBUSY);
	CHECK(message__now() - begun < 5000);
	/* sonde does not wait for that child */
	CHECK(session__symbol(&session, fd, path, sym.offset, name, sizeof(name), &begins) == -EBUSY);
	examiner__free(session.examiner);
	session.examiner = NULL;
	elf__close(elf);
	close(fd);
	unlink(path);
}

static struct child *child_for(u32 uid, u64 ino)
{
	const struct file_of f = { .uid = uid, .ino = ino, .mode = S_IFREG | 0666 };

	return examiner__child(&session, &f, FILE_CODE);
}

static u32 n_children(u32 uid)
{
	u32 n = 0;

	for (u32 i = 0; i < CHILDREN_MAX; i++)
		n += session.examiner->children[i].sandbox.sock >= 0 && session.examiner->children[i].key.uid == uid;
	return n;
}

/* A user with many files that keep their children busy takes no child from other users, and is charged for each. */
TEST(children_of_a_user_are_limited)
{
	static const struct session_args args = { .stop = &stopping };
	struct child *c, *others;
	u32 n;

	session.args = &args;
	setenv("SONDE_TEST", "", 1);
	session.shares = shares__new();
	REQUIRE(session.shares && !examiner__start(&session));
	others = child_for(2, 1);
	REQUIRE(others && child__leave(&session, others, 1000, message__now()) == -EBUSY);
	for (u64 i = 1; i <= CHILDREN_MAX && (c = child_for(1, i)) && !c->busy; i++)
		;
	n = n_children(1);
	CHECK(n > 1 && n < CHILDREN_MAX / 2 && n_children(2) == 1 && others->busy);
	/*
	 * if all are busy the oldest is ended: its file is given up, and its user is charged for its time, within
	 * limits
	 */
	for (u64 i = 1; i <= n; i++) {
		c = child_for(1, 100 + i);
		REQUIRE(c && child__leave(&session, c, i, message__now() - 600000) == -EBUSY);
	}
	CHECK(shares__left(&session, 1) == 5000000000LL && !examiner__is_slow(session.examiner, 1));
	CHECK(child_for(1, 200) && n_children(1) == n);
	CHECK(examiner__is_slow(session.examiner, 1) && !examiner__is_slow(session.examiner, 2));
	CHECK(shares__left(&session, 1) < 0 && shares__left(&session, 1) > -4000000000LL);
	CHECK(shares__left(&session, 2) > 0);
	/* an idle one is ended before a busy one */
	CHECK(child_for(1, 201) && !examiner__is_slow(session.examiner, 2));
	examiner__free(session.examiner);
	session.examiner = NULL;
	shares__free(session.shares);
	session.shares = NULL;
}

TEST_MAIN()
