// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/internal.h"

#include "attach/fetcher.h"
#include "elf/debug.h"
#include "kernel/kernel_btf.h"
#include "record/examine.h"
#include "record/native.h"
#include "record/refused.h"
#include "record/shares.h"
#include "sandbox/syscalls.h"
#include "sandbox/usage.h"
#include "sonde.skel.h"
#include "util/timing.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_NS		 100000000ULL
#define SECOND_NS	 1000000000ULL
#define STOPPING_NS	 3000000000ULL
#define STOPPING_LOOK_US 5000
#define TEXTS_FEW	 256 /* for tests */

/* BPF programs see the first namespace's pids, /proc this one's. 0xEFFFFFFC: PROC_PID_INIT_INO, linux/proc_ns.h */
static bool in_first_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == 0xEFFFFFFC;
}

int session__open(struct session **out, const struct session_args *args, char *err, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));
	int ret;

	if (!s) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	*out = s;
	s->args = args;
	s->epoll_fd = s->changed_fd = -1;
	if (features__old_kernel(err, len))
		return -ENOTSUP;
	ret = args->debuginfod ? debug__check_servers(err, len) : 0;
	if (ret)
		return ret;
	if (!in_first_pid_namespace()) {
		snprintf(err, len,
			 "this is a pid namespace of its own: processes have other numbers here than in the kernel\n"
			 "run sonde in the host's: docker run --pid=host, or nsenter -t 1 -p");
		return -ENOTSUP;
	}
	timing__step("process start");
	/* both go on beside what follows */
	features__begin(&s->features);
	kernel_btf__begin();
	ret = load__open(s, err, len);
	timing__step("BPF object opened");
	features__await(&s->features);
	timing__step("features awaited");
	if (ret)
		return ret;
	ret = filter__open(s, err, len);
	if (!ret)
		ret = targets__open(s, err, len);
	if (!ret)
		ret = load__load(s, err, len);
	/* it measures while this process loads */
	features__costs(&s->features);
	timing__step("calibration awaited");
	return ret;
}

static void print_string(const void *record, u32 size, void *arg)
{
	struct session *s = arg;

	s->args->print(s->schema, record, size, s->args->print_arg);
}

/* Everything about the trace that is there from the start. */
int session__create(struct session *s, int fd, char *err, size_t len)
{
	struct trace_head head;
	char families[256];
	int ret;

	metadata__head(s, &head, families, sizeof(families));
	ret = trace_writer__create(&s->writer, fd, s->schema, &head);
	if (ret) {
		snprintf(err, len, "cannot write the trace: %s", strerror(-ret));
		return ret;
	}
	if (session__test_switch("small-tables"))
		trace_writer__bound_texts(s->writer, TEXTS_FEW);
	if (s->args->print)
		trace_writer__listen(s->writer, print_string, s);
	metadata__clock(s);
	refused__write(s);
	return 0;
}

static void start_native(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);

	if (h->native && f && s->family_on[f->id])
		session__native(s);
}

int session__start(struct session *s, char *err, size_t len)
{
	int ret = 0;

	s->stacks = stack_records__new();
	family_host__each(s, start_native, NULL);
	s->shares = shares__new();
	if (!s->stacks || !s->shares || losses__new(s) || objects__new(s)) {
		snprintf(err, len, "out of memory");
		ret = -ENOMEM;
	}
	if (!ret)
		ret = privileged__start(s, err, len);
	if (ret)
		return ret;
	ret = objects__scan(s, 0);
	timing__step("processes scanned, probed");
	if (ret) {
		snprintf(err, len, "cannot read the mappings of the running processes: %s", strerror(-ret));
		return ret;
	}
	preattach__attach(s);
	timing__step("libraries on disk probed");
	/* what was lost until here is in no figure, and is counted apart */
	drain__rings(s);
	losses__poll(s);
	s->cpu_at_start = usage__total_ns();
	s->started = session__now(s);
	s->next_tick = s->started + TICK_NS;
	s->followed = s->followed ? s->followed : s->started;
	s->next_second = s->started + SECOND_NS;
	/* says when tracing was live, also in a trace that is cut off within a second */
	metadata__cost(s);
	/* what families say of that moment is not to wait for the first tick */
	hosts__tick(s, s->started);
	timing__step("families begun");
	remote__report(s);
	return 0;
}

