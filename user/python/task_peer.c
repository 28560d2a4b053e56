// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The peer of a connection of asyncio that a task waits for: the objects whose methods its innermost coroutines run,
 * such as a StreamReader, have a reference to the transport, and this has the peer's address. uvloop's transports are
 * native objects without such references.
 */
#include "python/objects.h"
#include "python/task_reading.h"
#include "util/path.h"
#include "util/python_library.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* Objects that are examined for a transport, and how many references it may be away; slots of a transport. */
#define OBJECTS_MAX 48
#define DEPTH_MAX   3
#define SLOTS_MAX   8
#define SLOTS	    16

/* Objects in the order in which they were found: those of one depth follow each other. */
struct objects {
	u64 list[OBJECTS_MAX];
	u32 n;
};

static void add_object(struct objects *o, u64 object)
{
	for (u32 i = 0; i < o->n; i++)
		if (o->list[i] == object)
			return;
	if (o->n < OBJECTS_MAX && object__is_address(object))
		o->list[o->n++] = object;
}

/* Returns the transport that is nearest to an object; 0: none is near. */
static u64 transport_of(struct snapshot *l, u64 object)
{
	struct objects o = { .list = { object }, .n = 1 };
	u64 words[OBJECT_WORDS];
	u32 at = 0;

	for (u32 depth = 0; depth <= DEPTH_MAX; depth++)
		for (u32 end = o.n; at < end; at++) {
			enum object_type type = object__type(l, o.list[at]);

			if (type == OBJECT_TRANSPORT)
				return o.list[at];
			if (type != OBJECT_OTHER && type != OBJECT_STREAM)
				continue;
			if (!object__attribute_words(l, o.list[at], words))
				continue;
			for (u32 i = 0; i < OBJECT_WORDS; i++)
				add_object(&o, words[i]);
		}
	return 0;
}

/* Parses a pair of address and port, which more words may follow. */
static struct task_peer parse(struct snapshot *l, u64 tuple)
{
	struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	struct task_peer peer = { .port = 0 };
	u64 words[2];
	char *text;
	s64 port;

	if (object__elements(l, tuple, words, 2) < 2)
		return peer;
	text = snapshot__text(l, words[0]);
	port = object__number(l, words[1]);
	if (text && port > 0 && port < 1 << 16 &&
	    (inet_pton(AF_INET, text, address.s6_addr + 12) == 1 || inet_pton(AF_INET6, text, &address) == 1)) {
		for (u32 i = 0; i < 8; i++) {
			peer.high = peer.high << 8 | address.s6_addr[i];
			peer.low = peer.low << 8 | address.s6_addr[8 + i];
		}
		peer.port = (u16)port;
	}
	free(text);
	return peer;
}

/* The attribute `_extra`, a dict, is in a slot. */
static struct task_peer peer_of(struct snapshot *l, u64 transport)
{
	struct task_peer peer = { .port = 0 };
	u64 words[SLOTS_MAX];

	if (!snapshot__read(l, transport + SLOTS, words, sizeof(words)))
		return peer;
	for (u32 i = 0; i < SLOTS_MAX && !peer.port; i++)
		if (object__type(l, words[i]) == OBJECT_DICT)
			peer = parse(l, object__item(l, words[i], "peername"));
	return peer;
}

/* The user's objects may have connections that these tasks do not wait for. */
static bool is_users(const struct snapshot_frame *f)
{
	return !python_library__part(f->file) && !python_library__is_package(f->file);
}

/* Objects of the standard library have a connection only if they are streams: a lock or a queue has none. */
static bool has_connection(const struct snapshot_frame *f)
{
	return !python_library__part(f->file) || path__ends_with(f->file, "/asyncio/streams.py");
}

struct task_peer task_reading__peer(struct snapshot *l, const struct raw_task *t, const struct task_stack *stack)
{
	struct task_peer peer = { .port = 0 };

	for (u32 i = 0; i < stack->n && i < t->n && !peer.port && !is_users(&stack->frames[i]); i++) {
		u64 self = snapshot__word(l, t->frames[t->n - 1 - i].locals) & ~TASK_TAG_MASK;
		u64 transport = has_connection(&stack->frames[i]) ? transport_of(l, self) : 0;

		if (transport)
			peer = peer_of(l, transport);
	}
	return peer;
}
