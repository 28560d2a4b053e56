// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/deferred.h"

#include "attach/attacher_wire.h"
#include "kernel/loader.h"
#include "sandbox/message.h"
#include "sandbox/privileges.h"
#include "sandbox/usage.h"
#include "util/signals.h"
#include "util/test_switch.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEEDS_MAX 512 /* descriptors of maps; there are about 100 */
#define ALL_SENT  ~0U /* instead of a program: all programs that are deferred so (error: enum deferral) were sent */

struct deferred {
	const struct probes *probes;
	int sock; /* of the child; -1: everything was received */
	enum deferral received; /* up to here */
	bool *loaded; /* by program */
};

struct child {
	const struct probes *probes;
	int sock;
};

static void send_program(const struct program *p, int fd, void *arg)
{
	const struct child *c = arg;
	struct deferred_refusal m = { .program = p - c->probes->programs, .error = fd < 0 ? fd : 0 };

	snprintf(m.why, sizeof(m.why), "%s", p->refusal ? p->refusal : "");
	message__send(c->sock, &m, sizeof(m), fd);
}

static void load(struct child *c, enum deferral deferred)
{
	struct deferred_refusal end = { .program = ALL_SENT, .error = deferred };

	loader__load_deferred(deferred, send_program, c);
	message__send(c->sock, &end, sizeof(end), -1);
}

static void serve(struct child *c)
{
	static int fds[NEEDS_MAX];
	int n = (int)loader__deferred_needs(fds, NEEDS_MAX - 1);

	signals__withstand("sonde-loader");
	fds[n++] = c->sock;
	attacher__close_all_but(fds, n);
	if (!privileges__loader() && !test_switch__is_set("loader-ends")) {
		load(c, DEFERRED_SITES);
		load(c, DEFERRED_REST);
	}
	_exit(0);
}

static bool is_deferred(const struct program *p)
{
	return p->enabled && p->deferred;
}

static bool has_any(const struct probes *probes)
{
	PROGRAMS_EACH(p, probes)
		if (is_deferred(p))
			return true;
	return false;
}

int deferred__start(struct deferred **out, const struct probes *probes)
{
	struct deferred *d;
	int sock[2];
	pid_t pid;

	*out = NULL;
	if (!has_any(probes))
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->probes = probes;
	d->sock = -1;
	*out = d;
	d->loaded = calloc(probes->n_programs, sizeof(*d->loaded));
	if (!d->loaded)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	pid = usage__fork();
	if (!pid)
		serve(&(struct child){ .probes = probes, .sock = sock[1] });
	d->sock = sock[0];
	close(sock[1]);
	loader__forget_deferred();
	return pid < 0 ? -errno : 0;
}

int deferred__fd(const struct deferred *d)
{
	return d ? d->sock : -1;
}

/* Replaces the descriptor of the stand-in by the program's own. */
static int put_in_place(const struct program *p, int fd)
{
	return dup3(fd, bpf_program__fd(p->prog), O_CLOEXEC) < 0 ? -errno : 0;
}

static void add(struct deferred_refusal *refusals, u32 *n, u32 program, int error, const char *why)
{
	struct deferred_refusal *r = &refusals[*n];

	if (*n == DEFERRED_REFUSALS_MAX)
		return;
	*r = (struct deferred_refusal){ .program = program, .error = error };
	snprintf(r->why, sizeof(r->why), "%s", why);
	++*n;
}

/* Receives one message. false: the child has ended. */
static bool receive(struct deferred *d, struct deferred_refusal *refusals, u32 *n)
{
	struct deferred_refusal m;
	int fd;

	if (message__receive(d->sock, &m, sizeof(m), &fd) != (ssize_t)sizeof(m))
		return false;
	if (m.program >= d->probes->n_programs) {
		if (m.program == ALL_SENT)
			d->received = m.error;
		if (fd >= 0)
			close(fd);
		return true;
	}
	m.why[sizeof(m.why) - 1] = '\0';
	if (fd >= 0 && !m.error)
		m.error = put_in_place(&d->probes->programs[m.program], fd);
	if (fd >= 0)
		close(fd);
	if (m.error)
		add(refusals, n, m.program, m.error, m.why);
	d->loaded[m.program] = true;
	return true;
}

u32 deferred__collect(struct deferred *d, enum deferral deferred, struct deferred_refusal *refusals)
{
	u32 n = 0;

	while (d && d->sock >= 0 && d->received < deferred) {
		if (receive(d, refusals, &n))
			continue;
		close(d->sock);
		d->sock = -1;
		for (u32 i = 0; i < d->probes->n_programs; i++)
			if (is_deferred(&d->probes->programs[i]) && !d->loaded[i])
				add(refusals, &n, i, -ECHILD,
				    "the process that was to load it (sonde-loader) has ended");
	}
	return n;
}

void deferred__misses(const struct deferred *d, u64 misses[FAMILY_MAX])
{
	memset(misses, 0, FAMILY_MAX * sizeof(*misses));
	for (u32 i = 0; d && i < d->probes->n_programs; i++) {
		const struct program *p = &d->probes->programs[i];

		if (is_deferred(p) && d->loaded[i])
			misses[p->family->id] += probes__misses(p);
	}
}

void deferred__free(struct deferred *d)
{
	if (!d)
		return;
	if (d->sock >= 0)
		close(d->sock);
	free(d->loaded);
	free(d);
}
