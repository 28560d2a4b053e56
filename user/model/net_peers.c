// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/net_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes/net/net.h"

static struct net_peer *peer_of(struct net_peers *n, const struct view *v, u32 side)
{
	struct net_peer_key key = {
		.high = (u64)view__get(v, "peer_high"),
		.low = (u64)view__get(v, "peer_low"),
		.pid = (u32)view__get(v, "pid"),
		.side = side,
		.port = (u32)view__get(v, side == NET_ACCEPTED ? "local_port" : "peer_port"),
	};

	return map__get(&n->peers, &key);
}

static u64 duration(const struct view *v)
{
	return (u64)view__get(v, "time") - (u64)view__get(v, "start");
}

static int on_connects(const struct rows *rows, void *arg)
{
	struct net_peers *n = arg;
	struct net_peer *p;

	ROWS_EACH(v, rows) {
		p = peer_of(n, &v, NET_CONNECTED);
		if (!p)
			return -ENOMEM;
		if (view__get(&v, "failed"))
			p->failed++;
		else if (!(view__get(&v, "flags") & EVENT_OPEN) && stats__add(&p->connect, &n->pool, duration(&v)))
			return -ENOMEM;
	}
	return 0;
}

static int on_closes(const struct rows *rows, void *arg)
{
	u32 side;
	struct net_peer *p;

	ROWS_EACH(v, rows) {
		side = (u32)view__get(&v, "side");
		p = peer_of(arg, &v, side <= NET_ACCEPTED ? side : NET_UNKNOWN);
		if (!p)
			return -ENOMEM;
		p->connections++;
		p->open += (view__get(&v, "flags") & EVENT_OPEN) != 0;
		p->sent += (u64)view__get(&v, "sent");
		p->received += (u64)view__get(&v, "received");
		p->retransmits += (u64)view__get(&v, "retransmits");
		p->probes += (u64)view__get(&v, "loss_probes");
		p->lifetime += duration(&v);
	}
	return 0;
}

char *net_peer_key__address(const struct net_peer_key *k, char *buf, size_t size)
{
	struct in6_addr a;

	for (int i = 0; i < 8; i++) {
		a.s6_addr[i] = (u8)(k->high >> (56 - 8 * i));
		a.s6_addr[8 + i] = (u8)(k->low >> (56 - 8 * i));
	}
	if (IN6_IS_ADDR_V4MAPPED(&a))
		inet_ntop(AF_INET, &a.s6_addr[12], buf, (socklen_t)size);
	else
		inet_ntop(AF_INET6, &a, buf, (socklen_t)size);
	return buf;
}

char *net_peer_key__text(const struct net_peer_key *k, char *buf, size_t size)
{
	char address[INET6_ADDRSTRLEN];
	bool has_colons = strchr(net_peer_key__address(k, address, sizeof(address)), ':') != NULL;

	snprintf(buf, size, has_colons ? "[%s]:%u" : "%s:%u", address, k->port);
	return buf;
}

int net_peers__read(struct net_peers *n, const struct query *args)
{
	int err;

	*n = (struct net_peers){ .args = args };
	map__init(&n->peers, sizeof(struct net_peer_key), sizeof(struct net_peer));
	err = query__read_kind(args, "net_connect", on_connects, n);
	return err ? err : query__read_kind(args, "net_close", on_closes, n);
}

void net_peers__free(struct net_peers *n)
{
	for (u32 i = 0; i < n->peers.n; i++)
		stats__free(&((struct net_peer *)map__value(&n->peers, i))->connect, &n->pool);
	map__free(&n->peers);
}
