/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of user/record/ share. */
#ifndef SONDE_RECORD_INTERNAL_H
#define SONDE_RECORD_INTERNAL_H

#include "core/maps.h"
#include "kernel/embedded.h"
#include "kernel/refused_maps.h"
#include "record/ring.h"
#include "record/session.h"
#include "record/tables.h"

struct sonde_bpf;
struct objects;
struct losses;
struct kept;
struct shares;

#define KEPT_RECORDS_MAX (32u << 20) /* bytes, from which on no more are taken out of the rings */

/* Records in the order of the rings: a u64 with the size, then the record, padded to 8 bytes. */
struct kept_records {
	char *bytes;
	size_t used, size;
	u64 lost; /* records for which there was no memory */
};
struct filter;
struct preattach;
struct examiner;
struct file_facts;
struct stack_records;

struct target {
	u32 pid;
	int pidfd; /* -1: ended */
};

/* A program that the kernel refused (refused.h). */
struct refusal {
	const struct schema_family *family;
	const char *program;
	char *why, *lacks;
	bool all; /* the family is off */
	const struct family_part *part; /* of the family's list; NULL: in none */
};

#define HUNG_MAX 16

/* Of the host code of one family in one recording */
struct host_state {
	bool begun;
	u32 followed; /* last process; the same pid may exec, or be another process by the next tick */
	u64 next_tick;
	void *own; /* h->state bytes */
};

struct session {
	const struct session_args *args;
	struct embedded embedded;
	/* shortcuts into it */
	struct sonde_bpf *skel;
	struct bpf_object *obj;
	struct schema *schema;
	struct features features;
	enum span_mode span_mode;
	enum attach_method span_method, entry_method;
	bool family_on[256]; /* by family id */
	bool everything; /* each program is loaded regardless of the options: for a trial (calibrate.h) */
	const struct family_host *hosts[256]; /* by family id */
	struct host_state host_states[256]; /* likewise */

	struct trace_writer *writer;
	int write_error; /* first failed write */
	struct rings *rings;
	u64 ring_size; /* bytes of data of each */
	struct mmaps *mmaps;
	int epoll_fd;
	int changed_fd; /* inotify: files that are written to */
	struct attacher *attacher; /* has the privileges and the links */
	struct fetcher *fetcher; /* asks debuginfod servers, NULL: not requested */
	struct examiner *examiner; /* has files parsed */
	u32 unpaused; /* sites that were attached without a pause */
	struct {
		u32 n;
		u64 offset; /* of the first */
		u8 verdict; /* enum site_verdict */
	} refused_sites; /* by the attacher, of the family's that is attached */

	struct preattach *preattach; /* between finding and attaching */
	struct objects *objects;
	struct shares *shares;
	struct losses *losses;
	struct stack_records *stacks;
	struct native *native; /* NULL: native stacks were not requested yet */
	struct target *targets;
	u32 n_targets;
	struct filter *filter;
	u32 filter_need; /* enum process_flags that a process must have to be recorded; 0: no filter */

	u64 head_time; /* CLOCK_MONOTONIC ns of the trace's head */
	s64 clock_offset; /* BPF's CLOCK_MONOTONIC minus ours: not 0 in a time namespace */
	u64 started; /* ns: everything found at the start is attached */
	u64 stopped; /* ns: the traced time is over, detaching begins; 0: not yet */
	u64 cpu_at_start; /* ns of CPU time that loading and attaching took */
	u64 next_tick, next_second;
	u64 followed; /* ns: up to here new mappings are known */
	bool more; /* the last poll of the rings took as much as one poll may: there is more */
	u64 drained; /* how often all rings were read to their end, and each record was handled */
	u64 traced; /* records of targets, not about the trace itself */
	u64 recorded[256]; /* the same by family */
	u64 at_tracepoints; /* of these, those of families that have nothing but tracepoints */
	bool tracepoints_alone[256]; /* such families, by id */
	char *warnings[64];
	u32 n_warnings, next_warning;
	u32 not_attached;
	struct refused_maps refused_maps;
	struct refusal *refusals;
	u32 n_refusals;
	u32 n_reported, n_written; /* of these, as warnings and into the trace */
	struct kept *kept; /* links that go off and on */
	u32 n_kept;
	u32 gave_up; /* files that would have taken too much memory */
	u64 next_tables; /* ns: when the sizes of tables are written again */
	int statm_fd; /* /proc/self/statm, which can't be opened later; 0: not open */
	u64 memory_max; /* bytes of data that this process may have; 0: no limit of its own */
	u64 memory_again, memory_again_time; /* bytes or ns, at which tables are given up once more */
	bool memory_warned;
	u32 hung[HUNG_MAX]; /* processes that are not asked about any more; the last ones */
	u32 n_hung;
	struct remote_files *remote; /* left out since the last line about such; NULL: none were */
	u32 remote_lines;
	bool stuck_noted; /* the attacher's not answering is reported */
	bool draining;
	struct kept_records kept_records;
	u32 unwatched; /* objects with files that can't be watched */
	u32 hidden; /* objects that hold a library whose symbols are stripped */
};

