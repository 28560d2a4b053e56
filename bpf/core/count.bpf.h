/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts what is not in the trace: lost records, and hits of probes. */
#pragma once

#include "maps.h"
#include "process.bpf.h"

static __always_inline int loss__add_n(u16 family, u32 reason, u64 now, u64 n)
{
	u32 key = family;
	struct family_losses *losses_of = bpf_map_lookup_elem(&losses, &key);
	struct loss_count *l;

	if (!losses_of || reason >= LOSS_REASONS)
		return 0;
	l = &losses_of->reasons[reason];
	if (!l->count)
		l->first = now;
	l->last = now;
	/* a program in an interrupt may count at the same time */
	__sync_fetch_and_add(&l->count, n);
	return 0;
}

static __always_inline int loss__add(u16 family, u32 reason, u64 now)
{
	return loss__add_n(family, reason, now, 1);
}

/*
 * loss__count is a global function to the verifier, like others: neither static nor inlined, with arguments that
 * are numbers or pointers to memory of a known size. The verifier checks such a function once per program, without
 * assumptions about its arguments, but checks inlined and static code again at each call, for each different state.
 * So rare paths are in global functions. Each of them takes at least 32 of the 512 bytes of stack that a chain of
 * calls has, and the Python stack walker comes close to that limit.
 */
__weak __noinline int loss__count(u16 family, u32 reason, u64 now)
{
	return loss__add(family, reason, now);
}

/* Counts a hit of a probe whose program is not a SPAN (SPANs count their own). */
static __always_inline struct hit_count *probe__hit(u64 cookie)
{
	u32 key = COOKIE_PROBE(cookie) / HITS_BLOCK;
	struct hits_block *block = bpf_map_lookup_elem(&probe_hits, &key);
	struct hit_count *h;

	if (!block)
		return NULL;
	h = &block->probes[COOKIE_PROBE(cookie) % HITS_BLOCK];
	h->hits++;
	return h;
}

/* The same. Returns whether the current process has these flags; if it has not, the hit counts as skipped. */
static __always_inline bool probe__has(u64 cookie, u32 need)
{
	struct hit_count *h = probe__hit(cookie);

	if (process__has(bpf_get_current_pid_tgid() >> 32, need))
		return true;
	if (h)
		h->skipped++;
	return false;
}

/* Is the current process recorded? */
static __always_inline bool probe__is_selected(u64 cookie)
{
	return probe__has(cookie, record_need);
}

/* The same for what is recorded outside of capture ranges, too. */
static __always_inline bool probe__is_armed(u64 cookie)
{
	return probe__has(cookie, record_need & PROCESS_SELECTED);
}
