// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads the embedded BPF object: chooses its programs, and adapts to the kernel's features. */
#include "record/load/load.h"

#include "kernel/loader.h"
#include "record/parts.h"
#include "sonde.skel.h"
#include "util/array.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int session__set_variable(struct session *s, const char *name, const void *value, size_t size)
{
	const struct btf *btf = bpf_object__btf(s->embedded.skel->obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_var_secinfo *v = sec ? btf_var_secinfos(sec) : NULL;
	size_t len = sec ? sec->size : 0;
	char *data = (char *)s->embedded.skel->rodata;

	for (int i = 0; v && data && i < btf_vlen(sec); i++, v++) {
		const char *n = btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off);

		if (strcmp(n, name))
			continue;
		if (v->size != size || v->offset + size > len)
			return -EINVAL;
		memcpy(data + v->offset, value, size);
		return 0;
	}
	return -ENOENT;
}

int load__open(struct session *s, char *err, size_t len)
{
	int ret = embedded__open(&s->embedded, err, len);

	/* -EINVAL means wrong usage to the callers */
	if (ret == -EINVAL)
		ret = -ENOTSUP;
	return ret ? ret : options__apply(s, err, len);
}

/* Returns 0, or writes why nothing can be traced here. */
static int check_privilege(struct session *s, char *err, size_t len)
{
	if (!s->features.bpf && (s->features.error == -EPERM || s->features.error == -EACCES)) {
		snprintf(
			err, len,
			"not permitted to load BPF programs: run sonde as root "
			"(or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and CAP_CHECKPOINT_RESTORE)");
		return s->features.error;
	}
	if (!s->features.bpf) {
		snprintf(err, len, "this kernel loads no BPF programs: %s", strerror(-s->features.error));
		return s->features.error;
	}
	if (!s->features.btf) {
		snprintf(err, len,
			 "this kernel has no BTF (/sys/kernel/btf/vmlinux): sonde needs Linux 6.1 or newer built with "
			 "CONFIG_DEBUG_INFO_BTF=y");
		return -ENOTSUP;
	}
	return 0;
}

static void choose_methods(struct session *s)
{
	const struct features *f = &s->features;

	s->load.method.entry = f->multi ? ATTACH_MULTI : ATTACH_PERF;
	if (!f->returns) {
		s->load.method.spans = SPAN_ENTRY_ONLY;
		s->load.method.span = s->load.method.entry;
		session__warn(s, "this kernel lets seccomp filters kill a process for returning from a probed call: no "
				 "return is probed, calls have no durations");
	} else if (f->session) {
		s->load.method.spans = SPAN_SESSION;
		s->load.method.span = ATTACH_SESSION;
	} else {
		/*
		 * a return probe on all processes' calls is not safe without the entry filter: design.md, "Spans and
		 * returns"
		 */
		s->load.method.spans = s->args->n_pids ? SPAN_PAIR : SPAN_ENTRY_ONLY;
		s->load.method.span = s->load.method.entry;
	}
}

static void note_needs(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	bool at_calls = family_host__python_requested(s, h);

	s->load.walks_at_calls |= at_calls;
	s->load.walks_python |= h->python || at_calls;
	s->load.names_files |= h->names_files && family_host__follows(s, h);
}

bool load__has_family(const struct session *s, u8 family)
{
	return s->load.family_on[family];
}

bool load__has_separate_returns(const struct session *s)
{
	return s->load.method.spans == SPAN_PAIR;
}

bool load__is_needed(struct session *s, const struct program *p)
{
	const struct family_host *h = p->family->id ? family_host__find(p->family->name) : NULL;

	if (!s->load.family_on[p->family->id])
		return false;
	if (!strncmp(p->name, "core_python_", strlen("core_python_")))
		return s->load.walks_python;
	if (!strncmp(p->name, "core_file_", strlen("core_file_")))
		return s->load.names_files;
	if (p->section.kind == SECTION_CALLED)
		return s->load.walks_at_calls;
	if (h && h->needs_program && !h->needs_program(s, p->name))
		return false;
	return !p->section.option[0] || session__option(s, p->family->name, p->section.option);
}

