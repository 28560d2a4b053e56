/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internal to the files of user/record/. */
#pragma once

#include "core/maps.h"
#include "kernel/embedded.h"
#include "record/ring.h"
#include "record/session.h"
#include "record/slices.h"
#include "record/tables.h"

struct sonde_bpf;
struct objects;
struct losses;
struct paused_link;
struct shares;
struct python_known;

/* Copied records in the order of the rings: a u64 with the size, then the record, padded to 8 bytes. */
struct copied_records {
	char *bytes;
	size_t used, size;
	size_t handled; /* bytes of the records that were handled */
};
/* Records of a family that the worker dropped and did not count yet */
struct dropped_records {
	u64 n, first, last;
};
struct filter;
struct preattach;
struct examiner;
struct file_facts;
struct stack_records;
struct task_samples;

struct target {
	u32 pid;
	int pidfd; /* -1: ended */
};

/* A program that the kernel refused (refused.h). */
struct refusal {
	const struct schema_family *family;
	const char *program;
	char *why, *lacks;
	bool is_whole_family; /* the whole family is disabled */
	const struct family_part *part; /* in the family's list; NULL: the list has no such part */
};

#define HUNG_MAX 16

/* The state of one family's host code in one recording. */
struct host_state {
	bool has_begun;
	u32 last_followed; /* process of the last call; a pid may exec, or be reused, by the next tick */
	u64 next_tick;
	void *data; /* h->state bytes */
};

struct session {
	const struct session_args *args;
	struct embedded embedded;
	/* point into it */
	struct sonde_bpf *skel;
	struct bpf_object *obj;
	struct schema *schema;
	struct features features;
	struct {
		enum span_mode spans;
		enum attach_method span, entry;
	} method; /* how calls and entries are probed */
	bool family_on[FAMILY_MAX]; /* by family id */
	bool everything; /* all families, and all their programs regardless of the options: for try_families.h */
	u64 hints; /* FAMILY_BIT of those whose is_runtime gets its hint */
	const struct family_host *hosts[FAMILY_MAX]; /* by family id */
	struct host_state host_states[FAMILY_MAX]; /* by family id */
	struct {
		struct refusal *programs;
		u32 n;
		u32 n_reported, n_written; /* how many of these were printed as warnings and written into the trace */
	} refused; /* what the kernel refused */

	struct trace_writer *writer;
	int write_error; /* the first failed write */
	struct {
		struct rings *rings;
		u64 ring_size; /* bytes of data of each ring */
		bool has_more; /* there are more records: in the rings, or copied and not handled */
		bool is_handling; /* a record is being handled */
		u64 n_complete; /* how often all rings were read to their end and each record was handled */
		u64 next_copy; /* ns */
		struct copied_records incoming, current; /* those of `current` are handled first */
		struct dropped_records dropped[FAMILY_MAX]; /* for lack of memory */
	} drain;
	struct mmaps *mmaps;
	int epoll_fd;
	int changed_fd; /* inotify: writes to files */
	struct attacher *attacher; /* has the privileges and the links */
	struct examiner *examiner; /* parses files */
	struct {
		u32 n;
		u64 offset; /* of the first one */
		u8 verdict; /* enum site_verdict */
	} refused_sites; /* sites that the attacher refused, of the family that is being attached */

	struct preattach *preattach; /* libraries on disk that are still to be probed; NULL: none */
	pid_t searcher; /* the child that searched for them, until it has been waited for; 0: none */
	struct objects *objects;
	struct shares *shares;
	struct python_known *python;
	struct losses *losses;
	struct stack_records *stacks;
	struct task_samples *tasks; /* NULL: no process with an event loop was seen */
	struct native *native; /* NULL: no native stack was requested yet */
	struct target *targets;
	u32 n_targets;
	struct filter *filter;
	u32 filter_need; /* enum process_flags that a process must have to be recorded; 0: no filter */
	struct paused_link *paused_links; /* links of families that are paused and resumed */
	u32 n_paused_links;

