// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the names and unwinding rules of code on native stacks. It runs in a child of sonde-examiner, because it parses
 * untrusted files, and keeps the files' tables open for later requests.
 */
#include "record/examine/examine.h"
#include "record/examine/perf_map.h"
#include "record/examine/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define FILES_MAX 64 /* each uses up to two descriptors, of which a child may open only few */
/*
 * The most bytes of all files' tables together. If there are more, the least recently used files are closed. Those of
 * libtorch_cpu have 9 MB.
 */
#define BYTES_MAX (192ULL << 20)

struct code_file {
	u64 number; /* by which requests identify the file; 0: this entry is unused */
	int fd;
	struct elf *elf;
	struct symbols *symbols;
	struct perf_map *perf_map; /* instead of elf and symbols */
	u64 used; /* number of the request that last used it */
};

static struct code_file files[FILES_MAX];
static u64 requests;

static void close_file(struct code_file *f)
{
	symbols__free(f->symbols);
	perf_map__free(f->perf_map);
	elf__close(f->elf);
	close(f->fd);
	*f = (struct code_file){};
}

static u64 held_bytes(void)
{
	u64 bytes = 0;

	for (u32 i = 0; i < FILES_MAX; i++)
		if (files[i].number)
			bytes += files[i].elf ? symbols__bytes(files[i].symbols) + elf__held(files[i].elf) :
						perf_map__bytes(files[i].perf_map);
	return bytes;
}

/* Closes the least recently used files until there is room for one more. */
static struct code_file *free_file(void)
{
	for (;;) {
		struct code_file *least = NULL, *unused = NULL;

		for (u32 i = 0; i < FILES_MAX; i++)
			if (!files[i].number)
				unused = &files[i];
			else if (!least || files[i].used < least->used)
				least = &files[i];
		if (unused && (!least || held_bytes() <= BYTES_MAX))
			return unused;
		close_file(least);
	}
}

static int open_file(struct code_file **out, const struct file_question *q, int fd)
{
	struct code_file *f = free_file();
	int err;

	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0)
		return -errno;
	if (q->op == FILE_PERF_MAP)
		err = perf_map__new(&f->perf_map, f->fd);
	else
		err = elf__open(&f->elf, f->fd) ?: symbols__new(&f->symbols, f->elf, f->fd);
	if (err) {
		close_file(f);
		return err;
	}
	f->number = q->number;
	*out = f;
	return 0;
}

static int file_of(struct code_file **out, const struct file_question *q, int fd)
{
	for (u32 i = 0; i < FILES_MAX; i++)
		if (files[i].number == q->number) {
			*out = &files[i];
			return 0;
		}
	return open_file(out, q, fd);
}

int examine__code(int sock, const struct file_question *q, int fd, bool *over_budget)
{
	struct found_code out = {};
	const struct code_place *p;
	struct code_file *f = NULL;
	int err = q->number ? file_of(&f, q, fd) : -EINVAL;

	if (err)
		return err;
	f->used = ++requests;
	p = f->perf_map ? perf_map__at(f->perf_map, q->offset) : symbols__at(f->symbols, q->offset);
	if (p) {
		out = (struct found_code){
			.function = p->function,
			.unwind_error = p->unwind_error,
			.cfa = p->unwind.cfa,
			.frame_pointer = p->unwind.frame_pointer,
			.has_name = p->name != NULL,
			.has_function = p->has_function,
			.interpreter = p->interpreter,
			.python_call = p->python_call,
			.by_frame_pointer = p->unwind.by_frame_pointer,
			.saved = p->unwind.saved,
			.outermost = p->unwind.outermost,
			.is_code = 1,
			.source = p->source,
		};
		snprintf(out.name, sizeof(out.name), "%s", p->name ? p->name : "");
	}
	*over_budget = f->elf && elf__over_budget(f->elf);
	return answer__send(sock, ANSWER_CODE, 0, &out, sizeof(out));
}
