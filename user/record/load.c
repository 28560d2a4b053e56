// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads the embedded BPF object: chooses its programs, and adapts to the kernel's features. */
#include "kernel/loader.h"
#include "record/refused.h"
#include "sonde.skel.h"
#include "util/array.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int session__set_variable(struct session *s, const char *name, const void *value, size_t size)
{
	const struct btf *btf = bpf_object__btf(s->obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_var_secinfo *v = sec ? btf_var_secinfos(sec) : NULL;
	size_t len = sec ? sec->size : 0;
	char *data = (char *)s->skel->rodata;

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
	s->schema = s->embedded.schema;
	s->skel = s->embedded.skel;
	if (!ret) {
		s->obj = s->skel->obj;
		ret = options__apply(s, err, len);
	}
	return ret;
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

	s->method.entry = f->multi ? ATTACH_MULTI : ATTACH_PERF;
	if (!f->returns) {
		s->method.spans = SPAN_ENTRY_ONLY;
		s->method.span = s->method.entry;
		session__warn(s, "this kernel lets seccomp filters kill a process for returning from a probed call: no "
				 "return is probed, calls have no durations");
	} else if (f->session) {
		s->method.spans = SPAN_SESSION;
		s->method.span = ATTACH_SESSION;
	} else {
		/*
		 * a return probe on all processes' calls is not safe without the entry filter: design.md, "Spans and
		 * returns"
		 */
		s->method.spans = s->args->n_pids ? SPAN_PAIR : SPAN_ENTRY_ONLY;
		s->method.span = s->method.entry;
	}
}

struct python_walks {
	bool is_recorded; /* a recorded family walks Python stacks */
	bool at_calls; /* such a family does so at the start of its calls, because of an option */
};

static void note_python(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);
	struct python_walks *walks = arg;

	if (!f || !s->family_on[f->id])
		return;
	walks->at_calls |= family_host__python_requested(s, h);
	walks->is_recorded |= h->python || walks->at_calls;
}

static struct python_walks python_walks(struct session *s)
{
	struct python_walks walks = {};

	family_host__each(s, note_python, &walks);
	return walks;
}

static void note_files(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);

	if (f && s->family_on[f->id] && h->names_files && family_host__follows(s, h))
		*(bool *)arg = true;
}

/* Returns whether a family that is on writes syscall_file events. */
static bool names_files(struct session *s)
{
	bool any = false;

	family_host__each(s, note_files, &any);
	return any;
}

bool load__is_needed(struct session *s, const struct program *p)
{
	const struct family_host *h = p->family->id ? family_host__find(p->family->name) : NULL;

	if (!s->family_on[p->family->id])
		return false;
	if (!strncmp(p->name, "core_python_", strlen("core_python_")))
		return python_walks(s).is_recorded;
	if (!strncmp(p->name, "core_file_", strlen("core_file_")))
		return names_files(s);
	if (p->section.kind == SECTION_CALLED)
		return python_walks(s).at_calls;
	if (h && h->needs_program && !h->needs_program(s, p->name))
		return false;
	return !p->section.option[0] || session__option(s, p->family->name, p->section.option);
}

/* Notes the families that use tracepoints only: their hits are not counted. */
static void note_tracepoints(struct session *s)
{
	const struct probes *p = &s->embedded.probes;

	for (u32 i = 0; i < p->n_programs; i++)
		if (p->programs[i].section.kind == SECTION_TRACEPOINT && p->programs[i].family->id)
			s->counts.tracepoints_alone[p->programs[i].family->id] = true;
	for (u32 i = 0; i < p->n_programs; i++)
		if (p->programs[i].section.kind == SECTION_SPAN || p->programs[i].section.kind == SECTION_ENTRY ||
		    p->programs[i].section.kind == SECTION_PLACED || p->programs[i].section.kind == SECTION_SITE)
			s->counts.tracepoints_alone[p->programs[i].family->id] = false;
}