	struct {
		u64 head; /* CLOCK_MONOTONIC ns of the trace's head */
		s64 offset; /* BPF's CLOCK_MONOTONIC minus this process's: not 0 in a time namespace */
		u64 started; /* ns: when everything found at the start was attached */
		u64 stopped; /* ns: end of the traced time, when detaching begins; 0: not yet */
		u64 cpu_at_start; /* ns of CPU time for loading and attaching */
		u64 next_tick, next_second;
		u64 next_tables; /* ns: of the next report of table sizes */
		u64 mappings_until; /* ns: mappings made until then are known */
	} time;
	struct {
		bool is_suspended; /* records are discarded, the probes of families with .set_suspended detached */
		u64 suspended_since; /* ns */
		u64 since; /* begin of a pause whose end is not known yet, ns; 0: the recording is not paused */
		u64 sum; /* ns of the pauses before it */
		u64 unmeasured; /* part of sum in which --cost-limit had detached families sched and sample */
		bool schedule_ended;
	} pause;
	struct slices slices;
	struct {
		u64 traced; /* records of targets, without those about the trace itself */
		u64 recorded[FAMILY_MAX]; /* by family id */
		u64 at_tracepoints; /* records in `traced` of families that only use tracepoints */
		bool tracepoints_alone[FAMILY_MAX]; /* by family id: it only uses tracepoints */
		u32 not_attached;
		u32 since_wait; /* sites that were attached since session__link() last waited */
	} counts;
	struct {
		/* the warning about each account's first object that contains a library with stripped symbols */
		struct hidden_note {
			char *text;
			const struct schema_family *family; /* that probes the library */
			u32 account;
		} * notes;
		u32 n;
		u64 probed; /* FAMILY_BIT of those that probe an object */
	} hidden;
	struct {
		struct first {
			u32 account;
			enum first_of { FIRST_HIDDEN, FIRST_UNWATCHED } what;
		} * list;
		u32 n;
	} firsts; /* of which warnings the accounts had the first */
	struct {
		char **texts;
		u32 n, next;
	} warnings;
	struct {
		int statm_fd; /* /proc/self/statm, which can't be opened later; 0: not open */
		u64 max; /* limit of this process's data in bytes; 0: none */
		u64 again, again_time; /* bytes and ns above which tables are freed once more */
		bool warned;
	} memory;
	struct {
		u32 pids[HUNG_MAX]; /* the last processes that did not answer, which are not asked about again */
		u32 n;
		bool stuck_noted; /* it was reported that the attacher does not answer */
		struct hung_account {
			u32 uid, n; /* requests that got no answer */
			u64 last; /* ns */
		} accounts[HUNG_MAX]; /* the last ones */
		u32 n_accounts;
	} hung;
	struct remote_files *remote; /* files left out since the last warning about them; NULL: none */
};

/*
 * session.c: loads all programs of the families for a trial (try_families.h), which ends with its process. Attaches and
 * records nothing. *out is NULL only without memory.
 */
int session__open_trial(struct session **out, const struct session_args *args, const struct features *f, char *err,
			size_t len);

/* services.c */
struct event session__event(const struct session *s, u16 id);

/* hosts.c */
struct object;
/* hosts.c: allocates the state of the families that are on, and calls their `prepare`. 0 or -ENOMEM */
int hosts__open(struct session *s);
/* Each calls the function of this name of the families that are on, after `begin`. */
void hosts__free(struct session *s);
void hosts__tick(struct session *s, u64 now);
void hosts__process_selected(struct session *s, u32 pid);
void hosts__mapped(struct session *s, struct object *o, const struct mapping *m);
/* Lets the record's family change it; returns false if the record is to be discarded. */
bool host__cut(struct session *s, void *record, u32 size);
void host__event(struct session *s, u8 family, const struct event *e, u32 size);
void family_host__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, void *arg),
		       void *arg);

/* In options.c: the families and options of the command line. -EINVAL, with a message: wrong usage */
int options__apply(struct session *s, char *err, size_t len);

/* In load.c: open, configure, load. */
int load__open(struct session *s, char *err, size_t len);
int load__load(struct session *s, char *err, size_t len);
/* Returns whether this recording needs the program. */
bool load__is_needed(struct session *s, const struct program *p);

/*
 * In link.c: attaches any number of sites; returns the first error; *attached (may be NULL) grows by the number of
 * attached sites.
 */
int session__link(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites,
		  u32 *attached);
/* Detaches all sites. */
void session__unlink(struct session *s);

