// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs in the child of foreign.c. */
#include "elf/foreign_private.h"

#include "elf/elf_private.h"
#include "sandbox/message.h"
#include "util/test_switch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DYNAMIC_MAX 4096 /* entries that are read */

_Static_assert(offsetof(struct foreign_question, text) == FOREIGN_QUESTION_HEAD, "the head of a question");
_Static_assert(offsetof(struct foreign_answer, texts) == FOREIGN_ANSWER_HEAD, "the head of an answer");

static struct file {
	u32 number; /* 0: free */
	int fd;
	struct elf *elf;
} files[FOREIGN_FILES];

/* Takes ownership of the descriptor. */
static int elf_of(u32 number, int fd, struct elf **out)
{
	struct file *f = &files[number % FOREIGN_FILES];
	int err;

	if (f->number == number) {
		close(fd);
		*out = f->elf;
		return 0;
	}
	if (f->number) {
		elf__close(f->elf);
		close(f->fd);
		f->number = 0;
	}
	err = elf__open(out, fd);
	if (err)
		close(fd);
	else
		*f = (struct file){ number, fd, *out };
	return err;
}

static u32 list_texts(struct elf *elf, struct foreign_text *out)
{
	u64 addr, size, offset;
	u32 n = 0;

	for (u32 i = 0; n < FOREIGN_TEXTS && elf__text(elf, i, &addr, &size); i++)
		if (!elf__offset(elf, addr, &offset))
			out[n++] = (struct foreign_text){ addr, size, offset };
	return n;
}

static int find(struct elf *elf, const struct foreign_question *q, struct foreign_symbol *out)
{
	const char *names[FOREIGN_SYMBOLS], *at = q->text;
	struct elf_symbol found[FOREIGN_SYMBOLS];

	if (q->n > FOREIGN_SYMBOLS)
		return -EINVAL;
	for (u32 i = 0; i < q->n; i++, at += strlen(at) + 1)
		names[i] = at;
	memset(out, 0, q->n * sizeof(*out));
	elf__find_symbols(elf, names, q->n, found);
	for (u32 i = 0; i < q->n; i++)
		if (found[i].name)
			out[i] = (struct foreign_symbol){
				.addr = found[i].addr,
				.size = found[i].size,
				.offset = found[i].offset,
				.found = 1,
				.dynamic = found[i].dynamic,
				.default_version = found[i].default_version,
				.function = found[i].function,
			};
	return 0;
}

static int holds(const struct elf_symbol *sym, void *arg)
{
	u64 addr = *(const u64 *)arg;

	return sym->dynamic && sym->function && addr >= sym->addr && addr - sym->addr < sym->size;
}

struct dynamic {
	struct elf *elf;
	const u8 *entries;
	u64 n;
	u64 strings, strings_size;
};

static bool entry_at(const struct dynamic *d, u64 i, Elf64_Dyn *dyn)
{
	if (i >= d->n)
		return false;
	memcpy(dyn, d->entries + i * sizeof(*dyn), sizeof(*dyn));
	return dyn->d_tag != DT_NULL;
}

static u64 value_of(const struct dynamic *d, s64 tag)
{
	Elf64_Dyn dyn;

	for (u64 i = 0; entry_at(d, i, &dyn); i++)
		if (dyn.d_tag == tag)
			return dyn.d_un.d_val;
	return 0;
}

/* NULL: out of bounds, or no string */
static const char *string_at(const struct dynamic *d, u64 offset)
{
	u64 len = d->strings_size - offset;
	const u8 *text;

	if (!offset || offset >= d->strings_size || d->strings + offset < d->strings)
		return NULL;
	text = elf__bytes(d->elf, d->strings + offset, &len);
	return text && strnlen((const char *)text, len) < len ? (const char *)text : NULL;
}

static bool open_dynamic(struct dynamic *d, struct elf *elf)
{
	struct elf_section section;
	u32 index = 0;

	*d = (struct dynamic){ .elf = elf };
	d->entries = elf__section_data(elf, NULL, SHT_DYNAMIC, &index, &section);
	if (!d->entries)
		return false;
	d->n = section.size / sizeof(Elf64_Dyn);
	if (d->n > DYNAMIC_MAX)
		d->n = DYNAMIC_MAX;
	d->strings = value_of(d, DT_STRTAB);
	d->strings_size = value_of(d, DT_STRSZ);
	return d->strings;
}

static bool add_text(struct foreign_answer *a, size_t *size, const char *text)
{
	size_t len = strlen(text ? text : "") + 1;

	if (len > sizeof(a->text) - *size)
		return false;
	memcpy(a->text + *size, text ? text : "", len);
	*size += len;
	return true;
}

/* Names that do not fit are left out. */
static size_t list_needed(struct elf *elf, struct foreign_answer *a)
{
	struct dynamic d;
	size_t size = 0;
	Elf64_Dyn dyn;

	if (!open_dynamic(&d, elf))
		d.n = 0;
	if (!add_text(a, &size, string_at(&d, value_of(&d, DT_RPATH))) ||
	    !add_text(a, &size, string_at(&d, value_of(&d, DT_RUNPATH)))) {
		a->result = -E2BIG;
		return 0;
	}
	for (u64 i = 0; entry_at(&d, i, &dyn); i++) {
		const char *name = dyn.d_tag == DT_NEEDED ? string_at(&d, dyn.d_un.d_val) : NULL;

		a->n += name && add_text(a, &size, name);
	}
	return size;
}

/* Returns the bytes of the answer after its header. */
static size_t answer(struct elf *elf, const struct foreign_question *q, struct foreign_answer *a)
{
	u64 addr = q->value;

	switch (q->op) {
	case FOREIGN_OPEN:
		a->n = list_texts(elf, a->texts);
		return a->n * sizeof(*a->texts);
	case FOREIGN_FIND:
		a->result = find(elf, q, a->symbols);
		return a->result ? 0 : q->n * sizeof(*a->symbols);
	case FOREIGN_UNWIND:
		a->result = elf__unwind(elf, addr, &a->unwind);
		return a->result ? 0 : sizeof(a->unwind);
	case FOREIGN_EXPORTED:
		a->n = elf__each_symbol(elf, holds, &addr) > 0;
		return 0;
	case FOREIGN_VERSION:
		a->n = q->n && elf__defines_version(elf, q->text);
		return 0;
	case FOREIGN_NEEDED:
		return list_needed(elf, a);
	}
	a->result = -EINVAL;
	return 0;
}

void foreign__serve(int sock, void *arg)
{
	static struct foreign_question q;
	static struct foreign_answer a;
	struct elf *elf;
	size_t size = 0;
	u32 asked = 0;
	ssize_t n;
	int fd;

	while ((n = message__receive(sock, &q, sizeof(q), &fd)) >= (ssize_t)FOREIGN_QUESTION_HEAD) {
		if (fd < 0)
			return;
		asked++;
		if (test_switch__is_set("foreign-crash") || (asked > 1 && test_switch__is_set("foreign-crash-later")))
			abort();
		if (test_switch__is_set("foreign-hang")) {
			close(fd);
			continue;
		}
		memset(&a, 0, FOREIGN_ANSWER_HEAD);
		a.result = elf_of(q.number, fd, &elf);
		size = a.result ? 0 : answer(elf, &q, &a);
		if (message__send(sock, &a, FOREIGN_ANSWER_HEAD + size, -1))
			return;
	}
}
