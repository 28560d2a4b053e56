// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory that has to be read from a disk or freed first: major page faults, pages that enter the page cache, reclaim
 * and compaction by the thread itself.
 *
 * Whether a fault is major is known only at its end, where the kernel counts it and its software event
 * PAGE_FAULTS_MAJ fires, in the faulting thread and with the address: disk.c attaches disk_faulted there. The start
 * of the fault is noted at the tracepoint of every fault, for threads that are followed.
 */
#include "disk.bpf.h"

#define PAGE_SIZE   4096
#define SECOND_NS   1000000000ULL
#define MAX_CACHE   16384
#define STALL_KINDS 3

/* A thread that is followed. */
struct followed {
	u64 since;
	u64 major, minor, read, written; /* the kernel's counters at that time */
	/*
	 * two of each, as a fault inside the kernel (a copy to or from the thread's memory) may be nested in another
	 * fault
	 */
	u64 user_fault, user_address;
	u64 kernel_fault, kernel_address;
	u64 stall[STALL_KINDS]; /* start times; 0: not in such a wait */
};

struct {
	TASK_STORAGE(struct followed);
} disk_threads SEC(".maps");

struct cache_key {
	struct file_key file;
	u32 pid, from;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CACHE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct cache_key);
	__type(value, struct disk_cache);
} disk_caches SEC(".maps");

static __always_inline struct followed *followed(struct task_struct *task)
{
	return task__stored(&disk_threads, task);
}

static __always_inline struct followed *follow(struct task_struct *task)
{
	struct followed *f = bpf_task_storage_get(&disk_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!f)
		loss__count(EVENT_FAMILY(ID_disk_task), LOSS_STORAGE, bpf_ktime_get_ns());
	return f;
}

/* True with CONFIG_TASK_IO_ACCOUNTING. */
static __always_inline bool has_accounting(void)
{
	return bpf_core_field_exists(((struct task_struct *)0)->ioac.read_bytes);
}

/*
 * Follows threads that exist already, and stores their counters. It runs when tracing begins, and when a process maps a
 * runtime.
 */