static int check_writer(struct session *s, char *err, size_t len)
{
	if (!s->write_error)
		return 0;
	snprintf(err, len, "cannot write the trace: %s; what was written before is whole and readable",
		 strerror(-s->write_error));
	return s->write_error;
}

/* What a filter refused has not happened: what was to follow from it can't be relied on. */
static int check_calls(const struct session *s, char *err, size_t len)
{
	int own = syscalls__refused(), attachers = attacher__refused(s->attacher),
	    fetchers = s->fetcher ? fetcher__refused(s->fetcher) : -1,
	    number = own >= 0	    ? own :
		     attachers >= 0 ? attachers :
				      fetchers;
	char name[64];

	if (number < 0)
		return 0;
	snprintf(
		err, len,
		"the filter of system calls refused %s to %s: a fault of sonde, or of someone who attacks it; what was "
		"written before is whole and readable",
		syscalls__name(number, name, sizeof(name)),
		own >= 0       ? "sonde" :
		attachers >= 0 ? "sonde-attacher" :
				 "sonde-fetcher");
	return -EPERM;
}

int session__poll(struct session *s, int timeout_ms, char *err, size_t len)
{
	struct epoll_event ev[16];
	u64 now;
	int ret;

	captured__try(s);
	ret = check_calls(s, err, len);
	if (ret)
		return ret;
	if (attacher__stuck(s->attacher)) {
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, attacher__fd(s->attacher), NULL);
		attacher__note_stuck(s);
	} else if (attacher__gone(s->attacher)) {
		snprintf(err, len,
			 "the process that keeps the probes (sonde-attacher) has ended: nothing more can be "
			 "traced; what was written before is whole and readable");
		return -EPIPE;
	}

	/* one poll does not empty a full ring */
	epoll_wait(s->epoll_fd, ev, 16, s->more ? 0 : timeout_ms);
	changed__poll(s);
	objects__follow(s);
	python__enter_late(s);
	drain__rings(s);
	filter__follow(s);
	now = session__now(s);
	if (now >= s->next_tick) {
		hosts__tick(s, now);
		if (s->native)
			native__tick(s->native, now);
		stack_records__tick(s, now);
		objects__tick(s, now);
		examiner__tick(s);
		shares__tick(s, now);
		ret = trace_writer__tick(s->writer, now);
		if (ret && !s->write_error)
			s->write_error = ret;
		s->next_tick = now + TICK_NS;
	}
	if (now >= s->next_second) {
		filter__tick(s);
		shares__report(s);
		losses__poll(s);
		metadata__cost(s);
		metadata__clock(s);
		features__ended(&s->features);
		process__forget_hung(s);
		remote__report(s);
		s->next_second = now + SECOND_NS;
		if (now >= s->next_tables)
			memory__write_tables(s);
		ret = memory__poll(s, now, err, len);
		if (ret)
			return ret;
	}
	return check_writer(s, err, len);
}

/* What is still open: families' iterators over all tasks. */
static void write_open(struct session *s)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *p = &s->embedded.probes.programs[i];

		if (p->enabled && p->section.kind == SECTION_ITER && !p->section.on_demand)
			session__run_iter(s, p->name);
	}
}

/* alone: of families that have no other probes (family core serves all); else of the others too */
static void detach_tracepoints(struct session *s, bool alone)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *p = &s->embedded.probes.programs[i];

		if (p->enabled && p->section.kind == SECTION_TRACEPOINT &&
		    (!alone || (p->family->id && s->tracepoints_alone[p->family->id])))
			attacher__detach(s->attacher, p);
	}
}

struct stopping {
	bool more;
};

static void host_stopping(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);

	if (h->stopping && f && s->family_on[f->id])
		((struct stopping *)arg)->more |= h->stopping(s);
}

/* What is still to come through the probes, as long as there are some. */
static void stop_families(struct session *s)
{
	u64 end = session__now(s) + STOPPING_NS;
	struct stopping stopping;

	do {
		stopping.more = false;
		drain__rings(s);
		family_host__each(s, host_stopping, &stopping);
		if (stopping.more)
			usleep(STOPPING_LOOK_US);
	} while (stopping.more && session__now(s) < end && !attacher__gone(s->attacher));
}

