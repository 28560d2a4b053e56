// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the frames of one thread, and the code objects that they execute, while the process runs. */
#include "python/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/lines.h"
#include "python/text.h"
#include "util/array.h"

#define FRAMES_MAX 20000
#define TRIES	   50
#define TEXT_MAX   8192 /* bytes of a name */
#define LINES_MAX  (1 << 20)

/* FRAME_OWNED_BY_GENERATOR in pycore_frame.h, 3.11 to 3.15 */
#define OWNED_BY_GENERATOR 1

struct raw_frame {
	u64 frame, code;
	s64 offset; /* bytes, in the bytecode; negative: the frame has not begun */
};

#define PAGE 4096

struct walk {
	struct raw_frame *list;
	u32 n;
	bool cut;
	u64 page; /* address of the page that `bytes` contains; 1: none */
	u8 bytes[PAGE];
};

static u64 word_in(const u8 *bytes, u32 offset)
{
	u64 word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

/* Python itself does not show a frame that has not reached its first traceable instruction. */
static bool is_incomplete(const struct snapshot *l, u64 code, s64 offset, u32 owner)
{
	s32 first;

	if (!l->layout.code_traceable || owner == OWNED_BY_GENERATOR)
		return false;
	return snapshot__read(l, code + l->layout.code_traceable, &first, sizeof(first)) && offset < first * 2LL;
}

s64 snapshot__offset(const struct snapshot *l, const u8 *frame, u64 code)
{
	u64 start = code + l->layout.code_start;
	u32 copy;
	s32 lasti;

	if (l->layout.code_copies) {
		memcpy(&copy, frame + l->layout.frame_copy, sizeof(copy));
		/* struct _PyCodeArray: the size, then the addresses */
		start = snapshot__word(l, snapshot__word(l, code + l->layout.code_copies) + 8 + copy * 8ULL);
	}
	if (!l->layout.instr_unit)
		return (s64)(word_in(frame, l->layout.frame_instr) - start);
	memcpy(&lasti, frame + l->layout.frame_instr, sizeof(lasti));
	return lasti < 0 ? -1 : lasti * (s64)l->layout.instr_unit;
}

static int add_frame(struct walk *w, const struct raw_frame *f)
{
	if (!array__push(w->list, w->n, *f))
		return -ENOMEM;
	return 0;
}

/*
 * Reads a frame. From 3.11 on the frames of a thread are contiguous, so a page is read at once, which makes a walk
 * faster.
 */
static bool read_frame(const struct snapshot *l, struct walk *w, u64 at, u8 *frame)
{
	u64 page = at & ~(u64)(PAGE - 1);
	u32 size = l->layout.frame_size;

	if (at + size > page + PAGE)
		return snapshot__read(l, at, frame, size);
	if (w->page != page) {
		w->page = 1;
		if (!snapshot__read(l, page, w->bytes, PAGE))
			return false;
		w->page = page;
	}
	memcpy(frame, w->bytes + (at - page), size);
	return true;
}

/* Returns 0; -EAGAIN: the frames were inconsistent, as the thread ran meanwhile; -ENOMEM. */
static int walk_frames(const struct snapshot *l, u64 state, struct walk *w)
{
	const struct python_layout *p = &l->layout;
	u64 at = snapshot__word(l, state + p->state_frame), type;
	u8 frame[256];
	u32 owner, i;

	w->n = 0;
	w->page = 1;
	w->cut = false;
	if (p->by_cframe)
		at = at ? snapshot__word(l, at + p->cframe_frame) : 0;
	for (i = 0; at && i < FRAMES_MAX; i++) {
		struct raw_frame f = { .frame = at };

		if ((at & 7) || p->frame_size > sizeof(frame) || !read_frame(l, w, at, frame))
			return -EAGAIN;
		at = word_in(frame, p->frame_previous);
		owner = p->owner_skipped ? frame[p->frame_owner] : 0;
		if (p->owner_skipped && owner >= p->owner_skipped)
			continue;
		/* from 3.14 on the lowest bits are a tag */
		f.code = word_in(frame, p->frame_code) & ~7ULL;
		/* a code object that was read before need not be checked again */
		if (!map__find(&l->codes, &f.code) &&
		    (!snapshot__read(l, f.code + p->head - 8, &type, sizeof(type)) || type != l->code_type))
			return -EAGAIN;
		f.offset = snapshot__offset(l, frame, f.code);
		if (!w->n && is_incomplete(l, f.code, f.offset, owner))
			continue;
		if (add_frame(w, &f))
			return -ENOMEM;
	}
	w->cut = at;
	return 0;
}

u64 snapshot__c_stack(const struct snapshot *l, u64 state)
{
	const struct python_layout *p = &l->layout;
	u64 at;
	u8 owner;

	if (p->state_cframe)
		return snapshot__word(l, state + p->state_cframe);
	if (!p->owner_skipped)
		return 0;
	/* from 3.13 on the loop of the interpreter adds a frame, which is a variable on its C stack */
	at = snapshot__word(l, state + p->state_frame);
	for (u32 i = 0; at && i < FRAMES_MAX; i++) {
		if (!snapshot__read(l, at + p->frame_owner, &owner, sizeof(owner)))
			return 0;
		if (owner >= p->owner_skipped)
			return at;
		at = snapshot__word(l, at + p->frame_previous);
	}
	return 0;
}

/* Do two walks agree? The position in the innermost frame may differ: it changes while the stack stays the same. */
static bool is_same(const struct walk *a, const struct walk *b)
{
	if (a->n != b->n || a->cut != b->cut)
		return false;
	for (u32 i = 0; i < a->n; i++)
		if (a->list[i].frame != b->list[i].frame || a->list[i].code != b->list[i].code ||
		    (i && a->list[i].offset != b->list[i].offset))
			return false;
	return true;
}

char *snapshot__text(const struct snapshot *l, u64 str)
{
	const struct python_layout *p = &l->layout;
	u64 words[3], length, at; /* length, hash, state */
	u32 state, kind;
	char *text;
	u8 *chars;

	if (!str || !snapshot__read(l, str + p->head, words, sizeof(words)))
		return NULL;
	state = (u32)words[2] >> p->str_kind_shift;
	kind = state & 7;
	/* only compact strings, whose characters directly follow the head */
	if (!(state & 8) || (kind != 1 && kind != 2 && kind != 4))
		return NULL;
	length = words[0] < TEXT_MAX / kind ? words[0] : TEXT_MAX / kind;
	at = str + (state & 16 ? p->str_ascii : p->str_compact);
	chars = malloc(length * kind + 1);
	text = chars && snapshot__read(l, at, chars, length * kind) ? python__utf8(chars, length * kind, kind) : NULL;
	free(chars);
	return text;
}

static void read_lines(const struct snapshot *l, struct snapshot_code *c, u64 bytes)
{
	u64 size;

	if (!bytes || !snapshot__read(l, bytes + l->layout.head, &size, sizeof(size)) || !size || size > LINES_MAX)
		return;
	c->lines = malloc(size);
	if (c->lines && snapshot__read(l, bytes + l->layout.bytes_data, c->lines, size))
		c->lines_size = (u32)size;
}

/*
 * Reads a code object once until objects are forgotten: it does not change, and its memory is hardly ever reused so
 * soon.
 */
static struct snapshot_code *code_at(struct snapshot *l, u64 code)
{
	const struct python_layout *p = &l->layout;
	struct snapshot_code *c = map__find(&l->codes, &code);
	u8 head[256];

	if (c)
		return c;
	if (l->code_bytes_max && l->code_bytes > l->code_bytes_max)
		return NULL;
	c = map__get(&l->codes, &code);
	if (!c || p->code_name > 248 || p->code_file > 248 || p->code_lines > 248 || p->code_line > 248 ||
	    !snapshot__read(l, code, head, sizeof(head)))
		return c;
	c->name = snapshot__text(l, word_in(head, p->code_name));
	c->file = snapshot__text(l, word_in(head, p->code_file));
	c->first_line = (u32)word_in(head, p->code_line);
	read_lines(l, c, word_in(head, p->code_lines));
	l->code_bytes += sizeof(*c) + (c->name ? strlen(c->name) : 0) + (c->file ? strlen(c->file) : 0) + c->lines_size;
	return c;
}

bool snapshot__frame(struct snapshot *l, u64 code, s64 offset, struct snapshot_frame *out)
{
	const struct snapshot_code *c = code_at(l, code);

	if (!c)
		return false;
	*out = (struct snapshot_frame){
		.name = c->name ? c->name : "?",
		.file = c->file ? c->file : "?",
		.line = python__line(l->layout.version, c->lines, c->lines_size, c->first_line, offset),
		.first_line = c->first_line,
	};
	return true;
}

bool snapshot__name_frame(struct snapshot *l, u64 code, u64 str, struct snapshot_frame *f)
{
	struct snapshot_code *c = code_at(l, code);

	if (c && !c->qualified) {
		c->qualified = snapshot__text(l, str);
		l->code_bytes += c->qualified ? strlen(c->qualified) : 0;
	}
	if (c && c->qualified)
		f->name = c->qualified;
	return c != NULL;
}

static int keep_frames(struct snapshot *l, struct snapshot_thread *t, const struct walk *w)
{
	t->frames = calloc(w->n + 1, sizeof(*t->frames));
	if (!t->frames)
		return -ENOMEM;
	t->cut = w->cut;
	for (u32 i = 0; i < w->n; i++)
		if (!snapshot__frame(l, w->list[i].code, w->list[i].offset, &t->frames[t->n_frames++]))
			return -ENOMEM;
	return 0;
}

int snapshot__stack(struct snapshot *l, struct snapshot_thread *t)
{
	struct walk walks[2] = {}, *first = &walks[0], *second = &walks[1], *swap;
	int err = walk_frames(l, t->state, first), again;

	for (u32 i = 0; i < TRIES && err != -ENOMEM; i++) {
		again = walk_frames(l, t->state, second);
		if (!err && !again && is_same(first, second))
			break;
		swap = first;
		first = second;
		second = swap;
		/* a stack that changed at every attempt is reported as torn */
		err = again ? again : i + 1 < TRIES ? 0 : -EAGAIN;
	}
	t->torn = err == -EAGAIN;
	if (!err)
		err = keep_frames(l, t, first);
	free(walks[0].list);
	free(walks[1].list);
	return err == -ENOMEM ? err : 0;
}

void snapshot__forget_objects(struct snapshot *l)
{
	MAP_EACH(struct snapshot_code *c, &l->codes) {
		free(c->name);
		free(c->qualified);
		free(c->file);
		free(c->lines);
	}
	MAPS_FREE(&l->codes, &l->types);
	l->code_bytes = 0;
}
