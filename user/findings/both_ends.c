// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/both_ends.h"

#include <stdio.h>
#include <string.h>

#include "output/text.h"
#include "util/path.h"

/*
 * In a protocol of requests and answers one end at a time waits for data. If both wait, the data is on its way or held
 * back: by Nagle's algorithm until the peer acknowledges what it has, which it delays by 40 ms (TCP_DELACK_MIN of
 * include/net/tcp.h), rounded up to ticks of the kernel's clock.
 */
#define DELAY_MIN_NS 36000000u
#define DELAY_MAX_NS 60000000u
#define TIMES_MIN    10

struct waits {
	u64 ns, times;
};

static struct waits waits_of(const struct finding_input *in, const struct group *g, u64 object)
{
	struct waits w = { 0 };

	for (u32 i = 0; i < g->n; i++) {
		const struct profile_cell *cell = profile__cell(in->profile, g->cells[i]);
		const struct profile_key *key = profile__key(in->profile, g->cells[i]);

		/* after a wait the thread is runnable */
		if (key->object != object || key->state != ACTIVITY_BLOCKED)
			continue;
		w.ns += cell->ns;
		w.times += cell->times;
	}
	return w;
}

/* Returns the ns for which threads waited for data at the other end of the connection with this name. */
static u64 other_end_ns(const struct finding_input *in, const char *name)
{
	char other[OSRT_FILE_NAME];
	u64 ns = 0;

	osrt_file__write_other_end(name, other, sizeof(other));
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		const struct osrt_file *file = key->object && key->state == ACTIVITY_BLOCKED ?
						       osrt_files__find(in->files, key->thread.pid, (u32)key->object) :
						       NULL;

		if (file && *other && path__begins_with(osrt_files__name(in->files, file->number), other))
			ns += cell->ns;
	}
	return ns;
}

bool both_ends__add(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct group_most most = group__most(in, g, GROUP_OBJECT);
	struct waits own = waits_of(in, g, most.value);
	u64 other, both, window = query__measured(in->q);
	char text[192];

	if (strncmp(f->object, "tcp ", 4) != 0 || own.times < TIMES_MIN || own.ns < DELAY_MIN_NS * own.times ||
	    own.ns > DELAY_MAX_NS * own.times)
		return false;
	other = other_end_ns(in, f->object);
	both = own.ns + other > window ? own.ns + other - window : 0;
	if (2 * both < own.ns)
		return false;
	f->words = "delayed ACKs, as Nagle's algorithm holds small writes back";
	f->confidence = FINDING_ATTRIBUTED;
	snprintf(
		text, sizeof(text),
		"both ends of the connection waited for each other at the same time, %s in each round trip: one of them sends "
		"each message by several small writes without TCP_NODELAY",
		TEXT_NS(own.ns / own.times));
	finding__add_detail(f, text);
	return true;
}
