/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Code objects: how they are identified and sent to the worker (docs/python.md). */
#pragma once

#include "core/python_memory.bpf.h"

/* Mixes the length, the hash (if Python has computed it) and the last characters of a str into `hash`. */
static __always_inline u64 python__check_text(struct python_thread *t, const struct python_layout *l, u64 hash,
					      u64 text, struct task_struct *task)
{
	u64 *words = t->text, state, end;

	/* length, hash, state */
	if (python__read(words, 24, text + l->head, task))
		return hash;
	hash = python__mix(python__mix(hash, words[0]), words[1]);
	if (words[1] != ~0ULL)
		return hash;
	state = words[2] >> l->str_kind_shift;
	end = text + (state & 16 ? l->str_ascii : l->str_compact) + words[0] * (state & 7);
	if (!python__read(words, 16, end - 16, task))
		hash = python__mix(python__mix(hash, words[0]), words[1]);
	return hash;
}

/*
 * A checksum over the parts of a code object that never change. From 3.12 on each code object has a unique version.
 * Before 3.12 its names and line table are read, too: new code objects can come to lie at the addresses of freed
 * ones, in the same order.
 */
static __always_inline u64 python__check(struct python_thread *t, const struct python_layout *l,
					 struct task_struct *task)
{
	u64 name = code_word(t, l->code_name), file = code_word(t, l->code_file), lines = code_word(t, l->code_lines);
	u32 from = l->code_check;
	u64 hash = python__mix(python__mix(name, file), lines);

	for (u32 i = 0; i < 6; i++)
		hash = python__mix(hash, code_word(t, from + 8 * i));
	if (l->code_version)
		return hash;
	/* ob_size and the first bytes */
	if (!python__read(t->text, 32, lines + l->head, task))
		hash = python__mix(python__mix(python__mix(hash, t->text[0]), t->text[2]), t->text[3]);
	return python__check_text(t, l, python__check_text(t, l, hash, name, task), file, task);
}

/* Frames of a thread that runs meanwhile may be those of calls that have returned, and so their code may be freed. */
static __always_inline bool python__is_settled(const struct python_memo *m, const struct python_cursor *c)
{
	return c->now && c->is_current && c->now - m->read < MEMO_TRUSTED && m->read - m->since >= MEMO_SETTLED;
}

/*
 * Checks that `code` is a code object, and computes its checksum. A code object that was read since the last one was
 * created or freed need not be read again, nor one that occurs twice in a stack. Returns 0 or enum loss_reason.
 */
static __always_inline u32 python__know(struct python_walk *w, u64 code, u64 *check, struct task_struct *task)
{
	struct python_thread *t = w->t;
	struct python_memo *m = &w->known->memos[(code >> 5 ^ code >> 12) & (PYTHON_MEMOS - 1)];
	struct python_cursor *c = &t->cursor;

	if (m->code == code && (m->epoch == c->epoch || python__is_settled(m, c))) {
		*check = m->check;
		return 0;
	}
	if (python__read(t->code, PYTHON_CODE_READ, code, task))
		return LOSS_READ;
	if (code_word(t, w->l->head - 8) != c->code_type)
		return LOSS_TORN;
	*check = python__check(t, w->l, task);
	if (m->code != code || m->check != *check)
		m->since = c->now;
	m->code = code;
	m->check = *check;
	m->epoch = c->epoch;
	m->read = c->now;
	return 0;
}

static __always_inline long python__send_piece(struct python_walk *w, struct task_struct *task)
{
	struct python_text *x = &w->t->sending;
	struct raw_code *raw = &w->known->raw;
	u32 size = x->total - x->at;

	if (size > RAW_CODE_CHUNK)
		size = RAW_CODE_CHUNK;
	barrier_var(size);
	if (size > RAW_CODE_CHUNK)
		return 1;
	raw->at = x->at;
	raw->total = x->total;
	raw->size = size;
	if (size && python__read(raw->data, size, x->from + x->at, task)) {
		raw->total = raw->size = raw->at = size = 0;
		raw->width = 0;
		x->total = 0;
	}
	if (!emit(raw, __builtin_offsetof(struct raw_code, data) + ((size + 7) & 0x7f8)))
		x->failed = 1;
	x->at += size;
	return x->failed || x->at >= x->total;
}

