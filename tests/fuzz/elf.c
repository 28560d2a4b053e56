// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any bytes as an ELF file: calls every function of elf/elf.h and the finders of the GIL, and chooses probe
 * sites.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../bpf/probes/gil/gil_find.h"
#include "../../bpf/probes/python/python_find.h"
#include "elf/elf.h"
#include "elf/usdt.h"
#include "fuzz.h"
#include "python/stripped.h"
#include "site/place.h"

struct seen {
	struct elf *elf;
	struct placer *placer; /* NULL: unknown machine */
	u64 sum;
	u32 n;
};

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct placement where;
	struct seen *s = arg;
	struct elf_unwind unwind;
	u64 start, size = 0;

	s->sum += strlen(sym->name) + sym->offset;
	if (s->n++ < 64 && !elf__function_at(s->elf, sym->addr, &start, &size))
		s->sum += start + size;
	if (s->n < 64 && !elf__unwind(s->elf, sym->addr + size / 2, &unwind))
		s->sum += (u64)unwind.cfa;
	if (s->placer && s->n < 64 && !placer__function(s->placer, sym->addr, sym->size, &where))
		s->sum += where.n + where.exits + where.sites[0].addr;
	return s->n > 100000;
}

static int on_version(const char *version, void *arg)
{
	struct seen *s = arg;

	s->sum += strlen(version) + elf__defines_version(s->elf, version);
	return s->n++ > 100000;
}

static int on_usdt(const struct usdt *probe, void *arg)
{
	struct seen *s = arg;

	s->sum += strlen(probe->name) + probe->offset + probe->semaphore + probe->args[0].reg;
	return 0;
}

/* The USDT probes of CPython. */
static void touch_python(struct elf *elf, struct placer *placer)
{
	struct seen s = { .elf = elf };
	struct import_place place;
	struct stripped stripped;
	struct elf_symbol clones[4];
	const char *why;

	usdt__each(elf, "python", on_usdt, &s);
	s.sum += stripped__is_cpython(elf) + stripped__find(elf, &stripped);
	s.sum += python_find__clones(elf, "invoke_gc_callback", clones, 4) + python_find__version(elf);
	if (placer)
		python_find__import(elf, placer, &place, &why);
}

static void touch(struct elf *elf)
{
	struct gil_wait_site waits[GIL_SITES_MAX];
	struct seen s = { .elf = elf };
	struct gil_libc_site libc;
	static const char *const names[] = { "PyEval_RestoreThread", "hidden_one", "main" };
	struct elf_symbol found[3];
	u64 addr, size, list[4];
	char link[64];
	u32 crc;
	const char *why;
	const u8 *p;
	u32 i;

	elf__add_debugdata(elf);
	s.sum += elf__find_symbols(elf, names, 3, found) + elf__names_hold(elf, "libcudart_static_");
	s.sum += elf__section_holds(elf, ".rodata", "x") + elf__section_holds(elf, ".nv_fatbin", "");
	s.sum += elf__needs(elf, "libc.so") + !elf__debuglink(elf, link, sizeof(link), &crc);
	elf__each_needed_version(elf, on_version, &s);
	s.sum += elf__defines_version(elf, "GLIBC_2.34");
	s.n = 0;
	s.placer = placer__new(elf, false);
	elf__each_symbol(elf, on_symbol, &s);
	touch_python(elf, s.placer);
	placer__free(s.placer);
	s.sum += strlen(elf__build_id(elf));
	for (i = 0; elf__text(elf, i, &addr, &size); i++) {
		p = elf__bytes(elf, addr, &size);
		if (p)
			s.sum += p[0] + p[size - 1];
	}
	s.sum += elf__plt_stubs(elf, "pthread_cond_timedwait", list, 4) + elf__got_slots(elf, "malloc", list, 4);
	s.sum += gil_find__is_cpython(elf) + gil_find__is_free_threaded(elf) + place__marked_shadow_stack(elf);
	s.sum += gil_find__waits(elf, waits, GIL_SITES_MAX);
	s.sum += gil_find__libc(elf, &libc, &why);
	fuzz__use(s.sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct elf *elf;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	/* for any machine, as probe sites of foreign files can be listed too */
	if (!elf__open(&elf, fd)) {
		/* the file as its own debug file, with the same build id or none */
		elf__add_debug(elf, dup(fd), NULL);
		touch(elf);
	}
	elf__close(elf);
	close(fd);
	return 0;
}
