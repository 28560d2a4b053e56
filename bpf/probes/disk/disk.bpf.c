// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Block I/O. The requesting thread is known only where a bio is submitted: any thread may issue the request that the
 * bio becomes part of, and an interrupt completes it. So the bio of a followed thread is noted when it is queued.
 * When the request is issued, the note is found through the request's bios, and it is stored with the request until
 * its completion. docs/disk.md has the reasons, and lists what is not recorded.
 */
#include "disk.bpf.h"

OPTION(disk, all, "every process and the kernel's own threads, not only those with a runtime and busy native ones");

struct disk_named_map disk_named SEC(".maps");
struct disk_path_map disk_paths SEC(".maps");

#define MAX_BIOS 65536
#define MAX_IOS	 16384
/* The most bios of a request that are visited, which is more than the segments that devices accept. */
#define WALK 1024

/* include/linux/blk_types.h; the numbers are the same from 6.1 to 6.18. */
#define REQ_OP_MASK	    0xff
#define REQ_OP_READ	    0
#define REQ_OP_WRITE	    1
#define REQ_OP_FLUSH	    2
#define REQ_OP_DISCARD	    3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_ZONE_APPEND  7
#define REQ_OP_WRITE_ZEROES 9
#define REQ_OP_DRV_IN	    34
#define REQ_OP_DRV_OUT	    35

/* A bio, from its submission until its request is issued or it ends without one. Key: its address. */
struct queued_bio {
	u64 start, sector, bytes;
	struct file_key file;
	u32 pid, tid;
	u32 opf;
	u8 asker, file_from;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_BIOS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct queued_bio);
} disk_bios SEC(".maps");

/* A request, from its issue to its completion. Key: its address. */
struct flight {
	struct disk_io io;
	u64 returned; /* time at which the device returned it to be issued again */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_IOS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct flight);
} disk_requests SEC(".maps");

#define REQ_BIT(name) (1U << bpf_core_enum_value(enum req_flag_bits, name))

static __always_inline u16 traits_of(u32 opf)
{
	return (opf & REQ_BIT(__REQ_SYNC) ? DISK_SYNC : 0) | (opf & REQ_BIT(__REQ_META) ? DISK_META : 0) |
	       (opf & REQ_BIT(__REQ_FUA) ? DISK_FUA : 0) | (opf & REQ_BIT(__REQ_PREFLUSH) ? DISK_PREFLUSH : 0) |
	       (opf & REQ_BIT(__REQ_RAHEAD) ? DISK_READAHEAD : 0);
}

static __always_inline u32 op_of(u32 opf)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return DISK_READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		return DISK_WRITE;
	case REQ_OP_FLUSH:
		return DISK_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return DISK_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return DISK_WRITE_ZEROES;
	default:
		return DISK_OTHER;
	}
}

/* Bit 0 marks a tail page: include/linux/page-flags.h. */
static __always_inline struct page *page__head(struct page *page)
{
	struct page___info *newer = (void *)page;
	u64 head;

	if (bpf_core_field_exists(newer->compound_info))
		head = BPF_CORE_READ(newer, compound_info);
	else
		head = BPF_CORE_READ(page, compound_head);
	if (!(head & 1))
		return page;
	/* the memory map lies below the last 4 GiB of addresses, so such a value is a mask */
	if (head >> 32 == 0xffffffff)
		return (struct page *)((u64)page & head);
	return (struct page *)(head - 1);
}

/*
 * The file that owns the first page of the bio. A page of the page cache is locked while it is read, and marked as
 * under writeback while it is written. Other pages are buffers of O_DIRECT I/O, which may be pages of some other file
 * that the process has mapped.
 */
static __always_inline struct inode *bio__inode(struct bio *bio)
{
	void *vecs = BPF_CORE_READ(bio, bi_io_vec);
	u32 index = BPF_CORE_READ(bio, bi_iter.bi_idx);
	struct bio_vec *vec = vecs + index * bpf_core_type_size(struct bio_vec);
	u64 mapping, flags = 0, busy;
	struct page *page;

	if (!vecs)
		return NULL;
	page = page__head(BPF_CORE_READ(vec, bv_page));
	bpf_probe_read_kernel(&flags, sizeof(flags), page);
	if ((BPF_CORE_READ(bio, bi_opf) & REQ_OP_MASK) == REQ_OP_READ)
		busy = 1ULL << bpf_core_enum_value(enum pageflags, PG_locked);
	else
		busy = 1ULL << bpf_core_enum_value(enum pageflags, PG_writeback);
	mapping = (u64)BPF_CORE_READ(page, mapping);
	/* the low bits are set if the page is not of a file: PAGE_MAPPING_FLAGS */
	if (!(flags & busy) || !mapping || mapping & 3)
		return NULL;
	return BPF_CORE_READ((struct address_space *)mapping, host);
}

