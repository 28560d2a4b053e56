// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TCP connections, from their changes of state. The owner is known only where a thread that uses the socket makes the
 * change: connect() makes SYN_SENT, close() and shutdown() make FIN_WAIT1 and LAST_ACK. Packets make all other
 * changes, in the context of an unrelated, interrupted task. An accepted connection gets its owner at its first use
 * that a tracepoint shows. docs/disk.md lists what is left out.
 */
#include "core/sonde.bpf.h"
#include "net.h"

OPTION(net, all, "every process, not only those with a runtime and busy native ones");

#define MAX_CONNECTIONS 65536

/* include/linux/sched.h, socket.h, in.h, net/tcp_states.h */
#define AF_INET		2
#define AF_INET6	10
#define IPPROTO_TCP	6
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT	2
#define TCP_SYN_RECV	3
#define TCP_FIN_WAIT1	4
#define TCP_CLOSE	7
#define TCP_LAST_ACK	9

/* include/net/inet_connection_sock.h, include/uapi/linux/tcp.h */
#define ICSK_TIME_LOSS_PROBE 5
#define TCP_CA_RECOVERY	     3

/* Key: the socket's address. A connection with an owner is recorded, even after its process has ended. */
struct connection {
	u64 begun; /* time of connect() or of the first packet */
	u64 established; /* 0: not yet */
	u32 pid, tid; /* 0: no thread has used it yet */
	u32 side;
	u32 before; /* it existed before tracing began */
	u32 probes; /* tail-loss probes so far */
	u32 written; /* its record was written as it was still open when the recording stopped */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CONNECTIONS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct connection);
} net_connections SEC(".maps");

static __always_inline u64 mapped_ipv4(u32 address)
{
	return 0xffff00000000ULL | __builtin_bswap32(address);
}

