// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules on libraries: those compiled in pass their own tests, and errors in others are named. */
#include "findings/rules.h"

#include <errno.h>

#include "test.h"

static const struct rule *python(const char *file, const char *function)
{
	return rule__of(&(struct stack_frame){ .kind = FRAME_PYTHON, .file = file, .symbol = function });
}

static enum finding_kind kind(const char *file, const char *function)
{
	const struct rule *rule = python(file, function);

	return rule ? rule->kind : FINDING_KINDS;
}

TEST(own_rules)
{
	char err[512] = "";

	/* runs each line `test` of library.rules */
	CHECK(!rules__add_own(err, sizeof(err)));
	CHECK_TEXT(err, "");
}

TEST(files_and_functions)
{
	CHECK(kind("/usr/lib/python3.11/queue.py", "Queue.get") == FINDING_IDLE);
	CHECK(kind("queue.py", "get") == FINDING_IDLE);
	CHECK(kind("/v/site-packages/sqlalchemy/util/queue.py", "Queue.get") == FINDING_IDLE);
	CHECK(rule__of(
		&(struct stack_frame){ .kind = FRAME_PYTHON, .file = "/a/queue.py", .name = "get", .symbol = "get" }));
	CHECK(!rule__of(&(struct stack_frame){ .kind = FRAME_PYTHON,
					       .file = "/a/queue.py",
					       .name = "get",
					       .symbol = "get",
					       .origin = ORIGIN_ELSEWHERE }));
	CHECK(rule__of(&(struct stack_frame){ .kind = FRAME_PYTHON,
					      .file = "/opt/x/queue.py",
					      .name = "get",
					      .symbol = "get",
					      .origin = ORIGIN_LIBRARY }));
	CHECK(kind("/srv/my_queue.py", "Queue.get") == FINDING_KINDS);
	CHECK(kind("/usr/lib/python3.11/queue.py", "Queue.get_nowait") == FINDING_KINDS);
	CHECK(kind("/usr/lib/python3.11/queue.pyc", "get") == FINDING_KINDS);
	CHECK(kind("/usr/lib/python3.11/subprocess.py", "any") == FINDING_CHILD);
	CHECK(kind("/v/site-packages/gunicorn/workers/base.py", "any") == FINDING_IDLE);
	CHECK(kind("/v/site-packages/gunicorn/workers", "any") == FINDING_KINDS);
	CHECK(kind("/v/site-packages/mygunicorn/workers/base.py", "any") == FINDING_KINDS);
	CHECK(kind("", "") == FINDING_KINDS && kind("///", "x") == FINDING_KINDS);
	CHECK(!rule__of(&(struct stack_frame){ .kind = FRAME_NATIVE, .file = "/queue.py", .symbol = "get" }));
}

TEST(pools)
{
	static const char *const are[][2] = {
		{ "/v/site-packages/psycopg_pool/pool.py", "ConnectionPool.getconn" },
		{ "/v/dist-packages/urllib3/connectionpool.py", "HTTPConnectionPool._get_conn" },
		{ "/v/site-packages/sqlalchemy/pool/impl.py", "QueuePool._do_get" },
		{ "/v/site-packages/x/client.py", "ClientPool.acquire" },
		{ "/v/site-packages/aiohttp/connector.py", "BaseConnector._wait_for_available_connection" },
	};
	static const char *const are_not[][2] = {
		{ "/srv/pool.py", "Pool.get" },
		{ "/v/site-packages/carpool/seats.py", "Seats.get" },
		{ "/v/site-packages/jobs/pool.py", "Pool.submit" },
		{ "/v/site-packages/multiprocess/pool.py", "ApplyResult.get" },
		{ "/v/site-packages/pool_of/", "" },
	};

	for (u32 i = 0; i < 5; i++) {
		const struct rule *rule = python(are[i][0], are[i][1]);

		CHECK(rule && rule->role == RULE_POOL && rule->kind == FINDING_NONE);
		rule = python(are_not[i][0], are_not[i][1]);
		CHECK(!rule || rule->role != RULE_POOL);
	}
}

TEST(tasks_and_native_code)
{
	const struct stack_frame get = { .kind = FRAME_PYTHON, .file = "/l/asyncio/queues.py", .symbol = "Queue.get" };
	const struct stack_frame drain = { .kind = FRAME_PYTHON,
					   .file = "/l/asyncio/streams.py",
					   .symbol = "StreamWriter.drain" };
	const struct stack_frame c10d = { .kind = FRAME_NATIVE,
					  .file = "/l/libtorch.so",
					  .symbol = "_ZNK4c10d4Work4waitEv" };

	const struct stack_frame loop = { .kind = FRAME_NATIVE, .file = "/v/uvloop/loop.so", .symbol = "uv_run" };

	CHECK(rule__of(&loop) && rule__of(&loop)->role == RULE_NATIVE_LOOPS);
	CHECK(rule__of_task(&get) && rule__of_task(&get)->kind == FINDING_IDLE && !rule__of(&get));
	CHECK(rule__of_task(&drain) && rule__of_task(&drain)->role == RULE_SENDS);
	CHECK(rule__of(&c10d) && rule__of(&c10d)->kind == FINDING_RANKS);
}