/* services.c */
struct event session__event(const struct session *s, u16 id);

/* hosts.c */
struct object;
/* hosts.c: each calls what the families that are on have for it, after `begin` */
void hosts__open(struct session *s);
void hosts__free(struct session *s);
void hosts__tick(struct session *s, u64 now);
void hosts__joined(struct session *s, u32 pid);
void hosts__mapped(struct session *s, struct object *o, const struct mapping *m);
void host__event(struct session *s, u8 family, const struct event *e, u32 size);
void family_host__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, void *arg),
		       void *arg);

/* load.c: open, choose, configure, load */
int load__open(struct session *s, char *err, size_t len);
int load__load(struct session *s, char *err, size_t len);
/* Does this recording need the program? */
bool load__wants(struct session *s, const struct program *p);

/* link.c: links on any number of sites; the first error, and how many more are attached (NULL: not asked) */
int session__link(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites,
		  u32 *attached);
/* Takes all of them off. */
void session__unlink(struct session *s);

/* pause.c: families whose probes go off and on (family_host.slices) */
/* What their links are known by, and other families' too. */
u32 pause__object(const struct schema_family *family, u32 object);
/* Stores the request to session__link, if it is of such a family. */
int pause__keep(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites);
/* An object's, 0: all */
void pause__forget(struct session *s, u32 object);

/* drain.c */
int drain__open(struct session *s, char *err, size_t len);
void drain__append(struct session *s, const void *record, u32 size);
void drain__rings(struct session *s);
void drain__keep(struct session *s);
void drain__last(struct session *s);
void drain__close(struct session *s);

/* objects.c: mapped files and the probes in them */
int objects__new(struct session *s);
void objects__free(struct objects *o);
int objects__scan(struct session *s, u32 pid);
/* Probes a file on disk if a family probes libraries of its name; fd stays the caller's. */
int objects__preattach(struct session *s, const char *path, int fd);
void objects__follow(struct session *s);
u32 objects__probed(const struct objects *o);
/* Of a process whose new files were not examined at once (shares.h), but may be now: they are mapped since then. */
void objects__scan_late(struct session *s, u32 pid, u64 since);
/* Now and then: evict.c */
void objects__tick(struct session *s, u64 now);
void objects__sizes(const struct objects *o, table_size_fn *fn, void *arg);
/* By the id in the trace; NULL: none. */
const char *objects__path(const struct objects *o, u16 id);

/* preattach.c: libraries on disk that no process maps yet */
void preattach__find(struct session *s);
void preattach__attach(struct session *s);

/* memory.c: what sonde allows itself */
void memory__limit(struct session *s);
/* -ENOMEM with a message: it can't go on. */
int memory__poll(struct session *s, u64 now, char *err, size_t len);
void memory__write_tables(struct session *s);

/* python.c: before a file is probed: processes that run it are known from their first event on if it is a CPython */
void python__examined(struct session *s, struct file_facts *file, const struct mapping *m);
/* Does the recording walk Python stacks? */
bool python__is_walked(const struct session *s);
/* Tries again to enter processes whose data was not mapped yet when their code was. */
void python__enter_late(struct session *s);
/* The file is overwritten: what is known of it holds no more. */
void python__forget_file(struct session *s, u64 dev, u64 ino, u32 generation);

