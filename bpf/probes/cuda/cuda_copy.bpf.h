/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs of copies and sets. Before it includes this file, a family defines the tables COPIES and SETS, and reads
 * the structs with arguments: copy_by_struct() and copy_peer_by_struct().
 */
#pragma once

static __always_inline void copy_by_words(struct NAME(copy) * e, const struct args *a, const struct copy_row *r)
{
	u64 words[WORDS_MAX] = {};

	words__read(words, a);
	e->dst = words[1];
	e->src = word(words, r->src);
	e->bytes = word(words, r->bytes) * word__factor(words, r->rows);
	e->kind = RUNTIME(r->kind ? word(words, r->kind) : CUDA_COPY_DEFAULT) DRIVER(r->kind);
	e->stream = word(words, r->stream);
}

CALL_STACK(copy, COPIES(ROW_FUNCTIONS))
{
	static const struct copy_row rows[ROWS_MAX] = { COPIES(ROW_WORDS) };
	const struct copy_row *r = ROW_OF(rows, group);
	struct args a = args__read(ctx);

	if (r->bytes) {
		copy_by_words(e, &a, r);
	} else {
		copy_by_struct(e, a.a1, r);
		e->stream = r->stream ? a.a2 : 0;
	}
}

#define PEER_COPIES(GROUP)                                                                       \
	/* (destination, its device or context, source, its device or context, bytes, stream) */ \
	GROUP(PEER_COPY, RUNTIME(FN(MemcpyPeer)) DRIVER(FN_PTDS(MemcpyPeer)))                    \
	GROUP(PEER_COPY_ASYNC, RUNTIME(FN(MemcpyPeerAsync)) DRIVER(FN_PTSZ(MemcpyPeerAsync)))    \
	GROUP(PEER_COPY_3D, FN_PTDS(Memcpy3DPeer)) /* (struct, stream) */                        \
	GROUP(PEER_COPY_3D_ASYNC, FN_PTSZ(Memcpy3DPeerAsync))

enum { PEER_COPIES(GROUP_NUMBER) };

CALL(copy_peer, PEER_COPIES(GROUP_FUNCTIONS))
{
	struct args a = args__read(ctx);

	if (group <= PEER_COPY_ASYNC) {
		e->dst = a.a1;
		e->RUNTIME(dst_device) DRIVER(dst_context) = a.a2;
		e->src = a.a3;
		e->RUNTIME(src_device) DRIVER(src_context) = a.a4;
		e->bytes = a.a5;
		e->stream = group == PEER_COPY_ASYNC ? a.a6 : 0;
	} else {
		copy_peer_by_struct(e, a.a1);
		e->stream = group == PEER_COPY_3D_ASYNC ? a.a2 : 0;
	}
}

CALL_STACK(set, SETS(ROW_FUNCTIONS))
{
	static const struct set_row rows[ROWS_MAX] = { SETS(ROW_WORDS) };
	const struct set_row *r = ROW_OF(rows, group);
	struct args a = args__read(ctx);
	u64 words[WORDS_MAX] = {}, value;

	words__read(words, &a);
	e->dst = word(words, r->dst);
	e->bytes = word(words, r->bytes) * word__factor(words, r->rows) * word__factor(words, r->layers);
	e->stream = word(words, r->stream);
	value = word(words, r->value);
	RUNTIME(e->value = value);
	DRIVER(set_elements(e, value, r->element));
}
