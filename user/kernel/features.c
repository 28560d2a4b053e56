// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/features.h"

#include "kernel/kernel_btf.h"
#include "kernel/link.h"
#include "kernel/trial.h"
#include "util/array.h"
#include "util/signals.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLDEST_MAJOR 6U
#define OLDEST_MINOR 1U

/* The lowest time of several rounds, because interruptions only ever add. */
static u64 time_calls(enum trial_target target)
{
	u64 best = ~0ULL;

	for (int round = 0; round < 10; round++) {
		u64 start = timing__now(), took;

		for (int i = 0; i < 20; i++)
			trial__targets[target]();
		took = (timing__now() - start) / 20;
		if (took < best)
			best = took;
	}
	return best;
}

/* The kernel's version, or that of SONDE_TEST=kernel:5.10. */
static void read_version(u32 *major, u32 *minor)
{
	struct utsname un;
	char text[32];

	*major = *minor = 0;
	if (test_switch__text("kernel", text, sizeof(text)) && sscanf(text, "%u.%u", major, minor) == 2)
		return;
	if (uname(&un) || sscanf(un.release, "%u.%u", major, minor) != 2)
		*major = OLDEST_MAJOR + 1;
}

bool features__in_first_pid_namespace(void)
{
	struct stat st;

	/* PROC_PID_INIT_INO of linux/proc_ns.h */
	return stat("/proc/self/ns/pid", &st) || st.st_ino == 0xEFFFFFFC;
}

bool features__old_kernel(char *why, size_t len)
{
	u32 major, minor;

	read_version(&major, &minor);
	if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
		return false;
	snprintf(why, len, "sonde needs Linux %u.%u (this is %u.%u)", OLDEST_MAJOR, OLDEST_MINOR, major, minor);
	return true;
}

/* Tried with an empty program: kernels that are locked down, or that have no function tracer, refuse it. */
static bool try_function(const char *name)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FEXIT,
		    .attach_btf_id = kernel_btf__function(name));
	int fd = opts.attach_btf_id ? bpf_prog_load(BPF_PROG_TYPE_TRACING, "sonde_trial", "Dual BSD/GPL", insns,
						    ARRAY_LEN(insns), &opts) :
				      -ENOENT;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool features__function(const char *name)
{
	static char tried[64];
	static bool works;

	/* every program of a family asks for the same function */
	if (strcmp(name, tried)) {
		snprintf(tried, sizeof(tried), "%s", name);
		works = try_function(name);
	}
	return works;
}

bool features__tracepoint(const char *name)
{
	return kernel_btf__tracepoint(name) || features__function(name);
}

struct costs {
	u64 entry_ns, span_ns;
};

struct trials {
	struct trial multi, session, confined;
};

static void probe_here(struct features *f, struct trials *t)
{
	int fd = trial__load(0);

	f->btf = kernel_btf__exists();
	f->bpf = fd >= 0;
	f->error = fd < 0 ? fd : 0;
	if (!f->bpf)
		return;
	close(fd);
	if (!test_switch__is_set("no-multi"))
		f->multi = !trial__open(&t->multi, TRIAL_MULTI, ATTACH_TYPE_UPROBE_MULTI, getpid(), false);
	if (!test_switch__is_set("no-session"))
		f->session = !trial__open(&t->session, TRIAL_SESSION, ATTACH_TYPE_UPROBE_SESSION, getpid(), false);
	f->returns = !f->multi || trial__return(&t->confined, f->session);
}

/* The child's main function: sends the features and then, while the parent continues, the costs. */
static void answer(int fd)
{
	const struct trial none = { -1, -1, -1 };
	struct trials t = { none, none, none };
	struct costs costs = {};
	struct features f = {};

	signals__withstand("sonde-features");
	probe_here(&f, &t);
	/* the parent detects a short answer */
	if (write(fd, &f, sizeof(f)) < 0)
		_exit(1);
	if (f.multi)
		costs.entry_ns = time_calls(TRIAL_MULTI);
	if (f.session)
		costs.span_ns = time_calls(TRIAL_SESSION);
	if (write(fd, &costs, sizeof(costs)) < 0)
		_exit(1);
	trial__close(&t.multi);
	trial__close(&t.session);
	trial__close(&t.confined);
	_exit(0);
}

/* In a child, so that a SIGKILL of this process during the trials leaves no breakpoint: see attach/attacher.h. */
void features__begin(struct features *f)
{
	int fds[2], child;

	memset(f, 0, sizeof(*f));
	if (pipe2(fds, O_CLOEXEC)) {
		f->error = -errno;
		return;
	}
	child = fork();
	if (!child)
		answer(fds[1]);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		f->error = -ECHILD;
		return;
	}
	f->costs = fds[0];
	f->child = child;
}

void features__await(struct features *f)
{
	struct features got;

	if (f->child <= 0)
		return;
	if (read(f->costs, &got, sizeof(got)) != sizeof(got))
		got = (struct features){ .error = -ECHILD };
	got.costs = f->costs;
	got.child = f->child;
	*f = got;
}

void features__probe(struct features *f)
{
	features__begin(f);
	features__await(f);
}

static struct costs read_costs(int fd)
{
	struct costs costs;

	return read(fd, &costs, sizeof(costs)) == sizeof(costs) ? costs : (struct costs){};
}

void features__costs(struct features *f)
{
	struct costs costs;

	if (f->costs <= 0)
		return;
	costs = read_costs(f->costs);
	f->entry_ns = costs.entry_ns;
	f->span_ns = costs.span_ns;
	close(f->costs);
	f->costs = 0;
}

bool features__ended(struct features *f)
{
	if (f->child > 0 && waitpid(f->child, NULL, WNOHANG))
		f->child = 0;
	return f->child <= 0;
}

void features__finish(struct features *f)
{
	features__costs(f);
	while (f->child > 0 && waitpid(f->child, NULL, 0) < 0 && errno == EINTR)
		;
	f->child = 0;
}
