// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the peer with most failed connections, and the peer to which most segments had to be sent again. */
#include <arpa/inet.h>
#include <stdio.h>

#include "findings/about.h"
#include "model/net_peers.h"

/* The peer for which one count is highest, and the sum of this count over all peers */
struct most {
	const struct net_peer_key *key;
	u64 n, total;
};

static void count(struct most *m, const struct net_peer_key *key, u64 n)
{
	m->total += n;
	if (n <= m->n)
		return;
	m->n = n;
	m->key = key;
}

static void add(struct findings *out, enum finding_kind kind, const struct most *m)
{
	struct finding *f = m->key ? findings__add(out, kind) : NULL;
	char address[INET6_ADDRSTRLEN];

	if (!f)
		return;
	f->is_notice = true;
	f->pid = m->key->pid;
	f->processes = 1;
	f->times = m->total;
	snprintf(f->object, sizeof(f->object), "%s port %u", net_peer_key__address(m->key, address, sizeof(address)),
		 m->key->port);
	snprintf(f->report, sizeof(f->report), "net");
	if (kind == FINDING_ERRORS)
		snprintf(f->call, sizeof(f->call), "connect");
}

int findings__find_net(const struct finding_input *in, struct findings *out)
{
	struct most failed = { 0 }, resent = { 0 };

	for (u32 i = 0; in->net && i < in->net->peers.n; i++) {
		const struct net_peer *p = map__value(&in->net->peers, i);

		count(&failed, map__key(&in->net->peers, i), p->failed);
		count(&resent, map__key(&in->net->peers, i), p->retransmits);
	}
	add(out, FINDING_ERRORS, &failed);
	add(out, FINDING_RESENT, &resent);
	return 0;
}

FINDINGS(net) = { .name = "net", .find = findings__find_net };
