// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report net: TCP connections by process and peer: number, connect time, bytes, retransmits. */
#include <arpa/inet.h>

#include "findings/about.h"
#include "model/net_peers.h"
#include "output/text.h"
#include "probes/net/net.h"
#include "report/report.h"

static const char *const sides[] = { [NET_UNKNOWN] = "earlier", [NET_CONNECTED] = "out", [NET_ACCEPTED] = "in" };

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "direction", "Direction", VALUE_TEXT, SHOW_PLAIN },
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

static void fill(struct net_peers *n, struct table *t)
{
	char address[INET6_ADDRSTRLEN];

	MAP_EACH_ENTRY(struct net_peer *p, const struct net_peer_key *k, &n->peers) {
		bool any = p->connect.count != 0;

		net_peer_key__address(k, address, sizeof(address));
		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(n->args->names, k->pid, 0)), V_TEXT(sides[k->side]),
			   V_TEXT(address), V_U64(k->port), V_U64(p->connections), V_U64(p->open), V_U64(p->failed),
			   any ? V_DBL(stats__median(&p->connect)) : V_NONE, any ? V_U64(p->connect.max) : V_NONE,
			   V_U64(p->sent), V_U64(p->received), V_U64(p->retransmits), V_U64(p->probes),
			   V_U64(p->lifetime));
	}
	table__sort(t, "received_bytes");
	table__sort(t, "sent_bytes");
}

static void add_traffic(const struct net_peers *n, struct report_output *out)
{
	u64 connections = 0, sent = 0, received = 0, retransmits = 0, probes = 0;

	MAP_EACH(const struct net_peer *p, &n->peers) {
		connections += p->connections;
		sent += p->sent;
		received += p->received;
		retransmits += p->retransmits;
		probes += p->probes;
	}
	if (connections)
		report_output__finding(out, "%s %s sent %s and received %s.", TEXT_COUNT(connections),
				       connections == 1 ? "end of a TCP connection" : "ends of TCP connections",
				       TEXT_BYTES(sent), TEXT_BYTES(received));
	if (connections)
		REPORT_FIGURES(out, FIGURE("connections", V_U64(connections)), FIGURE("sent_bytes", V_U64(sent)),
			       FIGURE("received_bytes", V_U64(received)), FIGURE("retransmits", V_U64(retransmits)),
			       FIGURE("loss_probes", V_U64(probes)));
	if (probes)
		report_output__note(
			out,
			"%s tail-loss probe%s: TCP sent the last segment again because no acknowledgement had come. "
			"A receiver that acknowledges late is enough to cause this, so it is no sign of loss.",
			TEXT_COUNT(probes), text__s(probes));
}

static int run(const struct query *args, struct report_output *out)
{
	struct net_peers n;
	struct finding_input in = { .q = args, .net = &n };
	struct table *t;
	int err = net_peers__read(&n, args);

	t = REPORT_TABLE(out, "peers", "TCP connections by process and peer", columns);
	t->limit = 40;
	fill(&n, t);
	if (!n.peers.n)
		report__nothing(args, out, "No TCP connection was recorded", "net");
	add_traffic(&n, out);
	if (!err)
		err = findings__add_about(&in, findings__find_net, out);
	net_peers__free(&n);
	return err;
}

REPORT(net) = {
	.name = "net",
	.doc = "TCP connections by process and peer: connect latency, bytes, retransmits",
	.kinds = "net",
	.run = run,
};