static __always_inline void note_file(struct queued_bio *a, struct bio *bio, struct task_struct *task)
{
	struct inode *inode = bio__inode(bio);

	if (inode) {
		a->file_from = inode__key(inode, &a->file, DISK_FILE_PAGE_CACHE);
	} else {
		inode = call__inode(task);
		if (!inode)
			return;
		a->file_from = inode__key(inode, &a->file, DISK_FILE_CALL);
	}
	disk__emit_file((u64)inode, a->file.dev, a->file.ino);
}

static __always_inline void note(struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)bio;
	struct queued_bio a = {};

	if (!task__followed(task, option_disk_all)) {
		/* an old note at this address belongs to an earlier bio */
		bpf_map_delete_elem(&disk_bios, &key);
		return;
	}
	a.start = bpf_ktime_get_ns();
	a.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	a.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	a.opf = BPF_CORE_READ(bio, bi_opf);
	a.pid = task->tgid;
	a.tid = task->pid;
	note_file(&a, bio, task);
	if (task->flags & PF_KTHREAD)
		a.asker = op_of(a.opf) == DISK_WRITE && a.file_from == DISK_FILE_PAGE_CACHE ? DISK_BY_WRITEBACK :
											      DISK_BY_KERNEL;
	if (bpf_map_update_elem(&disk_bios, &key, &a, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_disk_io), LOSS_MAP_FULL, a.start);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(disk_bio_queued, struct bio *bio)
{
	note(bio);
	return 0;
}

/* The front part that is split off is a bio of its own and is issued at once; the rest keeps its note. */
SEC("tp_btf/block_split")
int BPF_PROG(disk_bio_split, struct bio *bio)
{
	note(bio);
	return 0;
}

static __always_inline void name_disk(struct disk_io *io, struct gendisk *disk)
{
	io->disk_dev = BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
	bpf_probe_read_kernel_str(io->disk, sizeof(io->disk), disk->disk_name);
}

static __always_inline void fill(struct disk_io *io, const struct queued_bio *a)
{
	io->span.event.pid = a->pid;
	io->span.event.tid = a->tid;
	io->span.event.id = ID_disk_io;
	io->span.start = a->start;
	io->sector = a->sector;
	io->bytes = a->bytes;
	io->dev = a->file.dev;
	io->ino = a->file.ino;
	io->op = op_of(a->opf);
	io->traits = traits_of(a->opf);
	io->asker = a->asker;
	io->file_from = a->file_from;
}

struct walk {
	struct disk_io *io;
	struct bio *bio;
};

