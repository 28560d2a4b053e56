// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What placing found out about an object's functions, kept by build id in
 * /var/cache/sonde (SONDE_CACHE names another folder), so that a library of
 * thousands of functions is read once.
 *
 * A build id is a claim: anybody can make a file with that of another. So each
 * function is kept with a hash of its code, and what is read back holds only for
 * a function with the same code at the same address: its sites are then the
 * beginnings of its instructions. The file itself is checked like any foreign one.
 * Where it can't be read or written there is no cache, and no message.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "site/place_private.h"
#include "util/array.h"

#define FOLDER	      "/var/cache/sonde"
#define MAGIC	      0x31636c7065646e73ULL
#define RULES	      1 /* to be raised when other sites would be found */
#define FILE_MAX      (64u << 20)
#define FUNCTIONS_MAX 200000

struct file_head {
	u64 magic;
	u32 rules;
	u32 shadow_stack;
	u32 n; /* functions */
	u32 bytes; /* after this head */
	u64 hash; /* of them */
};

struct file_part {
	u64 addr, size;
};

struct file_site {
	u64 addr;
	u32 above;
	u8 kind, cost, by_frame_pointer, pad;
};

/* followed by its parts and sites */
struct file_function {
	u64 addr, size; /* as asked for */
	u64 hash; /* of its parts' code */
	u8 n_parts, n_sites, exits, pad;
	u8 why[4]; /* entry, exits, unwinding: place in reasons[], from 1 */
};

struct cache {
	u64 *index; /* by function: address and where in bytes, two words, sorted */
	u8 *bytes;
	u32 used, max;
	u32 n; /* functions in bytes */
	u32 n_index; /* those that can be found */
	bool changed;
};

/* What may stand in a placement's texts: one that is missing here is only never kept. */
static const char *const reasons[] = {
	WHY_STEPPED_JUMP, WHY_STEPPED_STACK, WHY_STEPPED_ARGUMENT, WHY_STEPPED,	     WHY_UNKNOWN_INSN, WHY_ENTERED,
	WHY_JUMPED_TO,	  WHY_SHADOW_STACK,  WHY_EXIT_STEPPED,	   WHY_SAME_PLACE,   WHY_MANY_EXITS,   WHY_MANY_UNWINDS,
	WHY_UNWIND,	  WHY_OVERLAP,	     WHY_INDIRECT,	   WHY_LEAVES_STACK, WHY_LEAVES_CODE,  WHY_TABLES,
	WHY_PAD,	  WHY_PAST_END,	     WHY_TOO_LARGE,	   WHY_PARTS,	     WHY_JUMP_TABLES,  WHY_NO_SIZE,
};
#define N_REASONS ARRAY_LEN(reasons)

static int reason_number(const char *why)
{
	if (!why)
		return 0;
	for (u32 i = 0; i < N_REASONS; i++)
		if (!strcmp(reasons[i], why))
			return (int)i + 1;
	return -1;
}

static int open_folder(void)
{
	const char *folder = getenv("SONDE_CACHE");
	struct stat st;
	int fd;

	if (!folder || !*folder)
		folder = FOLDER;
	if (mkdir(folder, 0700) && errno != EEXIST)
		return -1;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* what others could write is not ours to believe */
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 022) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool file_name(const struct placer *p, char *buf, size_t len)
{
	const char *id = elf__build_id(p->elf);

	if (strlen(id) < 16)
		return false;
	return snprintf(buf, len, "%s-%u%s.places", id, elf__machine(p->elf), p->shadow_stack ? "-s" : "") < (int)len;
}

