/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of TCP connections, from the kernel's stable tracepoints. Sources: include/trace/events/{sock,tcp}.h,
 * include/net/tcp_states.h, Linux 6.1 to 6.18.
 */
#pragma once

#include "core/event.h"

FAMILY(net, 0x09, FAMILY_ON_REQUEST, "TCP connections: connect, accept, bytes, retransmits");

enum net_side {
	NET_UNKNOWN = 0, /* existed before tracing began */
	NET_CONNECTED = 1, /* this side called connect() */
	NET_ACCEPTED = 2,
};

/*
 * Addresses have the form of IPv6, an IPv4 address as ::ffff:a.b.c.d: the first 8 bytes as one number, and the last 8
 * as another.
 */
struct net_ends {
	u64 local_high UNIT(hex) DOC("own address, first half");
	u64 local_low UNIT(hex) DOC("own address, second half");
	u64 peer_high UNIT(hex) DOC("the peer's address, first half; IPv4 is ::ffff:a.b.c.d");
	u64 peer_low UNIT(hex) DOC("the peer's address, second half");
	u16 local_port;
	u16 peer_port;
};

struct net_connect {
	struct span span;
	struct net_ends ends;
	u16 failed DOC("1: refused, timed out or aborted");
} EVENT(net_connect, 0x0901, "an outgoing connection, from connect() until the peer answered");

struct net_accept {
	struct span span;
	struct net_ends ends;
} EVENT(net_accept, 0x0902,
	"an incoming connection, from its first packet until a thread first used it; pid and tid are that thread's");

struct net_close {
	struct span span;
	struct net_ends ends;
	u64 sent UNIT(bytes) DOC("by this side, each byte once");
	u64 received UNIT(bytes) DOC("from the peer");
	u32 retransmits DOC("retransmitted segments, without tail-loss probes");
	u32 rtt UNIT(ns) DOC("round trip, as the kernel smoothes it");
	enum net_side side;
	u32 loss_probes DOC(
		"tail-loss probes: the last segment sent again early to get an answer, while nothing is known to be lost");
} EVENT(net_close, 0x0903, "a connection, from its establishment to its end");

struct net_retransmit {
	struct event event;
	struct net_ends ends;
	u32 bytes UNIT(bytes) DOC("of the segments");
	u16 state DOC("the kernel's TCP_ number: 1 established, 2 while connecting");
	u16 loss_probe DOC("1: a tail-loss probe, see net_close");
} EVENT(net_retransmit, 0x0904, "segments were retransmitted");
