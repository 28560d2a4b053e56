// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/embedded.h"

#include "kernel/loader.h"
#include "sonde.skel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One log for the process, because libbpf's print callback is one per process. */
static char libbpf_log[4096];

static int keep_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[1024];
	size_t used, n;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	if (secure_getenv("SONDE_DEBUG"))
		fputs(line, stderr);
	used = strlen(libbpf_log);
	n = strlen(line);
	/* drop the oldest part: the newest has the reason */
	if (used + n >= sizeof(libbpf_log)) {
		size_t cut = used + n + 1 - sizeof(libbpf_log);

		memmove(libbpf_log, libbpf_log + cut, used - cut + 1);
	}
	strcat(libbpf_log, line);
	return 0;
}

const char *embedded__log(void)
{
	return libbpf_log;
}

int embedded__open(struct embedded *e, char *err, size_t len)
{
	int ret;

	libbpf_log[0] = '\0';
	libbpf_set_print(keep_log);
	ret = loader__register();
	if (!ret) {
		e->skel = sonde_bpf__open();
		ret = e->skel ? 0 : -errno;
	}
	if (ret) {
		snprintf(err, len, "cannot open the embedded BPF object: %s\n%s", strerror(-ret), libbpf_log);
		return ret;
	}
	ret = schema__from_btf(&e->schema, bpf_object__btf(e->skel->obj), err, len);
	if (!ret)
		ret = probes__init(&e->probes, e->skel->obj, e->schema, err, len);
	return ret;
}

void embedded__close(struct embedded *e)
{
	probes__free(&e->probes);
	schema__free(e->schema);
	sonde_bpf__destroy(e->skel);
	memset(e, 0, sizeof(*e));
}

/* The bytes of the section with that name; NULL: there is none. */
static const Elf_Data *find_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &header) && !strcmp(elf_strptr(elf, names, header.sh_name) ?: "", name))
			return elf_rawdata(scn, NULL);
	return NULL;
}

int embedded__schema(struct schema **out, char *err, size_t len)
{
	size_t size;
	const void *bytes = sonde_bpf__elf_bytes(&size);
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_memory((char *)bytes, size) : NULL;
	const Elf_Data *data = elf ? find_section(elf, ".BTF") : NULL;
	struct btf *btf = data ? btf__new(data->d_buf, data->d_size) : NULL;
	int ret = -EINVAL;

	if (btf)
		ret = schema__from_btf(out, btf, err, len);
	else
		snprintf(err, len, "cannot read the types of the embedded BPF object");
	btf__free(btf);
	elf_end(elf);
	return ret;
}