static bool read_all(int fd, void *buf, size_t len)
{
	ssize_t n;

	for (size_t done = 0; done < len; done += (size_t)n) {
		n = read(fd, (char *)buf + done, len - done);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool write_all(int fd, const void *buf, size_t len)
{
	ssize_t n;

	for (size_t done = 0; done < len; done += (size_t)n) {
		n = write(fd, (const char *)buf + done, len - done);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool take_index(struct cache *c, u64 addr, u32 at)
{
	u64 *index = array__extend(c->index, c->n_index, 2 * sizeof(*index));

	if (!index)
		return false;
	c->index = index;
	c->index[2 * c->n_index] = addr;
	c->index[2 * c->n_index++ + 1] = at;
	c->n = c->n_index;
	return true;
}

static u64 record_size(const struct file_function *f)
{
	return sizeof(*f) + f->n_parts * sizeof(struct file_part) + f->n_sites * sizeof(struct file_site);
}

static bool index_file(struct cache *c, u32 n)
{
	struct file_function f;
	u32 at = 0;

	while (n-- && c->used - at >= sizeof(f)) {
		memcpy(&f, c->bytes + at, sizeof(f));
		if (f.n_parts > PARTS_MAX || f.n_sites > PLACE_SITES_MAX || record_size(&f) > c->used - at ||
		    !take_index(c, f.addr, at))
			return false;
		at += record_size(&f);
	}
	return at == c->used;
}

static int by_address(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static bool load(struct cache *c, int fd, bool shadow_stack)
{
	struct file_head head;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022 ||
	    !read_all(fd, &head, sizeof(head)))
		return false;
	if (head.magic != MAGIC || head.rules != RULES || !head.shadow_stack != !shadow_stack ||
	    head.n > FUNCTIONS_MAX || head.bytes > FILE_MAX || (u64)st.st_size != sizeof(head) + head.bytes)
		return false;
	c->bytes = malloc(head.bytes + 1);
	if (!c->bytes || !read_all(fd, c->bytes, head.bytes) || XXH3_64bits(c->bytes, head.bytes) != head.hash)
		return false;
	c->used = c->max = head.bytes;
	if (!index_file(c, head.n))
		return false;
	if (c->n_index)
		qsort(c->index, c->n_index, 2 * sizeof(*c->index), by_address);
	return true;
}

struct cache *cache__open(struct placer *p)
{
	struct cache *c = calloc(1, sizeof(*c));
	int folder = open_folder(), fd;
	char name[256];

	if (!c || folder < 0 || !file_name(p, name, sizeof(name))) {
		if (folder >= 0)
			close(folder);
		free(c);
		return NULL;
	}
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	close(folder);
	if (fd >= 0 && !load(c, fd, p->shadow_stack)) {
		free(c->bytes);
		free(c->index);
		memset(c, 0, sizeof(*c));
	}
	if (fd >= 0)
		close(fd);
	return c;
}

/* Replaces the file in one step; two at once: the last one's stays. */
static void save(const struct cache *c, struct placer *p)
{
	struct file_head head = {
		.magic = MAGIC,
		.rules = RULES,
		.shadow_stack = p->shadow_stack,
		.n = c->n,
		.bytes = c->used,
		.hash = XXH3_64bits(c->bytes, c->used),
	};
	int folder = open_folder(), fd;
	char name[256], draft[300];

	if (folder < 0)
		return;
	file_name(p, name, sizeof(name));
	snprintf(draft, sizeof(draft), ".%s.%d", name, getpid());
	fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		if (!write_all(fd, &head, sizeof(head)) || !write_all(fd, c->bytes, c->used) || close(fd) ||
		    renameat(folder, draft, folder, name))
			unlinkat(folder, draft, 0);
	}
	close(folder);
}

void cache__close(struct cache *c, struct placer *p)
{
	if (!c)
		return;
	if (c->changed)
		save(c, p);
	free(c->bytes);
	free(c->index);
	free(c);
}

static bool hash_parts(struct placer *p, const struct place_part *parts, u32 n, u64 *hash)
{
	*hash = 0;
	for (u32 i = 0; i < n; i++) {
		u64 len = parts[i].size;
		const u8 *code = elf__bytes(p->elf, parts[i].addr, &len);

		if (!code || len != parts[i].size)
			return false;
		*hash = XXH3_64bits_withSeed(code, len, *hash);
	}
	return n;
}

static bool in_parts(const struct place_part *parts, u32 n, u64 addr)
{
	for (u32 i = 0; i < n; i++)
		if (addr >= parts[i].addr && addr - parts[i].addr < parts[i].size)
			return true;
	return false;
}

/* One that was kept; false: it does not fit this file. */
static bool unpack(struct placer *p, const u8 *at, struct placement *out)
{
	struct file_function f;
	struct file_part part;
	struct file_site site;
	u64 hash;
	u32 i;

	memcpy(&f, at, sizeof(f));
	at += sizeof(f);
	memset(out, 0, sizeof(*out));
	for (i = 0; i < f.n_parts; i++, at += sizeof(part)) {
		memcpy(&part, at, sizeof(part));
		out->parts[i] = (struct place_part){ part.addr, part.size };
	}
	out->n_parts = f.n_parts;
	if (!hash_parts(p, out->parts, out->n_parts, &hash) || hash != f.hash)
		return false;
	for (i = 0; i < f.n_sites; i++, at += sizeof(site)) {
		memcpy(&site, at, sizeof(site));
		if (site.kind > PLACE_UNWIND || site.cost > PLACE_STEPPED || site.above & 7 || site.above >= 1u << 18 ||
		    (site.kind == PLACE_ENTRY) != !i || !in_parts(out->parts, out->n_parts, site.addr))
			return false;
		out->sites[i] =
			(struct place_site){ site.addr, site.kind, site.cost, site.by_frame_pointer, site.above };
	}
	out->n = f.n_sites;
	out->exits = f.exits;
	if (f.why[0] > N_REASONS || f.why[1] > N_REASONS || f.why[2] > N_REASONS)
		return false;
	out->entry_why = f.why[0] ? reasons[f.why[0] - 1] : NULL;
	out->exits_why = f.why[1] ? reasons[f.why[1] - 1] : NULL;
	out->unwind_why = f.why[2] ? reasons[f.why[2] - 1] : NULL;
	return out->n;
}

bool cache__get(struct cache *c, struct placer *p, u64 addr, u64 size, struct placement *out)
{
	struct file_function f;
	u32 lo = 0, hi = c->n_index;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (c->index[2 * mid] < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->n_index || c->index[2 * lo] != addr)
		return false;
	memcpy(&f, c->bytes + c->index[2 * lo + 1], sizeof(f));
	return f.size == size && unpack(p, c->bytes + c->index[2 * lo + 1], out);
}

static void *make_room(struct cache *c, u64 size)
{
	u8 *bigger;

	if (c->used + size > FILE_MAX || c->n == FUNCTIONS_MAX)
		return NULL;
	if (c->used + size > c->max) {
		bigger = realloc(c->bytes, c->max * 2 + size + 4096);
		if (!bigger)
			return NULL;
		c->bytes = bigger;
		c->max = c->max * 2 + size + 4096;
	}
	return c->bytes + c->used;
}

/* New ones are found again only in the next run: the index is sorted when the file is read. */
void cache__put(struct cache *c, struct placer *p, u64 addr, u64 size, const struct placement *pl)
{
	int why[3] = { reason_number(pl->entry_why), reason_number(pl->exits_why), reason_number(pl->unwind_why) };
	struct file_function f = {
		.addr = addr,
		.size = size,
		.n_parts = pl->n_parts,
		.n_sites = pl->n,
		.exits = pl->exits,
		.why = { why[0], why[1], why[2] },
	};
	u8 *at;
	u32 i;

	if (why[0] < 0 || why[1] < 0 || why[2] < 0 || !pl->n || !hash_parts(p, pl->parts, pl->n_parts, &f.hash))
		return;
	at = make_room(c, record_size(&f));
	if (!at)
		return;
	memcpy(at, &f, sizeof(f));
	at += sizeof(f);
	for (i = 0; i < f.n_parts; i++, at += sizeof(struct file_part))
		memcpy(at, &(struct file_part){ pl->parts[i].addr, pl->parts[i].size }, sizeof(struct file_part));
	for (i = 0; i < f.n_sites; i++, at += sizeof(struct file_site)) {
		const struct place_site *s = &pl->sites[i];
		struct file_site site = { s->addr, s->above, s->kind, s->cost, s->by_frame_pointer, 0 };

		memcpy(at, &site, sizeof(site));
	}
	c->used += record_size(&f);
	c->n++;
	c->changed = true;
}
