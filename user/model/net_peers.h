/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP connections summed by process and peer. */
#pragma once

#include "model/query.h"
#include "model/stats.h"
#include "util/map.h"

/* The key of a peer. The port is the server's, since the client's is chosen anew for each connection. */
struct net_peer_key {
	u64 high, low;
	u32 pid, side;
	u32 port, unused;
};

struct net_peer {
	struct stats connect;
	u64 connections, open, failed, sent, received, retransmits, probes, lifetime;
};

struct net_peers {
	const struct query *args;
	struct map peers; /* struct net_peer_key -> struct net_peer */
	struct stats_pool pool;
};

/* 0 or negative errno; net_peers__free in any case. */
int net_peers__read(struct net_peers *n, const struct query *args);
void net_peers__free(struct net_peers *n);
/* Writes "127.0.0.1" or "::1". Returns buf. */
char *net_peer_key__address(const struct net_peer_key *k, char *buf, size_t size);
/* Writes "127.0.0.1:80" or "[::1]:80". Returns buf. */
char *net_peer_key__text(const struct net_peer_key *k, char *buf, size_t size);