TEST(errors)
{
	static const char *const texts[][2] = {
		{ "/a.py get\n", "r:1: this is not FILE FUNCTION.. = KIND ROLE, with blanks between the words" },
		{ "\n# x\n= idle", "r:3: this is not FILE FUNCTION.. = KIND ROLE, with blanks between the words" },
		{ "/a.py get = idle runs at once",
		  "r:1: this is not FILE FUNCTION.. = KIND ROLE, with blanks between the words" },
		{ "a.py get = idle", "r:1: the file 'a.py' has neither a / at its start nor a * in it" },
		{ "/a.py get = idel", "r:1: waits have no kind 'idel': docs/adding-a-rule.md lists the kinds" },
		{ "/a.py get = compute", "r:1: waits have no kind 'compute': docs/adding-a-rule.md lists the kinds" },
		{ "/a.py get = idle run", "r:1: there is no role 'run': docs/adding-a-rule.md lists the roles" },
		{ "/a.py get = idle\n/b.py = idle",
		  "r:1: the rule has no test: add a line `test FILE FUNCTION` with a function that it is for" },
		{ "/a.py get = idle",
		  "r:1: the rule has no test: add a line `test FILE FUNCTION` with a function that it is for" },
		{ "test /a.py get", "r:1: a test is `test FILE FUNCTION` after its rule" },
		{ "/a.py get = idle\ntest /a.py", "r:2: a test is `test FILE FUNCTION` after its rule" },
		{ "/a.py get = idle\ntest /a.py put",
		  "r:2: the test fails: the rule in line 1 is not for this function" },
		{ "/a.py get = idle native\ntest /a.py put",
		  "r:2: the test fails: the rule in line 1 is not for this function" },
		{ "/a.py = idle\ntest /a.py x\n/a.py get = peer\ntest /a.py get",
		  "r:4: the test fails: the rule in line 1 is for this function, too, and precedes it" },
		{ "words x", "r:1: words are a line `words TEXT` after a rule that has none" },
		{ "/a.py = idle\n\twords  \r\ntest /a.py x",
		  "r:2: words are a line `words TEXT` after a rule that has none" },
		{ "/a.py = idle\nwords one\nwords two\ntest /a.py x",
		  "r:3: words are a line `words TEXT` after a rule that has none" },
		{ "/a.py = idle\nwords 12345678901234567890123456789012345678901234567890123456789012345678901234567890+",
		  "r:2: words of more than 80 bytes" },
	};
	char err[512], many[600] = "/a.py";

	for (u32 i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		CHECK(rules__add("r", texts[i][0], err, sizeof(err)) == -EINVAL);
		CHECK_TEXT(err, texts[i][1]);
	}
	for (u32 i = 0; i < 150; i++)
		strcat(many, " f");
	CHECK(rules__add("r", many, err, sizeof(err)) == -EINVAL);
	CHECK_TEXT(err, "r:1: more than 128 words: make two rules of it");
	CHECK(kind("/a.py", "get") == FINDING_KINDS);
}

TEST(words)
{
	char err[512] = "";
	const struct rule *rule;

	CHECK(!rules__add("w", "/words.py get = peer\n\t words  an answer of the  oracle \t\r\ntest /words.py get\n",
			  err, sizeof(err)));
	CHECK_TEXT(err, "");
	rule = python("/l/words.py", "get");
	CHECK(rule && rule->words);
	CHECK_TEXT(rule->words, "an answer of the  oracle");
	CHECK(!python("/usr/lib/python3.11/threading.py", "Condition.wait")->words);
}

TEST(added_rules_come_first)
{
	char err[512] = "";

	CHECK(kind("/l/queue.py", "Queue.get") == FINDING_IDLE);
	CHECK(!rules__add("one", "/queue.py get = peer # a comment\r\n\ttest /x/queue.py Queue.get", err, sizeof(err)));
	CHECK(!rules__add("two",
			  "/queue.py get = disk\ntest /x/queue.py Queue.get\n*/led*r.py = child\ntest /x/ledger.py y\n",
			  err, sizeof(err)));
	CHECK_TEXT(err, "");
	CHECK(kind("/l/queue.py", "Queue.get") == FINDING_PEER);
	CHECK(kind("/l/queue.py", "Queue.put") == FINDING_QUEUE);
	CHECK(kind("/l/ledger.py", "y") == FINDING_CHILD);
}

TEST_MAIN()
