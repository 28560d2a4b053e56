// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nested calls, read in the order of their ends. */
#include "model/nesting.h"
#include "test.h"

static u64 inner_ns, inner_calls;

static void on_inner(const struct nesting_call *c, void *arg)
{
	inner_ns += c->end - c->start;
	inner_calls++;
}

static void call(struct nesting *n, u32 tid, u64 start, u64 end)
{
	struct nesting_call c = { .pid = 1, .tid = tid, .start = start, .end = end };

	if (nesting__add(n, &c))
		abort();
}

TEST(nested_calls)
{
	struct nesting n;

	inner_ns = inner_calls = 0;
	nesting__init(&n, on_inner, NULL);
	call(&n, 1, 0, 10);
	call(&n, 1, 10, 20);
	CHECK(!inner_calls);
	call(&n, 1, 31, 35);
	call(&n, 1, 36, 38);
	call(&n, 1, 30, 40);
	CHECK(inner_calls == 2 && inner_ns == 6);
	/* another thread's call is not nested */
	call(&n, 2, 50, 60);
	call(&n, 1, 45, 70);
	CHECK(inner_calls == 2);
	/* each is reported once, by the next outer one */
	call(&n, 3, 102, 103);
	call(&n, 3, 101, 104);
	call(&n, 3, 100, 105);
	CHECK(inner_calls == 4 && inner_ns == 6 + 1 + 3);
	nesting__free(&n);
}

TEST(many_nested_calls)
{
	struct nesting n;

	inner_ns = inner_calls = 0;
	nesting__init(&n, on_inner, NULL);
	for (u64 i = 0; i < 100000; i++)
		call(&n, 4, 1000 + 10 * i, 1005 + 10 * i);
	CHECK(!inner_calls);
	call(&n, 4, 1000 + 10 * (100000 - 200), 2000000000);
	CHECK(inner_calls == 200);
	nesting__free(&n);
}

TEST_MAIN()
