// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes packets, frames, interned texts and clocks. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "export/perfetto.h"
#include "util/array.h"

#define FRAME_BYTES (4u << 20) /* before compression */
#define LEVEL	    3
#define SEQUENCE    1 /* of track events, whose texts are interned; other packets use OTHERS */
#define OTHERS	    2
#define JITTER	    1000000 /* ns: a suspend shifts CLOCK_BOOTTIME by more, reading the clocks by less */

enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6 };
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };

struct intern_key {
	u64 key; /* usually its address, so a text at two addresses is emitted twice */
	u32 kind, key_kind;
};

static void write_out(struct perfetto *p, const void *data, size_t len, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t size = ZSTD_CStreamOutSize(), left = 1;

	if (!p->zstd) {
		if (fwrite(data, 1, len, p->out) != len)
			p->err = -EIO;
		return;
	}
	while (!p->err && (how == ZSTD_e_end ? left : in.pos < in.size)) {
		ZSTD_outBuffer out = { p->compressed, size, 0 };

		left = ZSTD_compressStream2(p->zstd, &out, &in, how);
		if (ZSTD_isError(left) || fwrite(p->compressed, 1, out.pos, p->out) != out.pos)
			p->err = -EIO;
	}
}

static void put_info(struct perfetto *p)
{
	const struct trace_head *head = p->e->facts->head;
	size_t info, utsname;

	/* trace_processor rejects a snapshot that is older than the one before it */
	if (p->clock.monotonic)
		perfetto__put_clocks(p, p->clock.monotonic, p->clock.realtime);
	else
		perfetto__put_clocks(p, head->monotonic, head->realtime);
	packet__begin(p, 0);
	info = pb__begin(&p->packet, PACKET_SYSTEM_INFO);
	utsname = pb__begin(&p->packet, 1);
	pb__text(&p->packet, 1, "Linux", 5);
	/* the kernel's release determines how thread states are numbered */
	pb__text(&p->packet, 3, head->kernel, strlen(head->kernel));
	pb__text(&p->packet, 4, head->arch, strlen(head->arch));
	pb__end(&p->packet, utsname);
	pb__int(&p->packet, 8, head->cpus);
	pb__text(&p->packet, 17, head->hostname, strlen(head->hostname));
	pb__end(&p->packet, info);
	packet__end(p, false);
}

/* Lets viewers recognize a trace: the UUID is the same for each export of a recording. */
static void put_uuid(struct perfetto *p)
{
	const struct trace_head *head = p->e->facts->head;
	u64 hash = XXH64(head->boot_id, strlen(head->boot_id), head->monotonic);
	size_t at;

	packet__begin(p, 0);
	at = pb__begin(&p->packet, PACKET_TRACE_UUID);
	pb__int(&p->packet, 1, hash);
	pb__int(&p->packet, 2, XXH64(head->hostname, strlen(head->hostname), head->realtime));
	pb__end(&p->packet, at);
	packet__end(p, false);
}

static void begin_frame(struct perfetto *p)
{
	p->frame++;
	p->frame_bytes = 0;
	p->is_frame_new = true;
	put_uuid(p);
	put_info(p);
	perfetto__put_root(p);
	perfetto__put_gpus(p);
}

void perfetto__maybe_next_frame(struct perfetto *p)
{
	if (!p->zstd || p->frame_bytes < FRAME_BYTES)
		return;
	perfetto__flush_sched(p, false);
	perfetto__put_idle_processes(p);
	write_out(p, NULL, 0, ZSTD_e_end);
	begin_frame(p);
}

int perfetto__open(struct perfetto *p)
{
	const char *path = p->e->path;
	size_t len = path ? strlen(path) : 0;

	p->out = p->e->out;
	if (len > 4 && !strcmp(path + len - 4, ".zst")) {
		p->zstd = ZSTD_createCCtx();
		p->compressed = malloc(ZSTD_CStreamOutSize());
		if (!p->zstd || !p->compressed)
			return -ENOMEM;
		ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
	}
	map__init(&p->interns, sizeof(struct intern_key), sizeof(struct interned));
	begin_frame(p);
	return p->err;
}

int perfetto__close(struct perfetto *p)
{
	if (p->zstd && !p->err)
		write_out(p, NULL, 0, ZSTD_e_end);
	if (p->packet.failed || p->interned.failed || p->descriptor.failed)
		p->err = -ENOMEM;
	ZSTD_freeCCtx(p->zstd);
	free(p->compressed);
	free(p->clocks);
	map__free(&p->interns);
	pb__free(&p->packet);
	pb__free(&p->interned);
	pb__free(&p->descriptor);
	return p->err;
}

void packet__begin(struct perfetto *p, u64 time)
{
	p->packet.len = 0;
	p->interned.len = 0;
	if (time)
		pb__int(&p->packet, PACKET_TIMESTAMP, perfetto__boottime(p, time));
}