static long python__send_piece_here(u32 i, struct python_walk *w)
{
	return python__send_piece(w, NULL);
}

#ifdef PYTHON_WALK_TASKS
static long python__send_piece_there(u32 i, struct python_walk *w)
{
	return python__send_piece(w, w->task);
}
#endif

#define PYTHON_TEXT_MAX	 8192
#define PYTHON_LINES_MAX (1 << 20)

/* Finds the address and the width of the characters of a str. */
static __always_inline void python__text(struct python_walk *w, u64 object, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct raw_code *raw = &w->known->raw;
	struct python_text *x = &t->sending;
	u32 state, kind;

	x->total = 0;
	raw->width = 0;
	/* length, hash, state */
	if (!object || python__read(t->text, 24, object + l->head, task))
		return;
	state = (u32)t->text[2] >> l->str_kind_shift;
	kind = state & 7;
	/* not compact, or an invalid kind */
	if (!(state & 8) || (kind != 1 && kind != 2 && kind != 4))
		return;
	x->from = object + (state & 16 ? l->str_ascii : l->str_compact);
	raw->width = kind;
	if (t->text[0] > PYTHON_TEXT_MAX)
		t->text[0] = PYTHON_TEXT_MAX;
	x->total = t->text[0] * kind;
}

/*
 * Sends a part of the code object that is in the thread's buffer. Returns 1 if the ring had no room, which emit()
 * counts, else 0.
 */
static __always_inline int python__send_part(struct python_walk *w, u32 part, struct task_struct *task)
{
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;
	struct raw_code *raw = &w->known->raw;
	struct python_text *x = &t->sending;
	u64 object;

	x->at = x->failed = 0;
	raw->part = part;
	if (part == RAW_CODE_LINES) {
		object = code_word(t, l->code_lines);
		raw->width = 1;
		x->from = object + l->bytes_data;
		x->total = python__word(object + l->head, task);
		if (x->total > PYTHON_LINES_MAX)
			x->total = 0;
	} else {
		object = code_word(t, part == RAW_CODE_NAME ? l->code_name : l->code_file);
		python__text(w, object, task);
	}
	PYTHON_LOOP(PYTHON_LINES_MAX / RAW_CODE_CHUNK, python__send_piece, w, task);
	return x->failed;
}

/*
 * Reads the code object again and sends it. It may have been freed since the walk: cursor.loss is then the reason of
 * the loss. Returns 0 or 1.
 */
static __always_inline int python__send_code(struct python_walk *w, u64 code, u32 id, struct task_struct *task)
{
	struct raw_code *raw = &w->known->raw;
	const struct python_layout *l = w->l;
	struct python_thread *t = w->t;

	if (test_unreadable_code || python__read(t->code, PYTHON_CODE_READ, code, task)) {
		t->cursor.loss = LOSS_READ;
		return 1;
	}
	__builtin_memset(raw, 0, __builtin_offsetof(struct raw_code, data));
	event__init(&raw->event, RAW_CODE, 0, bpf_ktime_get_ns());
	raw->event.pid = t->cursor.pid;
	raw->code = id;
	raw->line = code_word(t, l->code_line) >> (l->code_line & 4) * 8;
	raw->version = l->version;
	if (python__send_part(w, RAW_CODE_NAME, task) || python__send_part(w, RAW_CODE_FILE, task) ||
	    python__send_part(w, RAW_CODE_LINES, task))
		return 1;
	/* another thread's code object may have been freed since that thread left it */
	if (t->cursor.is_current || !python__read(t->code, PYTHON_CODE_READ, code, task))
		return 0;
	t->cursor.loss = LOSS_READ;
	return 1;
}

/*
 * Runs on the current task's memory. It is a separate function so that the verifier checks it once. t and known
 * belong to the walk.
 */
__weak __noinline int python__send_code_here(struct python_thread *t, struct python_known *known, u64 code, u32 id,
					     u32 layout)
{
	struct python_walk w = { .t = t, .known = known, .l = bpf_map_lookup_elem(&python_layouts, &layout) };

	return t && known && w.l ? python__send_code(&w, code, id, NULL) : 1;
}