/* In pause.c: families whose probes are detached and attached again (family_host.slices). */
/* The object number of their links; also used for other families. */
u32 pause__object(const struct program *p, u32 object);
/* Returns for how long --cost-limit has left out families sched and sample, without the pauses of the recording. */
u64 pause__unmeasured(const struct session *s);
/* Are the probes of this program detached now, so that new ones are stored and not attached? */
bool pause__is_suspended(const struct session *s, const struct program *p);
/* Should this record be discarded? */
bool pause__discards(const struct session *s, const struct event *e, u32 size);
/* Stores the arguments of session__link if the family can be paused. */
int pause__store(struct session *s, const struct program *p, enum attach_method method, const struct link_sites *sites);
/* Drops the stored links of an object; 0: of all. */
void pause__forget(struct session *s, u32 object);

/* drain.c */
int drain__open(struct session *s, char *err, size_t len);
void drain__append(struct session *s, const void *record, u32 size);
void drain__rings(struct session *s);
void drain__copy(struct session *s);
/* Handles all records that are in the rings now, or as many as it can within a second. */
void drain__all(struct session *s);
void drain__last(struct session *s);
void drain__close(struct session *s);

/* In objects.c: mapped files and the probes in them. */
int objects__new(struct session *s);
void objects__free(struct objects *o);
int objects__scan(struct session *s, u32 pid);
/* Probes a file on disk if a family probes libraries of its name; fd stays the caller's. */
int objects__preattach(struct session *s, const char *path, int fd);
void objects__follow(struct session *s);
u32 objects__probed(const struct objects *o);
/*
 * Scans a process whose new files were not examined at once (shares.h) but may be now: they were mapped since
 * `since`.
 */
void objects__scan_late(struct session *s, u32 pid, u64 since);
/* Waits a moment for the files that take long to examine; those that take longer are probed while sonde traces. */
void objects__await(struct session *s);
/* In evict.c: called at each tick. */
void objects__tick(struct session *s, u64 now);
void objects__sizes(const struct objects *o, table_size_fn *fn, void *arg);
/* Returns the path of the object with this id in the trace; NULL: there is none. */
const char *objects__path(const struct objects *o, u16 id);

/* In preattach.c: libraries on disk that no process maps yet. */
/* Creates the child process that searches for them, while this process has its privileges. */
void preattach__find(struct session *s);
/* Notes where a mapped file shows that a Python has its packages; the child searches there, too. */
void preattach__note(struct session *s, const char *path);
/* Lets the child begin, once the running processes have been scanned. */
void preattach__search(struct session *s);
/* Returns whether the next function does not have to wait for the child. */
bool preattach__is_ready(struct session *s);
/* Probes the next of them; s->preattach is NULL after the last. Waits for the child if necessary. */
void preattach__attach_next(struct session *s);
/* Waits for the child if it has ended. */
void preattach__reap(struct session *s);
void preattach__free(struct session *s);

/* In missed.c: counts libraries that were mapped too late to be probed. Called when the traced time has ended. */
void missed__finish(struct session *s);
/* attach.c: warns that a library with stripped symbols is not probed, unless another family records its work. */
/* Returns whether this is the first such warning about a file of the account. */
bool session__is_first(struct session *s, u32 account, enum first_of what);
void session__warn_hidden(struct session *s);

/*
 * In memory.c: allows this process and those that it forks as many descriptors as a recording may need. Returns -EMFILE
 * with a message if the limit is too low and may not be raised.
 */
int memory__raise_files(char *err, size_t len);
/* Limits sonde's own memory. */
void memory__limit(struct session *s);
/* Returns -ENOMEM with a message if the recording can't continue. */
int memory__poll(struct session *s, u64 now, char *err, size_t len);
void memory__write_tables(struct session *s);

/*
 * In python.c. Called before a file is probed: if it is a CPython, processes that run it are known from their first
 * event on.
 */
void python__examined(struct session *s, struct file_facts *file, const struct mapping *m);
/*
 * If the file is a CPython, the stacks of its processes can be walked from here on; if not, reports why. May be called
 * for several families of one mapping.
 */
void python__mapped(struct session *s, struct file_facts *file, const struct mapping *m);
/* Returns the state of python.c; NULL: no memory. */
struct python_known *python_known__new(void);
/* Returns whether the recording walks Python stacks. */
bool python__is_walked(const struct session *s);
/* Tries again to enter processes whose data was not mapped yet when their code was. */
void python__enter_late(struct session *s);
/* Drops the facts about a file that is overwritten. */
void python__forget_file(struct session *s, u64 dev, u64 ino, u32 generation);