static __always_inline void fill_ends(struct net_ends *e, const struct sock *sk)
{
	u64 both[2];

	/* the socket has lost its own port number when it closes */
	e->local_port = __builtin_bswap16(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
	e->peer_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		e->local_low = mapped_ipv4(BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		e->peer_low = mapped_ipv4(BPF_CORE_READ(sk, __sk_common.skc_daddr));
		return;
	}
	bpf_core_read(both, sizeof(both), &sk->__sk_common.skc_v6_rcv_saddr);
	e->local_high = __builtin_bswap64(both[0]);
	e->local_low = __builtin_bswap64(both[1]);
	bpf_core_read(both, sizeof(both), &sk->__sk_common.skc_v6_daddr);
	e->peer_high = __builtin_bswap64(both[0]);
	e->peer_low = __builtin_bswap64(both[1]);
}

static __always_inline void fill_event(struct event *e, const struct connection *c, u16 id, u64 now)
{
	e->time = now;
	e->pid = c->pid;
	e->tid = c->tid;
	e->id = id;
	e->flags = 0;
}

static __always_inline void note(u64 key, const struct connection *c, u64 now)
{
	if (bpf_map_update_elem(&net_connections, &key, c, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_net_connect), LOSS_MAP_FULL, now);
}

/* A thread calls connect(): notes it as the owner of the connection. */
static __always_inline void on_connect(const struct sock *sk, u64 now)
{
	u64 pid_tgid = bpf_get_current_pid_tgid(), key = (u64)sk;
	struct connection c = {};

	if (!process__followed(pid_tgid >> 32, option_net_all)) {
		bpf_map_delete_elem(&net_connections, &key);
		return;
	}
	c.begun = now;
	c.pid = pid_tgid >> 32;
	c.tid = (u32)pid_tgid;
	c.side = NET_CONNECTED;
	note(key, &c, now);
}

static __always_inline void connected(const struct sock *sk, struct connection *c, bool failed, u64 now)
{
	struct net_connect e = {};

	c->established = now;
	/* it was written as an open connection already */
	if (c->written)
		return;
	fill_event(&e.span.event, c, ID_net_connect, now);
	e.span.start = c->begun;
	e.failed = failed;
	fill_ends(&e.ends, sk);
	emit(&e, sizeof(e));
}

/* An incoming connection has no owner yet: current is an unrelated task that the packet interrupted. */
static __always_inline void on_incoming(const struct sock *sk, u64 now)
{
	struct connection c = { .begun = now, .established = now, .side = NET_ACCEPTED };

	note((u64)sk, &c, now);
}

/* The current thread uses the socket, and is the first thread to do so. */
static __always_inline void used(const struct sock *sk, struct connection *c, u64 now)
{
	u64 pid_tgid = bpf_get_current_pid_tgid(), key = (u64)sk;
	struct net_accept e = {};

	if (!process__followed(pid_tgid >> 32, option_net_all)) {
		bpf_map_delete_elem(&net_connections, &key);
		return;
	}
	c->pid = pid_tgid >> 32;
	c->tid = (u32)pid_tgid;
	if (c->side != NET_ACCEPTED)
		return;
	fill_event(&e.span.event, c, ID_net_accept, now);
	e.span.start = c->established;
	fill_ends(&e.ends, sk);
	emit(&e, sizeof(e));
}

static __always_inline void write_close(const struct sock *sk, const struct connection *c, u16 flags, u64 now)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct net_close e = {};

	fill_event(&e.span.event, c, ID_net_close, now);
	e.span.event.flags = flags | (c->before ? EVENT_STARTED_BEFORE : 0);
	e.span.start = c->established;
	e.side = c->side;
	fill_ends(&e.ends, sk);
	e.sent = BPF_CORE_READ(tp, bytes_sent) - BPF_CORE_READ(tp, bytes_retrans);
	e.received = BPF_CORE_READ(tp, bytes_received);
	/* the FIN counts as a byte */
	if (e.received &&
	    BPF_CORE_READ(sk, __sk_common.skc_flags) & (1UL << bpf_core_enum_value(enum sock_flags, SOCK_DONE)))
		e.received--;
	e.loss_probes = c->probes;
	e.retransmits = BPF_CORE_READ(tp, total_retrans);
	e.retransmits -= e.loss_probes < e.retransmits ? e.loss_probes : e.retransmits;
	/* in eighths of a microsecond */
	e.rtt = BPF_CORE_READ(tp, srtt_us) * 125;
	emit(&e, sizeof(e));
}

/* Claims the one record of a connection: that of its end or that of net_open, which may run at the same time. */
static __always_inline bool take_record(struct connection *c)
{
	return !__sync_lock_test_and_set(&c->written, 1);
}

/* A connection that no thread has used is recorded only if all processes are recorded. */
static __always_inline bool is_recorded(const struct connection *c)
{
	return c->pid || (!filter_on && option_net_all);
}

static __always_inline void closed(const struct sock *sk, struct connection *c, u64 now)
{
	u64 key = (u64)sk;

	if (c->side == NET_CONNECTED && !c->established)
		connected(sk, c, true, now);
	else if (is_recorded(c) && take_record(c))
		write_close(sk, c, 0, now);
	bpf_map_delete_elem(&net_connections, &key);
}

/*
 * At a use, close() or shutdown() of a connection that existed before tracing began: its counters cover its whole
 * life.
 */
static __always_inline void on_existing(const struct sock *sk, u64 now)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct connection c = { .begun = now, .established = now, .before = 1 };

	c.pid = pid_tgid >> 32;
	c.tid = (u32)pid_tgid;
	if (process__followed(c.pid, option_net_all))
		note((u64)sk, &c, now);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(net_state, const struct sock *sk, const int from, const int to)
{
	u64 now, key = (u64)sk;
	struct connection *c;

	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	now = bpf_ktime_get_ns();
	if (to == TCP_SYN_SENT) {
		on_connect(sk, now);
		return 0;
	}
	if (from == TCP_SYN_RECV && to == TCP_ESTABLISHED) {
		on_incoming(sk, now);
		return 0;
	}
	c = bpf_map_lookup_elem(&net_connections, &key);
	if (c && from == TCP_SYN_SENT && to == TCP_ESTABLISHED)
		connected(sk, c, false, now);
	else if (c && to == TCP_CLOSE)
		closed(sk, c, now);
	else if (c && !c->pid && (to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK))
		used(sk, c, now);
	else if (!c && (to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK))
		on_existing(sk, now);
	return 0;
}