/*
 * The probes go first: what is open when they are gone stays open in the maps,
 * where the iterators find it; the other way round a call could be written twice.
 * Before Linux 6.6 a probe is a perf event, which takes the kernel up to 0.1 s each to
 * take off: families of tracepoints alone, which fill the rings meanwhile, end before that.
 */
int session__stop(struct session *s, enum end_reason reason, char *err, size_t len)
{
	struct meta_end end = {};
	int ret;

	if (s->started) {
		s->stopped = session__now(s);
		if (s->losses)
			losses__poll(s);
	}
	/* not there: it was stopped before it began */
	if (s->attacher) {
		stop_families(s);
		detach_tracepoints(s, true);
		session__unlink(s);
		detach_tracepoints(s, false);
		write_open(s);
		drain__last(s);
		stack_records__finish(s);
		/* what the last records lacked is counted by the tick */
		if (s->native)
			native__tick(s->native, session__now(s));
		shares__report(s);
		losses__poll(s);
		metadata__hits(s);
		metadata__clock(s);
		metadata__cost(s);
		memory__write_tables(s);
		attacher__note_stuck(s);
		remote__report(s);
	}
	end.event = session__event(s, ID_meta_end);
	end.stop = s->stopped;
	end.reason = reason;
	session__emit(s, &end, sizeof(end));
	ret = trace_writer__finish(s->writer);
	losses__add_refused(s);
	if (ret && !s->write_error)
		s->write_error = ret;
	return check_writer(s, err, len);
}

/* Do the chosen families probe anything that is mapped, or tracepoints alone? */
static bool wants_objects(const struct session *s)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *p = &s->embedded.probes.programs[i];

		if (p->enabled && (p->section.kind == SECTION_SPAN || p->section.kind == SECTION_ENTRY ||
				   p->section.kind == SECTION_PLACED || p->section.kind == SECTION_SITE))
			return true;
	}
	return false;
}

struct session_times session__times(const struct session *s)
{
	return (struct session_times){
		.start = s->head_time,
		.live = s->started,
		.stop = s->stopped ? s->stopped : session__now(s),
	};
}

void session__status(struct session *s, struct session_status *out)
{
	if (!s->writer) {
		*out = (struct session_status){ .not_attached = s->not_attached };
		return;
	}
	*out = (struct session_status){
		.events = trace_writer__events(s->writer),
		.bytes = trace_writer__bytes(s->writer),
		.lost = losses__total(s->losses),
		.cut_off = s->write_error != 0,
		.traced = s->traced,
		.at_tracepoints = s->at_tracepoints,
		.wall_ns = session__now(s) - s->started,
		.live_ns = s->started ? (s->stopped ? s->stopped : session__now(s)) - s->started : 0,
		.cpu_ns = usage__total_ns() - s->cpu_at_start,
		.wants_objects = wants_objects(s),
		.objects = objects__probed(s->objects),
		.not_attached = s->not_attached,
	};
	out->hits = metadata__total_hits(s, &out->skipped_hits);
	out->probes_ns = metadata__probes_ns(s, out->hits);
}

void session__free(struct session *s)
{
	if (!s)
		return;
	features__finish(&s->features);
	examiner__free(s->examiner);
	attacher__free(s->attacher);
	fetcher__free(s->fetcher);
	remote__free(s);
	drain__close(s);
	hosts__free(s);
	mmaps__close(s->mmaps);
	if (s->statm_fd > 0)
		close(s->statm_fd);
	if (s->changed_fd >= 0)
		close(s->changed_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	trace_writer__free(s->writer);
	objects__free(s->objects);
	shares__free(s->shares);
	pause__forget(s, 0);
	stack_records__free(s->stacks);
	native__free(s->native);
	losses__free(s->losses);
	targets__close(s);
	filter__close(s);
	embedded__close(&s->embedded);
	for (u32 i = s->next_warning; i < s->n_warnings; i++)
		free(s->warnings[i]);
	refused__free(s);
	free(s);
}
