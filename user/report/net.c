// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report net: TCP connections by process and peer: number, connect time, bytes, retransmits. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/stats.h"
#include "output/text.h"
#include "probes/net/net.h"
#include "report/report.h"

static const char *const sides[] = { [NET_UNKNOWN] = "earlier", [NET_CONNECTED] = "out", [NET_ACCEPTED] = "in" };

/* The key of a peer. The port is the server's, since the client's is chosen anew for each connection. */
struct peer_key {
	u64 high, low;
	u32 pid, side;
	u32 port, unused;
};

struct peer {
	struct stats connect;
	u64 connections, open, failed, sent, received, retransmits, probes, lifetime;
};

struct net_report {
	const struct query *args;
	struct map peers; /* struct peer_key -> struct peer */
	struct stats_pool pool;
};

static struct peer *peer_of(struct net_report *n, const struct view *v, u32 side)
{
	struct peer_key key = {
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
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct net_report *n = arg;
	struct peer *p;

	for (; v.i < rows__count(rows); v.i++) {
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
	struct view v = { .event = rows__event(rows), .rows = rows };
	u32 side;
	struct peer *p;

	for (; v.i < rows__count(rows); v.i++) {
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

/* Writes "127.0.0.1" or "::1". */
static void address_text(const struct peer_key *k, char *buf, size_t size)
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
}

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "direction", "Made", VALUE_TEXT, SHOW_PLAIN },
	{ "peer", "Peer", VALUE_TEXT, SHOW_PLAIN },
	{ "port", "Server's port", VALUE_U64, SHOW_PLAIN },
	{ "connections", "Connections", VALUE_U64, SHOW_COUNT },
	{ "open", "Still open", VALUE_U64, SHOW_COUNT },
	{ "failed", "Failed", VALUE_U64, SHOW_COUNT },
	{ "connect_median_ns", "Connect median", VALUE_DOUBLE, SHOW_NS },
	{ "connect_max_ns", "max", VALUE_U64, SHOW_NS },
	{ "sent_bytes", "Sent", VALUE_U64, SHOW_BYTES },
	{ "received_bytes", "Received", VALUE_U64, SHOW_BYTES },
	{ "retransmits", "Retransmits", VALUE_U64, SHOW_COUNT },
	{ "loss_probes", "Loss probes", VALUE_U64, SHOW_COUNT },
	{ "lifetime_ns", "Time open, summed", VALUE_U64, SHOW_NEVER },
};

static void fill(struct net_report *n, struct table *t)
{
	char address[INET6_ADDRSTRLEN];

	for (u32 i = 0; i < n->peers.n; i++) {
		const struct peer_key *k = map__key(&n->peers, i);
		struct peer *p = map__value(&n->peers, i);
		bool any = p->connect.count != 0;

		address_text(k, address, sizeof(address));
		table__add(t, V_U64(k->pid), V_TEXT(names__comm(n->args->names, k->pid, 0)), V_TEXT(sides[k->side]),
			   V_TEXT(address), V_U64(k->port), V_U64(p->connections), V_U64(p->open), V_U64(p->failed),
			   any ? V_DBL(stats__median(&p->connect)) : V_NONE, any ? V_U64(p->connect.max) : V_NONE,
			   V_U64(p->sent), V_U64(p->received), V_U64(p->retransmits), V_U64(p->probes),
			   V_U64(p->lifetime));
	}
	table__sort(t, "received_bytes");
	table__sort(t, "sent_bytes");
}

static void add_findings(const struct net_report *n, struct report_output *out)
{
	u64 connections = 0, failed = 0, sent = 0, received = 0, retransmits = 0, probes = 0;
	char count[TEXT_NUMBER], a[TEXT_NUMBER], b[TEXT_NUMBER];

	for (u32 i = 0; i < n->peers.n; i++) {
		const struct peer *p = map__value(&n->peers, i);

		connections += p->connections;
		failed += p->failed;
		sent += p->sent;
		received += p->received;
		retransmits += p->retransmits;
		probes += p->probes;
	}
	if (connections)
		report_output__finding(out, "%s %s sent %s and received %s.",
				       text__count(count, sizeof(count), connections),
				       connections == 1 ? "end of a TCP connection" : "ends of TCP connections",
				       text__bytes(a, sizeof(a), sent), text__bytes(b, sizeof(b), received));
	if (connections)
		REPORT_FIGURES(out, FIGURE("connections", V_U64(connections)), FIGURE("sent_bytes", V_U64(sent)),
			       FIGURE("received_bytes", V_U64(received)), FIGURE("retransmits", V_U64(retransmits)),
			       FIGURE("loss_probes", V_U64(probes)));
	if (failed)
		report_output__finding(out, "%s connect%s failed.", text__count(count, sizeof(count), failed),
				       text__s(failed));
	if (retransmits)
		report_output__finding(out, "%s segment%s sent again.", text__count(count, sizeof(count), retransmits),
				       retransmits == 1 ? " was" : "s were");
	if (probes)
		report_output__note(
			out,
			"%s tail-loss probe%s: the end of what was sent, once more, because no answer had come "
			"yet. Receivers that acknowledge late are enough for that; it is no sign of loss.",
			text__count(count, sizeof(count), probes), text__s(probes));
}

static int run(const struct query *args, struct report_output *out)
{
	struct net_report n = { .args = args };
	struct table *t;
	int err;

	map__init(&n.peers, sizeof(struct peer_key), sizeof(struct peer));
	err = query__read_kind(args, "net_connect", on_connects, &n);
	if (!err)
		err = query__read_kind(args, "net_close", on_closes, &n);
	t = REPORT_TABLE(out, "peers", "TCP connections by process and peer", columns);
	t->limit = 40;
	fill(&n, t);
	if (!n.peers.n)
		report__nothing(args, out, "No TCP connection was recorded", "net");
	add_findings(&n, out);
	for (u32 i = 0; i < n.peers.n; i++)
		stats__free(&((struct peer *)map__value(&n.peers, i))->connect, &n.pool);
	map__free(&n.peers);
	return err;
}

REPORT(net) = {
	.name = "net",
	.doc = "TCP connections by process and peer: connect latency, bytes, retransmits",
	.kinds = "net",
	.summary = 4,
	.run = run,
};