/* Notes the families that use tracepoints only: their hits are not counted. */
static void note_tracepoints(struct session *s)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->section.kind == SECTION_TRACEPOINT && p->family->id)
			s->load.tracepoints_alone[p->family->id] = true;
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (section__is_in_file(&p->section))
			s->load.tracepoints_alone[p->family->id] = false;
}

static int choose_programs(struct session *s)
{
	note_tracepoints(s);
	hosts__each(s, note_needs, NULL);
	PROGRAMS_EACH(p, &s->embedded.probes) {
		/* a program tail-calls only programs that are attached in the same way */
		bool span = p->section.kind == SECTION_SPAN || p->section.kind == SECTION_CALLED;
		enum attach_method m = span ? s->load.method.span : s->load.method.entry;

		p->enabled = s->load.everything || load__is_needed(s, p);
		if (p->enabled && p->section.kind == SECTION_TRACEPOINT && !features__tracepoint(p->section.rest) &&
		    refused__absent(s, p))
			return -ENOMEM;
		bpf_program__set_autoload(p->prog, p->enabled);
		if (span || section__is_in_file(&p->section))
			bpf_program__set_expected_attach_type(p->prog, m == ATTACH_SESSION ?
									       ATTACH_TYPE_UPROBE_SESSION :
								       m == ATTACH_MULTI ? ATTACH_TYPE_UPROBE_MULTI :
											   0);
	}
	return 0;
}

/* The tables of stacks need about 20 MB of kernel memory, allocated at once. */
static int size_stacks(struct session *s)
{
	struct bpf_map *const maps[] = { s->embedded.skel->maps.stack_nodes, s->embedded.skel->maps.python_codes,
					 s->embedded.skel->maps.python_stacks };
	int ret = 0;

	for (u32 i = 0; !ret && !s->load.walks_python && i < ARRAY_LEN(maps); i++)
		ret = bpf_map__set_max_entries(maps[i], 1);
	return ret;
}

/* Fills the map for tail calls. */
static int fill_tail_calls(struct session *s)
{
	u32 first = 0;
	int ret = 0, fd;

	PROGRAMS_EACH(p, &s->embedded.probes) {
		if (ret || !p->enabled || p->section.kind != SECTION_CALLED)
			continue;
		fd = bpf_program__fd(p->prog);
		if (bpf_map_update_elem(session__map_fd(s, p->section.rest), &first, &fd, BPF_ANY))
			ret = -errno;
	}
	return ret;
}

static void configure_host(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	int *ret = arg;

	if (!*ret && h->configure)
		*ret = h->configure(s);
}

/* Sets everything that is configured before loading. */
static int configure_object(struct session *s)
{
	bool unreadable = session__test_switch("unreadable-code");
	int ret = choose_programs(s)								      ?:
			  session__set_variable(s, "span_mode", &s->load.method.spans, sizeof(u32))   ?:
			  session__set_variable(s, "no_args", &s->args->no_args, sizeof(bool))	      ?:
			  session__set_variable(s, "test_unreadable_code", &unreadable, sizeof(bool)) ?:
			  filter__configure(s);

	hosts__each(s, configure_host, &ret);
	ret = ret ?: drain__configure(s) ?: size_stacks(s);
	timing__step("programs chosen");
	return ret ? ret : loader__load(s->embedded.skel, &s->embedded.probes);
}

int load__load(struct session *s, char *err, size_t len)
{
	int ret = check_privilege(s, err, len);

	if (ret)
		return ret;
	choose_methods(s);
	ret = configure_object(s);
	if (ret) {
		snprintf(err, len, "the kernel refused the BPF maps or types: %s\n%s", strerror(-ret), embedded__log());
		/* an error of the kernel, which no option can change */
		return ret == -EINVAL ? -ENOTSUP : ret;
	}
	ret = refused__apply(s, err, len);
	if (ret)
		return ret;
	refused__warn(s);
	ret = fill_tail_calls(s);
	if (ret)
		snprintf(err, len, "cannot fill a BPF map: %s", strerror(-ret));
	return ret == -EINVAL ? -ENOTSUP : ret;
}
