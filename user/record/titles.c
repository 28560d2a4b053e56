// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A title is read when the recording ends, as the peers are found then. A process that set one has a single argument
 * with blanks, such as "postgres: app shop 127.0.0.1(51234) UPDATE waiting".
 */
#include "record/titles.h"

#include <string.h>

#include "record/family.h"
#include "record/parts.h"
#include "util/utf8.h"

#define TITLES_MAX 256 /* requests to the opener as a recording ends */

void titles__note_peer(struct session *s, const struct syscall_peer *peer)
{
	struct {
		struct syscall_title title;
		char text[128];
	} r = { .title.event = session__event(s, ID_syscall_title) };
	struct process_image image;

	/* a listener does not serve the client itself */
	if (!peer->other_end || session__no_args(s) || s->titles_read >= TITLES_MAX)
		return;
	s->titles_read++;
	if (session__image(s, peer->event.pid, &image) || !image.has_title)
		return;
	r.title.event.pid = r.title.event.tid = peer->event.pid;
	utf8__copy(r.text, sizeof(r.text), image.command);
	session__emit(s, &r, (u32)(sizeof(r.title) + strlen(r.text) + 1));
}