SEC("?iter/task")
int disk_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct followed *f;

	if (!task || !task__passed_on(task, option_disk_all))
		return 0;
	f = follow(task);
	if (!f || f->since)
		return 0;
	f->since = bpf_ktime_get_ns();
	f->major = task->maj_flt;
	f->minor = task->min_flt;
	f->read = has_accounting() ? task->ioac.read_bytes : 0;
	f->written = has_accounting() ? task->ioac.write_bytes : 0;
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(disk_forked, struct task_struct *parent, struct task_struct *child)
{
	struct followed *f;

	if (!task__followed(parent, option_disk_all))
		return 0;
	f = follow(child);
	if (f)
		f->since = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void fill_task(struct disk_task *e, struct task_struct *task, const struct followed *f)
{
	e->span.event.time = bpf_ktime_get_ns();
	e->span.event.pid = task->tgid;
	e->span.event.tid = task->pid;
	e->span.event.id = ID_disk_task;
	e->span.start = f->since;
	e->major = task->maj_flt - f->major;
	e->minor = task->min_flt - f->minor;
	if (!has_accounting())
		return;
	e->read = task->ioac.read_bytes - f->read;
	e->written = task->ioac.write_bytes - f->written;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(disk_exited, struct task_struct *task)
{
	struct followed *f = followed(task);
	struct disk_task e = {};

	/* when a whole process ends, it leaves the set before its last thread gets here */
	if (!f || !f->since || (!task__followed(task, option_disk_all) && task__live_threads(task)))
		return 0;
	fill_task(&e, task, f);
	emit(&e, sizeof(e));
	f->since = 0;
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(disk_fault_user, unsigned long address)
{
	struct followed *f = followed(bpf_get_current_task_btf());

	if (!f)
		return 0;
	f->user_fault = bpf_ktime_get_ns();
	f->user_address = address;
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(disk_fault_kernel, unsigned long address)
{
	struct followed *f = followed(bpf_get_current_task_btf());

	if (!f)
		return 0;
	f->kernel_fault = bpf_ktime_get_ns();
	f->kernel_address = address;
	return 0;
}

static long find_file(struct task_struct *task, struct vm_area_struct *vma, struct disk_fault *e)
{
	struct file *file = vma->vm_file;
	struct file_key key = {};
	struct inode *inode;

	if (!file)
		return 0;
	/* read like this, the verifier treats it as a number */
	inode = BPF_CORE_READ(file, f_inode);
	e->file_from = inode__key(inode, &key, DISK_FILE_MAPPING);
	e->dev = key.dev;
	e->ino = key.ino;
	e->offset = (e->address & ~(PAGE_SIZE - 1ULL)) - vma->vm_start + (vma->vm_pgoff << 12);
	disk__emit_file((u64)inode, key.dev, key.ino);
	return 0;
}

SEC("?perf_event")
int disk_faulted(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct disk_fault e = {};
	struct followed *f;

	if (!task__followed(task, option_disk_all))
		return 0;
	event__init(&e.span.event, ID_disk_fault, 0, bpf_ktime_get_ns());
	e.address = ctx->addr;
	f = followed(task);
	if (f && f->user_fault && f->user_address == e.address)
		e.span.start = f->user_fault;
	else if (f && f->kernel_fault && f->kernel_address == e.address)
		e.span.start = f->kernel_fault;
	if (!e.span.start) {
		e.span.start = e.span.event.time;
		e.span.event.flags |= EVENT_NO_DURATION;
	}
	/*
	 * bpf_find_vma() fails if a thread waits to change the mappings, which are locked for reading here; the file
	 * stays unknown then
	 */
	bpf_find_vma(task, e.address, find_file, &e, 0);
	emit(&e, sizeof(e));
	return 0;
}

static __always_inline u64 folio__bytes(struct folio *folio)
{
	struct folio___v614 *now = (void *)folio;
	u64 flags = 0, pages = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & (1ULL << bpf_core_enum_value(enum pageflags, PG_head))))
		return PAGE_SIZE;
	if (bpf_core_field_exists(now->_nr_pages))
		pages = BPF_CORE_READ(now, _nr_pages);
	else if (bpf_core_field_exists(folio->_folio_nr_pages))
		pages = BPF_CORE_READ(folio, _folio_nr_pages);
	return (pages ?: 1) * PAGE_SIZE;
}

/*
 * Emits the sum that was begun at `start`, and begins a new one. Pages that are added at the same moment count in
 * either of the two.
 */
static __always_inline void cache__write(struct disk_cache *c, const struct cache_key *key, u64 start)
{
	struct disk_cache e = { .span.event.time = c->span.event.time, .span.start = start };

	e.adds = __sync_lock_test_and_set(&c->adds, 0);
	e.missed = __sync_lock_test_and_set(&c->missed, 0);
	e.written = __sync_lock_test_and_set(&c->written, 0);
	if (!e.adds && !e.missed && !e.written)
		return;
	/* a thread may have read the clock before `start` and have added after it */
	if (e.span.event.time < start)
		e.span.event.time = start;
	e.span.event.id = ID_disk_cache;
	e.span.event.pid = key->pid;
	e.span.event.tid = key->pid;
	e.dev = key->file.dev;
	e.ino = key->file.ino;
	e.file_from = key->from;
	emit(&e, sizeof(e));
}

/* The current sum of the page's process and file; a new one if the last was begun more than a second ago. */
static __always_inline struct disk_cache *cache__of(struct cache_key *key, u64 now)
{
	struct disk_cache *c = bpf_map_lookup_elem(&disk_caches, key), fresh = {};
	u64 start = c ? c->span.start : 0;

	if (c) {
		/* if several threads get here at the same time, one of them emits the sum */
		if (now > start && now - start >= SECOND_NS &&
		    __sync_val_compare_and_swap(&c->span.start, start, now) == start)
			cache__write(c, key, start);
		return c;
	}
	fresh.span.start = now;
	bpf_map_update_elem(&disk_caches, key, &fresh, BPF_NOEXIST);
	c = bpf_map_lookup_elem(&disk_caches, key);
	if (!c)
		loss__count(EVENT_FAMILY(ID_disk_cache), LOSS_MAP_FULL, now);
	return c;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(disk_cached, struct folio *folio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cache_key key = {};
	struct disk_cache *c;
	struct inode *inode;
	u64 now;

	if (!followed(task) || !task__followed(task, option_disk_all))
		return 0;
	inode = BPF_CORE_READ(folio, mapping, host);
	if (!inode)
		return 0;
	now = bpf_ktime_get_ns();
	key.pid = task->tgid;
	key.from = inode__key(inode, &key.file, DISK_FILE_PAGE_CACHE);
	c = cache__of(&key, now);
	if (!c)
		return 0;
	c->span.event.time = now;
	/* the threads of a process share the sum */
	__sync_fetch_and_add(&c->adds, 1);
	__sync_fetch_and_add(call__writes(task) ? &c->written : &c->missed, folio__bytes(folio));
	disk__emit_file((u64)inode, key.file.dev, key.file.ino);
	return 0;
}

static __always_inline int stall__begin(u32 kind)
{
	struct followed *f = followed(bpf_get_current_task_btf());

	if (f)
		f->stall[kind] = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int stall__end(u32 kind, u64 reclaimed)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct followed *f = followed(task);
	struct disk_stall e = {};

	if (!f || !f->stall[kind])
		return 0;
	event__init(&e.span.event, ID_disk_stall, 0, bpf_ktime_get_ns());
	e.span.start = f->stall[kind];
	e.kind = kind;
	e.reclaimed = reclaimed;
	f->stall[kind] = 0;
	if (task__followed(task, option_disk_all))
		emit(&e, sizeof(e));
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(disk_reclaim_begin)
{
	return stall__begin(DISK_RECLAIM);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(disk_reclaim_end, unsigned long reclaimed)
{
	return stall__end(DISK_RECLAIM, reclaimed);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(disk_cgroup_reclaim_begin)
{
	return stall__begin(DISK_RECLAIM_CGROUP);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(disk_cgroup_reclaim_end, unsigned long reclaimed)
{
	return stall__end(DISK_RECLAIM_CGROUP, reclaimed);
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(disk_compaction_begin)
{
	return stall__begin(DISK_COMPACTION);
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(disk_compaction_end)
{
	return stall__end(DISK_COMPACTION, 0);
}

static long open_cache(void *map, const struct cache_key *key, struct disk_cache *c, void *arg)
{
	cache__write(c, key, c->span.start);
	return 0;
}

#define UNUSED_NS (5 * SECOND_NS)

/*
 * A sum is emitted when its file is read again more than a second after it was begun. This emits sums whose files are
 * not read again.
 */
static long write_unused(void *map, const struct cache_key *key, struct disk_cache *c, u64 *now)
{
	u64 start = c->span.start;

	if (*now - start < UNUSED_NS || *now < start)
		return 0;
	if (c->adds || c->missed || c->written) {
		if (__sync_val_compare_and_swap(&c->span.start, start, *now) == start)
			cache__write(c, key, start);
		return 0;
	}
	/* the last sum was emitted UNUSED_NS ago, and nothing has been added since */
	bpf_map_delete_elem(&disk_caches, key);
	/* a thread may have added between the two calls */
	cache__write(c, key, start);
	return 0;
}

SEC("?iter/task")
int disk_unused(struct bpf_iter__task *ctx)
{
	u64 now = bpf_ktime_get_ns();

	if (!ctx->meta->seq_num && ctx->task)
		bpf_for_each_map_elem(&disk_caches, write_unused, &now, 0);
	return 0;
}

static __always_inline void open_stall(struct seq_file *seq, struct task_struct *task, u64 start, u32 kind)
{
	struct disk_stall e = {};

	if (!start)
		return;
	e.span.event.time = bpf_ktime_get_ns();
	e.span.event.pid = task->tgid;
	e.span.event.tid = task->pid;
	e.span.event.id = ID_disk_stall;
	e.span.event.flags = EVENT_OPEN;
	e.span.start = start;
	e.kind = kind;
	iter__write(seq, &e, sizeof(e));
}

/* Emits the remaining sums, and the counters of each thread. */
SEC("iter/task")
int disk_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct disk_task e = {};
	struct followed *f;

	if (!task)
		return 0;
	if (!ctx->meta->seq_num)
		bpf_for_each_map_elem(&disk_caches, open_cache, NULL, 0);
	f = bpf_task_storage_get(&disk_threads, task, 0, 0);
	if (!f || !f->since)
		return 0;
	fill_task(&e, task, f);
	e.span.event.flags = EVENT_OPEN;
	iter__write(seq, &e, sizeof(e));
	open_stall(seq, task, f->stall[DISK_RECLAIM], DISK_RECLAIM);
	open_stall(seq, task, f->stall[DISK_RECLAIM_CGROUP], DISK_RECLAIM_CGROUP);
	open_stall(seq, task, f->stall[DISK_COMPACTION], DISK_COMPACTION);
	return 0;
}