static int choose_programs(struct session *s)
{
	note_tracepoints(s);
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		struct program *p = &s->embedded.probes.programs[i];
		/* a program tail-calls only programs that are attached in the same way */
		bool span = p->section.kind == SECTION_SPAN || p->section.kind == SECTION_CALLED;
		enum attach_method m = span ? s->method.span : s->method.entry;

		p->enabled = s->everything || load__is_needed(s, p);
		if (p->enabled && p->section.kind == SECTION_TRACEPOINT && !features__tracepoint(p->section.rest)) {
			if (refused__absent(s, p))
				return -ENOMEM;
		}
		bpf_program__set_autoload(p->prog, p->enabled);
		if (span || p->section.kind == SECTION_ENTRY || p->section.kind == SECTION_PLACED ||
		    p->section.kind == SECTION_SITE)
			bpf_program__set_expected_attach_type(p->prog, m == ATTACH_SESSION ?
									       ATTACH_TYPE_UPROBE_SESSION :
								       m == ATTACH_MULTI ? ATTACH_TYPE_UPROBE_MULTI :
											   0);
	}
	return 0;
}

/* Returns the bytes of a ring: 64 MiB for all CPUs together, with a lower and an upper limit for each ring. */
static u64 ring_size(u32 cpus)
{
	u64 size = 4 << 20;

	if (test_switch__is_set("small-ring"))
		return 2 * RECORD_MAX;
	while (size > (256 << 10) && size * cpus > (64 << 20))
		size /= 2;
	return size;
}

static int size_rings(struct session *s)
{
	u32 cpus = libbpf_num_possible_cpus();
	u64 mark;
	int ret;

	s->drain.ring_size = ring_size(cpus);
	mark = s->drain.ring_size / 8;
	ret = bpf_map__set_max_entries(s->skel->maps.rings, cpus);
	if (!ret)
		ret = bpf_map__set_value_size(s->skel->maps.rings, RING_BYTES(s->drain.ring_size));
	if (!ret)
		ret = session__set_variable(s, "ring_size", &s->drain.ring_size, sizeof(u64));
	return ret ? ret : session__set_variable(s, "ring_mark", &mark, sizeof(mark));
}

/* The tables of stacks need about 20 MB of kernel memory, allocated at once. */
static int size_stacks(struct session *s)
{
	struct bpf_map *const maps[] = { s->skel->maps.stack_nodes, s->skel->maps.python_codes,
					 s->skel->maps.python_stacks };
	int ret = 0;

	for (u32 i = 0; !ret && !python_walks(s).is_recorded && i < ARRAY_LEN(maps); i++)
		ret = bpf_map__set_max_entries(maps[i], 1);
	return ret;
}

/* Fills the map for tail calls. */
static int fill_tail_calls(struct session *s)
{
	u32 first = 0;
	int ret = 0, fd;

	for (u32 i = 0; !ret && i < s->embedded.probes.n_programs; i++) {
		const struct program *p = &s->embedded.probes.programs[i];

		if (!p->enabled || p->section.kind != SECTION_CALLED)
			continue;
		fd = bpf_program__fd(p->prog);
		if (bpf_map_update_elem(session__map_fd(s, p->section.rest), &first, &fd, BPF_ANY))
			ret = -errno;
	}
	return ret;
}

static void configure_host(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);
	int *ret = arg;

	if (!*ret && h->configure && f && (s->everything || s->family_on[f->id]))
		*ret = h->configure(s);
}

/* Sets everything that is configured before loading. */
static int configure(struct session *s)
{
	bool unreadable = session__test_switch("unreadable-code");
	int ret = choose_programs(s);

	if (!ret)
		ret = session__set_variable(s, "span_mode", &s->method.spans, sizeof(u32));
	if (!ret)
		ret = session__set_variable(s, "no_args", &s->args->no_args, sizeof(bool));
	if (!ret)
		ret = session__set_variable(s, "test_unreadable_code", &unreadable, sizeof(bool));
	if (!ret)
		ret = filter__configure(s);
	if (!ret)
		family_host__each(s, configure_host, &ret);
	if (!ret)
		ret = size_rings(s);
	if (!ret)
		ret = size_stacks(s);
	timing__step("programs chosen");
	return ret ? ret : loader__load(s->skel, &s->embedded.probes);
}

int load__load(struct session *s, char *err, size_t len)
{
	int ret = check_privilege(s, err, len);

	if (ret)
		return ret;
	choose_methods(s);
	ret = configure(s);
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