static long take_note(u32 i, struct walk *w)
{
	struct disk_io *io = w->io;
	struct bio *bio = w->bio;
	u64 key = (u64)bio;
	struct queued_bio *a;

	if (!bio)
		return 1;
	io->bios++;
	a = bpf_map_lookup_elem(&disk_bios, &key);
	if (a) {
		if (!io->own_bios++)
			fill(io, a);
		/* a request has waited for as long as the bio in it that waited longest */
		if (a->start < io->span.start)
			io->span.start = a->start;
		bpf_map_delete_elem(&disk_bios, &key);
	}
	w->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

/*
 * Emits a request whose completion was not seen, because the kernel skipped the program there. Its memory is unused
 * or belongs to another request by now.
 */
static __always_inline void emit_unfinished(struct disk_io *io)
{
	u64 now = bpf_ktime_get_ns();

	io->span.event.time = now;
	io->span.event.flags |= EVENT_RETURN_NOT_SEEN;
	emit(io, sizeof(*io));
	loss__count(EVENT_FAMILY(ID_disk_io), LOSS_RETURN, now);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(disk_issued, struct request *rq)
{
	u64 now = bpf_ktime_get_ns(), key = (u64)rq;
	u32 op = rq->cmd_flags & REQ_OP_MASK;
	struct flight f = {}, *again;
	struct disk_io *io = &f.io;
	/* read once: see iter__write() */
	struct walk w = { .io = io, .bio = rq->bio };
	struct gendisk *disk = rq->q->disk;

	/* skips commands that a driver or a program sends by itself, and flushes that serve many bios */
	if (!w.bio || op == REQ_OP_DRV_IN || op == REQ_OP_DRV_OUT)
		return 0;
	again = bpf_map_lookup_elem(&disk_requests, &key);
	if (again && again->returned) {
		again->returned = 0;
		again->io.issued = now;
		return 0;
	}
	if (again) {
		emit_unfinished(&again->io);
		bpf_map_delete_elem(&disk_requests, &key);
	}
	bpf_loop(WALK, take_note, &w, 0);
	if (!io->own_bios)
		return 0;
	io->issued = now;
	io->sector = rq->__sector;
	io->bytes = rq->__data_len;
	io->op = op_of(rq->cmd_flags);
	io->traits = traits_of(rq->cmd_flags);
	name_disk(io, disk);
	if (bpf_map_update_elem(&disk_requests, &key, &f, BPF_ANY))
		loss__count(EVENT_FAMILY(ID_disk_io), LOSS_MAP_FULL, now);
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(disk_requeued, struct request *rq)
{
	u64 key = (u64)rq;
	struct flight *f = bpf_map_lookup_elem(&disk_requests, &key);

	if (f) {
		f->io.requeues++;
		f->returned = 1;
	}
	return 0;
}

/*
 * An empty bio that flushes the device's cache is served by a request that the kernel makes for several such bios and
 * that has no task. The bio's own request is never issued; it is recorded when it completes.
 */
static __always_inline void flushed(struct request *rq, u8 error)
{
	u64 key = (u64)rq->bio;
	struct queued_bio *a = bpf_map_lookup_elem(&disk_bios, &key);
	struct disk_io io = {};

	if (!a || !(a->opf & REQ_BIT(__REQ_PREFLUSH)))
		return;
	fill(&io, a);
	io.op = DISK_FLUSH;
	io.sector = 0;
	io.status = error;
	io.bios = 1;
	io.own_bios = 1;
	io.span.event.time = bpf_ktime_get_ns();
	name_disk(&io, rq->q->disk);
	emit(&io, sizeof(io));
	bpf_map_delete_elem(&disk_bios, &key);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(disk_completed, struct request *rq, u8 error, unsigned int bytes)
{
	u64 key = (u64)rq;
	struct flight *f = bpf_map_lookup_elem(&disk_requests, &key);
	struct disk_io *io;

	/* a request that writes data has a length */
	if (f && !rq->__data_len) {
		emit_unfinished(&f->io);
		bpf_map_delete_elem(&disk_requests, &key);
		f = NULL;
	}
	if (!f) {
		if (rq->bio && !rq->__data_len)
			flushed(rq, error);
		return 0;
	}
	io = &f->io;
	if (error)
		io->status = error;
	/* a device may complete a part of a request; the tracepoint runs before that part is subtracted */
	if (bytes < rq->__data_len)
		return 0;
	io->span.event.time = bpf_ktime_get_ns();
	emit(io, sizeof(*io));
	bpf_map_delete_elem(&disk_requests, &key);
	return 0;
}

/* A bio of a device without requests (dm, md, zram). Its I/O is recorded at the device below, which has requests. */
SEC("tp_btf/block_bio_complete")
int BPF_PROG(disk_bio_completed, struct request_queue *q, struct bio *bio)
{
	u64 key = (u64)bio;

	bpf_map_delete_elem(&disk_bios, &key);
	return 0;
}

/*
 * Has the request ended, and does its memory belong to another request now? The kernel reuses the memory of requests.
 */
static __always_inline bool has_ended(struct request *rq, const struct flight *f)
{
	u64 sector = BPF_CORE_READ(rq, __sector);

	if (f->returned)
		return false;
	return !BPF_CORE_READ(rq, bio) || BPF_CORE_READ(rq, state) == MQ_RQ_IDLE || sector < f->io.sector ||
	       sector >= f->io.sector + f->io.bytes / 512;
}

static long open_request(void *map, const u64 *key, struct flight *f, void *arg)
{
	struct disk_io *io = &f->io;

	if (has_ended((struct request *)*key, f)) {
		emit_unfinished(io);
		return 0;
	}
	io->span.event.time = bpf_ktime_get_ns();
	io->span.event.flags |= EVENT_OPEN;
	emit(io, sizeof(*io));
	return 0;
}

static long open_bio(void *map, const u64 *key, struct queued_bio *a, void *arg)
{
	struct disk_io io = {};

	fill(&io, a);
	io.own_bios = 1;
	io.bios = 1;
	io.span.event.time = bpf_ktime_get_ns();
	io.span.event.flags |= EVENT_OPEN;
	emit(&io, sizeof(io));
	return 0;
}

/* Writes the requests that are in flight when tracing stops. */
SEC("iter/task")
int disk_open(struct bpf_iter__task *ctx)
{
	if (ctx->meta->seq_num || !ctx->task)
		return 0;
	bpf_for_each_map_elem(&disk_requests, open_request, NULL, 0);
	bpf_for_each_map_elem(&disk_bios, open_bio, NULL, 0);
	return 0;
}