/* changed.c: probed files that are overwritten in place */
int changed__open(struct session *s);
void changed__poll(struct session *s);

/* hung.c: what does not answer */
/* Does the user want the end? What takes time is then left out. */
bool session__is_stopping(const struct session *s);
/* Did the kernel not answer in time about this process? */
bool process__is_hung(const struct session *s, u32 pid);
void process__set_hung(struct session *s, u32 pid);
/* Of those that have ended: another process may get the number. */
void process__forget_hung(struct session *s);
/* Reports once that the attacher does not answer. */
void attacher__note_stuck(struct session *s);

/* losses.c */
int losses__new(struct session *s);
void losses__free(struct losses *l);
void losses__poll(struct session *s);
/* pid: the process whose records these are; 0: it is not known, or there are several. */
void losses__add_of(struct session *s, u32 pid, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last,
		    u16 object);
void losses__add(struct session *s, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last, u16 object);
/* What the writer refused to take, which it says itself: to be asked once, after its end. */
void losses__add_refused(struct session *s);
/* The object is forgotten: what was lost of it keeps its path. */
void losses__keep_path(struct losses *l, u16 object, const char *path);
u64 losses__total(const struct losses *l);
void losses__sizes(const struct losses *l, table_size_fn *fn, void *arg);

/* stacks.c: frames and code */
struct stack_records *stack_records__new(void);
void stack_records__free(struct stack_records *st);
/* Takes a raw record, one of core/stack.h. */
void stack_records__record(struct session *s, const void *record, u32 size);
/* No more records come. */
void stack_records__finish(struct session *s);
/* Now and then: forgets code when there is too much of it. */
void stack_records__tick(struct session *s, u64 now);
/* Forgets all code, soon. */
void stack_records__trim(struct session *s, u64 now);
void stack_records__sizes(const struct stack_records *st, table_size_fn *fn, void *arg);

/* privileged.c: from loaded programs to a process without privileges */
int privileged__start(struct session *s, char *err, size_t len);

/* maps.c: leaves this process those maps that it reads, to be read alone; what can't be had is added to lacks */
void maps__give_up(struct session *s, char *lacks, size_t len);

/* remote.c: a line about files on remote file systems that were left out since the last one, if there are any. */
void remote__report(struct session *s);
void remote__free(struct session *s);

/* captured.c, for tests */
void captured__try(struct session *s);

/* targets.c: -p */
int targets__open(struct session *s, char *err, size_t len);
void targets__select(struct session *s);
void targets__close(struct session *s);
u32 process__get(const struct session *s, u32 pid);
void process__set(struct session *s, u32 pid, u32 flags);
void process__clear(struct session *s, u32 pid, u32 flags);
/* Is it selected, or was it lately and is being introduced (filter.c)? */
bool process__is_introduced(const struct session *s, u32 pid);
/* Do the filters leave this process out? Also of one that has ended. */
bool process__is_foreign(const struct session *s, u32 pid);

/* filter.c: --comm, --cgroup, --scope user */
int filter__open(struct session *s, char *err, size_t len);
void filter__close(struct session *s);
int filter__configure(struct session *s,
		      int (*set)(struct session *s, const char *name, const void *value, size_t size));
int filter__load(struct session *s);
int filter__seed(struct session *s);
void filter__note(struct session *s, const struct event *e, u32 size);
void filter__follow(struct session *s);
void filter__tick(struct session *s);

/* metadata.c: what a trace says about itself */
void metadata__head(struct session *s, struct trace_head *head, char *buf, size_t len);
void metadata__clock(struct session *s);
void metadata__probes(struct session *s, u32 from);
void metadata__hits(struct session *s);
void metadata__cost(struct session *s);
u64 metadata__total_hits(struct session *s, u64 *skipped);
u64 metadata__probes_ns(struct session *s, u64 hits);

#endif
