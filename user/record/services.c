// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The functions that a recording offers to the families' host code (record/family.h) and to the other files here. */
#include "attach/vmas.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "sonde.skel.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void session__left_out(struct session *s, const char *path, u32 account, const char *why)
{
	u64 now = session__now(s);

	losses__add(s, 0, LOSS_BUDGET, 1, now, now, 0);
	s->not_attached++;
	session__warn_of(s, account, "%s: sonde leaves this file out: %s", path, why);
}

u64 session__now(const struct session *s)
{
	return timing__now() + s->time.offset;
}

struct event session__event(const struct session *s, u16 id)
{
	return (struct event){ .time = session__now(s), .id = id };
}

u32 session__intern(struct session *s, const char *text)
{
	return trace_writer__intern(s->writer, text, text ? strlen(text) : 0);
}

bool session__no_args(const struct session *s)
{
	return s->args->no_args;
}

const char *session__path(const struct session *s, const char *path)
{
	const char *slash = s->args->no_args ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

int session__emit(struct session *s, const void *record, u32 size)
{
	drain__append(s, record, size);
	return s->write_error;
}

int session__map_fd(struct session *s, const char *map)
{
	return bpf_object__find_map_fd_by_name(s->embedded.skel->obj, map);
}

int session__map_set(struct session *s, const char *map, const void *key, const void *value, u64 flags)
{
	return session__map_fd(s, map) < 0 ? -ENOENT : attacher__map_set(s->attacher, map, key, value, flags);
}

int session__set_process(struct session *s, const char *map, u32 pid, const void *value)
{
	int err = session__map_set(s, map, &pid, value, BPF_ANY);

	/* the map is full */
	if (err == -E2BIG || err == -ENOMEM)
		session__lost(s, "core", LOSS_MAP_FULL, 1);
	if (err || !session__has_ended(pid))
		return err;
	attacher__map_set(s->attacher, map, &pid, NULL, 0);
	return -ESRCH;
}

bool session__has_ended(u32 tid)
{
	return kill((pid_t)tid, 0) && errno == ESRCH;
}

void session__lost(struct session *s, const char *family, u32 reason, u64 count)
{
	const struct schema_family *f = schema__family(s->embedded.schema, family);
	u64 now = session__now(s);

	if (f && count)
		losses__add(s, f->id, reason, count, now, now, 0);
}

bool session__test_switch(const char *item)
{
	return test_switch__is_set(item);
}

/*
 * A thread continues to run while an iterator visits it: what it began after the iterator has read the clock gets a
 * duration of 0.
 */
static void end_after_start(const struct session *s, void *record, u32 size)
{
	struct span *span = record;
	const struct schema_event *e = size >= sizeof(*span) ? schema__event_by_id(s->embedded.schema, span->event.id) :
							       NULL;

	if (e && e->is_span && span->start > span->event.time)
		span->event.time = span->start;
}

int session__run_iter(struct session *s, const char *name, u32 pid)
{
	const struct program *p = probes__program(&s->embedded.probes, name);
	u64 record[RECORD_MAX / sizeof(u64)]; /* aligned like a record in a ring */
	size_t len, pos = 0;
	char *buf;
	u32 size;
	int err;

	if (!p || !p->enabled)
		return -ENOENT;
	err = iter__read_all(s->attacher, p, pid, &buf, &len);
	if (err)
		return err;
	while (len - pos >= sizeof(size)) {
		memcpy(&size, buf + pos, sizeof(size));
		pos += sizeof(size);
		if (size > len - pos || size > sizeof(record))
			break;
		memcpy(record, buf + pos, size);
		end_after_start(s, record, size);
		if (host__cut(s, record, size))
			drain__append(s, record, size);
		pos += size;
	}
	free(buf);
	return 0;
}

/* Reports a failure to attach once: the program counts as refused from then on. */
static int note_attached(struct session *s, struct program *p, int err)
{
	char why[512];

	if (err && err != -EPIPE)
		refused__unattached(s, p, err, why, sizeof(why));
	return err;
}

int session__attach(struct session *s, const char *name)
{
	struct program *p = probes__program(&s->embedded.probes, name);

	return p && p->enabled ? note_attached(s, p, attacher__attach(s->attacher, p)) : -ENOENT;
}

int session__attach_clock(struct session *s, const char *name, u32 hz)
{
	struct program *p = probes__program(&s->embedded.probes, name);

	return p && p->enabled ? note_attached(s, p, attacher__clock(s->attacher, p, hz)) : -ENOENT;
}

void session__detach(struct session *s, const char *name)
{
	const struct program *p = probes__program(&s->embedded.probes, name);

	if (p)
		attacher__detach(s->attacher, p);
}

u64 session__trap_ns(const struct session *s)
{
	return s->features.entry_ns;
}

bool session__is_stopping(const struct session *s)
{
	return s->args->stop && *s->args->stop;
}

const struct step_schedule *session__schedule(const struct session *s)
{
	return s->args->schedule;
}

const struct capture_range *session__capture(const struct session *s)
{
	return s->args->capture;
}

const struct capture_range *session__step_range(const struct session *s)
{
	return s->args->step_range;
}

const char *session__step(const struct session *s)
{
	return s->args->step;
}

bool session__has_command(const struct session *s)
{
	return s->args->command_pid;
}

int session__image(struct session *s, u32 pid, struct process_image *out)
{
	int err = process__note_answer(s, pid,
				       process__is_hung(s, pid) ? -ETIMEDOUT : attacher__image(s->attacher, pid, out));

	if (err)
		return err;
	/* a target chooses its command line: each control character is replaced by a space */
	for (char *p = out->command; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	return 0;
}

bool session__may_name(struct session *s, u32 pid)
{
	return !s->args->one_user || session__user(s, pid) == s->args->user;
}

FILE *session__maps(struct session *s, u32 pid)
{
	char *text;
	size_t len;
	FILE *f;

	if (process__note_answer(s, pid,
				 process__is_hung(s, pid) ? -ETIMEDOUT : attacher__maps(s->attacher, pid, &text, &len)))
		return NULL;
	/* a stream over a copy, which is freed with the stream */
	f = fmemopen(NULL, len + 1, "w+");
	if (f && (fwrite(text, 1, len, f) != len || fseek(f, 0, SEEK_SET))) {
		fclose(f);
		f = NULL;
	}
	free(text);
	return f;
}

int session__open_mapped(struct session *s, const struct mapping *m)
{
	return attacher__open(s->attacher, m);
}

int session__signal(struct session *s, pid_t pid, int sig)
{
	return s->attacher ? attacher__signal(s->attacher, pid, sig) : -ESRCH;
}