void packet__end(struct perfetto *p, bool on_sequence)
{
	struct pb head = { 0 };
	u8 buf[16];

	if (p->interned.len)
		pb__bytes(&p->packet, PACKET_INTERNED_DATA, p->interned.data, p->interned.len);
	pb__int(&p->packet, PACKET_SEQUENCE, on_sequence ? SEQUENCE : OTHERS);
	if (on_sequence) {
		pb__int(&p->packet, PACKET_SEQUENCE_FLAGS, STATE_NEEDED | (p->is_frame_new ? STATE_CLEARED : 0));
		p->is_frame_new = false;
	}
	if (p->packet.failed)
		return;
	head.data = buf;
	head.allocated = sizeof(buf);
	pb__varint(&head, 1 << 3 | 2); /* Trace.packet */
	pb__varint(&head, p->packet.len);
	write_out(p, buf, head.len, ZSTD_e_continue);
	write_out(p, p->packet.data, p->packet.len, ZSTD_e_continue);
	p->frame_bytes += head.len + p->packet.len;
}

u64 perfetto__number(struct perfetto *p, struct map *interned, const void *key, bool *must_emit)
{
	struct interned *t = map__get(interned, key);

	*must_emit = false;
	if (!t) {
		p->packet.failed = true;
		return 0;
	}
	if (!t->number)
		t->number = interned->n;
	*must_emit = t->frame != p->frame;
	t->frame = p->frame;
	return t->number;
}

u64 perfetto__intern_by(struct perfetto *p, enum intern what, enum intern_by by, u64 key, const void *data, size_t len)
{
	struct intern_key id = { key, what, by };
	bool must_emit;
	u64 number = perfetto__number(p, &p->interns, &id, &must_emit);
	size_t at;

	if (must_emit) {
		at = pb__begin(&p->interned, what);
		pb__int(&p->interned, 1, number);
		/* Texts are converted to UTF-8, bytes are not. */
		if (what == INTERN_BUILD_ID)
			pb__bytes(&p->interned, 2, data, len);
		else
			pb__text(&p->interned, 2, data, len);
		pb__end(&p->interned, at);
	}
	return number;
}

u64 perfetto__intern(struct perfetto *p, enum intern what, const char *text, size_t len)
{
	return perfetto__intern_by(p, what, BY_ADDRESS, (u64)(uintptr_t)text, text, len);
}

static int add_clock(struct perfetto *p, u64 monotonic, u64 boottime)
{
	u64 ahead = boottime - monotonic, before;

	if (p->n_clocks) {
		before = p->clocks[p->n_clocks - 1].ahead;
		if ((ahead > before ? ahead - before : before - ahead) < JITTER ||
		    monotonic < p->clocks[p->n_clocks - 1].monotonic)
			return 0;
	}
	if (!array__push(p->clocks, p->n_clocks, (struct clock_step){ monotonic, ahead }))
		return -ENOMEM;
	return 0;
}

static int on_clocks(const struct rows *rows, void *arg)
{
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = add_clock(arg, (u64)view__get(&v, "monotonic"), (u64)view__get(&v, "boottime"));
	return err;
}

int perfetto__load_clocks(struct perfetto *p)
{
	const struct trace_head *head = p->e->facts->head;
	/* An older trace may lack boottime; the clocks are then taken as equal. */
	int err = add_clock(p, head->monotonic, head->boottime ? head->boottime : head->monotonic);

	if (!err && head->boottime)
		err = trace__read_kind(p->e->trace, "meta_clock", on_clocks, p);
	return err;
}

u64 perfetto__boottime(const struct perfetto *p, u64 monotonic)
{
	u32 i = p->n_clocks;

	while (i > 1 && p->clocks[i - 1].monotonic > monotonic)
		i--;
	return monotonic + p->clocks[i - 1].ahead;
}

static void put_clock(struct perfetto *p, u32 id, u64 time)
{
	size_t at = pb__begin(&p->packet, 1);

	pb__int(&p->packet, 1, id);
	pb__int(&p->packet, 2, time);
	pb__end(&p->packet, at);
}

void perfetto__put_clocks(struct perfetto *p, u64 monotonic, u64 realtime)
{
	size_t at;

	if (monotonic < p->clock.monotonic)
		return;
	p->clock.monotonic = monotonic;
	p->clock.realtime = realtime;
	packet__begin(p, monotonic);
	at = pb__begin(&p->packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(p, CLOCK_ID_BOOTTIME, perfetto__boottime(p, monotonic));
	put_clock(p, CLOCK_ID_MONOTONIC, monotonic);
	if (realtime)
		put_clock(p, CLOCK_ID_REALTIME, realtime);
	pb__int(&p->packet, 2, CLOCK_ID_BOOTTIME);
	pb__end(&p->packet, at);
	packet__end(p, false);
}
