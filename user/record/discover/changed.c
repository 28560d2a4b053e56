// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Probed files that are written to in place (cp over a library, not mv). The kernel keeps the instructions that it
 * saw when it inserted the probes: in a process that maps the new contents it would put breakpoints in the middle
 * of other code, and run the old instructions there. So the probes are removed at the first write, which for most
 * programs is the truncation before it. The file is examined anew when a process maps it next.
 *
 * Removing and inserting probes takes some 100 ms each time, in which the worker does little else, and the writer
 * decides how often. So a file that is overwritten again and again is left out until it has not been written to
 * for a while, according to its ctime, which no program can set.
 */
#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "record/stacks/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHANGES_MAX  4 /* within CHANGES_TIME */
#define ALL_MAX	     32 /* of all files together; beyond that every file that is overwritten is left out */
#define CHANGES_TIME 60000000000ULL /* ns */
#define REST	     60 /* s without a write before the file is probed again */
#define REST_SHORT   6 /* for tests */

int changed__open(struct session *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	s->objects->changed_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (s->objects->changed_fd < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->objects->changed_fd, &ev))
		return -errno;
	return 0;
}

/*
 * This process has an account of its own, and watching a file requires the right to read it. Reported once, as there
 * may be many.
 */
static void note_unwatched(struct session *s, struct object *o, int err)
{
	o->watch = 0;
	if (!warnings__is_first(&s->warnings, o->account, FIRST_UNWATCHED))
		return;
	session__warn_of(
		s, o->account,
		"%s: sonde can't notice writes to it (%s%s): if it is overwritten in place while it is probed, programs that "
		"map it then may crash. Replace it by renaming (mv, install); the same holds for other such files",
		o->path, strerror(err),
		err == EACCES ? ", as its mode lets only some accounts read it" :
		err == ENOSPC ? ", see /proc/sys/fs/inotify/max_user_watches" :
				"");
}

void object__watch(struct session *s, struct object *o)
{
	char path[32];

	if (o->watch)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", o->fd);
	o->watch = inotify_add_watch(s->objects->changed_fd, path, IN_MODIFY);
	if (o->watch < 0)
		note_unwatched(s, o, errno);
}

void object__unwatch(struct session *s, struct object *o)
{
	if (o->watch)
		inotify_rm_watch(s->objects->changed_fd, o->watch);
	o->watch = 0;
}

static int rest_seconds(void)
{
	return session__test_switch("short-rest") ? REST_SHORT : REST;
}

void object__end_rest(struct object *o)
{
	struct timespec now;
	struct stat st;

	if (!o->resting || o->fd < 0 || fstat(o->fd, &st) || clock_gettime(CLOCK_REALTIME, &now))
		return;
	/* a ctime in the future means that the clock was set back */
	if (st.st_ctim.tv_sec <= now.tv_sec && now.tv_sec - st.st_ctim.tv_sec < rest_seconds())
		return;
	o->resting = o->examined = false;
	o->changes = 0;
}

static void report_change(struct session *s, const struct object *o, int err)
{
	const char *off = err ? "its probes could not be taken off" : "its probes were taken off";

	s->not_attached++;
	if (o->resting)
		session__warn_of(
			s, o->account,
			"%s: it was overwritten in place again and again while it was probed: %s, and it is not probed "
			"again until it has not been written to for %d s. Replacing a library by renaming (mv, install) "
			"has no such gap",
			o->path, off, rest_seconds());
	else
		session__warn_of(
			s, o->account,
			"%s: it was overwritten in place while it was probed: %s; calls of processes that map it now are not recorded, those of processes that map it from now on are. Replacing a library by renaming (mv, install) has no such gap",
			o->path, off);
}

static void count_change(u32 *n, u64 *from, u64 now)
{
	if (!*n || now - *from > CHANGES_TIME) {
		*n = 0;
		*from = now;
	}
	++*n;
}

static void on_change(struct session *s, struct object *o)
{
	u64 now = session__now(s);
	int err;

	if (o->pending)
		examiner__cancel(s, o);
	/* stop watching until the file is probed again: otherwise each write would be reported */
	object__unwatch(s, o);
	if (!o->live)
		return;
	count_change(&o->changes, &o->changed_from, now);
	count_change(&s->objects->changes, &s->objects->changed_from, now);
	o->resting = o->changes >= CHANGES_MAX || s->objects->changes > ALL_MAX;
	err = attacher__drop(s->attacher, o->id);
	site_links__forget(&s->site_links, o->id);
	report_change(s, o, err);
	losses__add(s, 0, LOSS_ATTACH_GAP, 1, now, now, o->id);
	python__forget_file(s, o->key.dev, o->key.ino, o->key.generation);
	free(o->facts);
	o->facts = NULL;
	o->first = now;
	o->live = o->families = o->rejected = 0;
	o->examined = o->resting;
	o->debug_sought = o->is_preattached = false;
	/* it counts as a new object, which gets an id when it is probed */
	losses__store_path(s->losses, o->id, o->path);
	s->objects->attached--;
	o->id = 0;
}

static struct object *watched_object(struct objects *all, int watch)
{
	MAP_EACH(struct object *o, &all->by_inode)
		if (o->watch == watch)
			return o;
	return NULL;
}

void changed__poll(struct session *s)
{
	char buf[4096] __attribute__((aligned(8)));
	ssize_t n;

	while ((n = read(s->objects->changed_fd, buf, sizeof(buf))) > 0) {
		const struct inotify_event *e;

		for (char *p = buf; p < buf + n; p += sizeof(*e) + e->len) {
			struct object *o;

			e = (const struct inotify_event *)p;
			o = e->mask & IN_MODIFY ? watched_object(s->objects, e->wd) : NULL;
			if (o)
				on_change(s, o);
		}
	}
}