static __always_inline int first_use(struct sock *sk)
{
	u64 key = (u64)sk;
	struct connection *c = bpf_map_lookup_elem(&net_connections, &key);

	if (c && !c->pid)
		used(sk, c, bpf_ktime_get_ns());
	else if (!c && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP &&
		 BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_ESTABLISHED)
		on_existing(sk, bpf_ktime_get_ns());
	return 0;
}

/* Exists from 6.5 on. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(net_sent, struct sock *sk)
{
	return first_use(sk);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(net_received, struct sock *sk)
{
	return first_use(sk);
}

/*
 * A tail-loss probe sends the last segment again after about two round trips without an answer, whether it was lost
 * or not: on the loopback device a receiver that delays its acknowledgement causes one. While tcp_send_loss_probe()
 * sends, icsk_pending still has the kind of its timer, and the connection is not in recovery. A retransmission after a
 * timeout is sent when icsk_pending has been cleared, and a fast retransmission in recovery. If the kernel lacks these
 * fields, probes count as retransmissions.
 */
static __always_inline bool is_loss_probe(const struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	if (!bpf_core_field_exists(icsk->icsk_pending) || !bpf_core_field_exists(icsk->icsk_ca_state))
		return false;
	return BPF_CORE_READ(icsk, icsk_pending) == ICSK_TIME_LOSS_PROBE &&
	       BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state) < TCP_CA_RECOVERY;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(net_retransmitted, const struct sock *sk, const struct sk_buff *skb)
{
	u64 key = (u64)sk;
	struct connection *c = bpf_map_lookup_elem(&net_connections, &key);
	struct net_retransmit e = {};

	if (!c)
		return 0;
	e.loss_probe = is_loss_probe(sk);
	/* not atomic, because the socket is locked here */
	c->probes += e.loss_probe;
	if (!is_recorded(c))
		return 0;
	fill_event(&e.event, c, ID_net_retransmit, bpf_ktime_get_ns());
	fill_ends(&e.ends, sk);
	e.bytes = BPF_CORE_READ(skb, len);
	e.state = BPF_CORE_READ(sk, __sk_common.skc_state);
	emit(&e, sizeof(e));
	return 0;
}

static long open_connection(void *map, const u64 *key, struct connection *c, void *arg)
{
	const struct sock *sk = (const struct sock *)*key;
	u64 now = bpf_ktime_get_ns();
	struct net_connect e = {};

	if (!is_recorded(c) || !take_record(c))
		return 0;
	if (c->established) {
		write_close(sk, c, EVENT_OPEN, now);
		return 0;
	}
	fill_event(&e.span.event, c, ID_net_connect, now);
	e.span.event.flags = EVENT_OPEN;
	e.span.start = c->begun;
	fill_ends(&e.ends, sk);
	emit(&e, sizeof(e));
	return 0;
}

/*
 * Writes the connections that are open when the recording stops. It runs while the probes are still attached: a
 * connection whose end is not observed leaves its entry behind, and the kernel soon uses the socket's memory for
 * another connection, whose addresses and bytes would be read.
 */
SEC("?iter/task")
int net_open(struct bpf_iter__task *ctx)
{
	if (!ctx->meta->seq_num && ctx->task)
		bpf_for_each_map_elem(&net_connections, open_connection, NULL, 0);
	return 0;
}