/* In changed.c: probed files that are overwritten in place. */
int changed__open(struct session *s);
void changed__poll(struct session *s);

/* In hung.c: files and processes that do not answer. */
/* Returns whether the user wants to stop. Steps that take long are then skipped. */
bool session__is_stopping(const struct session *s);
/* Returns whether the kernel did not answer in time about this process. */
/*
 * Returns whether a file of the account, or a debug file for one, may be requested from the opener, whose time limit it
 * sets.
 */
bool hung__may_ask(struct session *s, u32 uid, bool for_debug_file);
/* Notes that such a request got no answer. */
void hung__note(struct session *s, u32 uid);
/* Returns whether the process, or its account, is not to be asked about; sets the opener's time limit. */
bool process__is_hung(struct session *s, u32 pid);
void process__set_hung(struct session *s, u32 pid);
/* Removes processes that have ended: their pids may be reused. */
void process__forget_hung(struct session *s);
/* Reports once that the attacher does not answer. */
void attacher__note_stuck(struct session *s);

/* losses.c */
int losses__new(struct session *s);
void losses__free(struct losses *l);
void losses__poll(struct session *s);
/* pid: the process that the records belong to; 0: unknown, or several. */
void losses__add_of(struct session *s, u32 pid, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last,
		    u16 object);
void losses__add(struct session *s, u16 family, enum loss_reason reason, u64 count, u64 first, u64 last, u16 object);
/* Adds records that the writer refused. Call it once, after the last write. */
void losses__add_refused(struct session *s);
/* Stores the path of an object that is about to be removed, for its losses. */
void losses__store_path(struct losses *l, u16 object, const char *path);
u64 losses__total(const struct losses *l);
void losses__sizes(const struct losses *l, table_size_fn *fn, void *arg);

/* In stacks.c: frames and code. */
struct stack_records *stack_records__new(void);
void stack_records__free(struct stack_records *st);
/* Handles a raw record of core/stack.h. */
void stack_records__record(struct session *s, const void *record, u32 size);
/* Called after the last record. */
void stack_records__finish(struct session *s);
/* Called at each tick: removes code objects if there are too many. */
/* Returns the id of a Python function that the BPF programs did not send; 0: no memory. */
u32 stack_records__function(struct session *s, const char *name, const char *file, u32 line);
void stack_records__tick(struct session *s, u64 now);
/* Removes all code objects, soon. */
void stack_records__trim(struct session *s, u64 now);
void stack_records__sizes(const struct stack_records *st, table_size_fn *fn, void *arg);

/* In privileged.c: from loaded programs to a process without privileges. */
int privileged__start(struct session *s, char *err, size_t len);

/* In maps.c: closes all maps except those that are needed, which become read-only; failures are appended to lacks. */
void maps__restrict(struct session *s, char *lacks, size_t len);

/*
 * In remote.c: prints a line about files on remote file systems that were left out since the last line, if there are
 * any.
 */
void remote__report(struct session *s);
void remote__free(struct session *s);

/* targets.c: -p */
int targets__open(struct session *s, char *err, size_t len);
void targets__select(struct session *s);
void targets__close(struct session *s);
u32 process__get(const struct session *s, u32 pid);
void process__set(struct session *s, u32 pid, u32 flags);
void process__clear(struct session *s, u32 pid, u32 flags);
/* Returns whether the process is selected, or was recently and is being introduced (filter.c). */
bool process__is_introduced(const struct session *s, u32 pid);
/* Returns whether the filters exclude this process. Works for processes that have ended, too. */
bool process__is_foreign(const struct session *s, u32 pid);

/* filter.c: --comm, --cgroup, --scope user */
int filter__open(struct session *s, char *err, size_t len);
void filter__close(struct session *s);
int filter__configure(struct session *s);
int filter__load(struct session *s);
int filter__seed(struct session *s);
void filter__note(struct session *s, const struct event *e, u32 size);
void filter__follow(struct session *s);
void filter__tick(struct session *s);

/* In metadata.c: the metadata of the trace. */
void metadata__head(struct session *s, struct trace_head *head, char *buf, size_t len);
void metadata__clock(struct session *s);
void metadata__probes(struct session *s, u32 from);
void metadata__hits(struct session *s);
void metadata__cost(struct session *s);
u64 metadata__total_hits(struct session *s, u64 *skipped);
u64 metadata__probes_ns(struct session *s, u64 hits);
