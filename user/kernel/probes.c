// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/probes.h"

#include "core/maps.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const struct schema_family *family_of(const struct schema *s, const char *program)
{
	for (u32 i = 0; i < s->n_families; i++) {
		size_t len = strlen(s->families[i].name);

		if (!strncmp(program, s->families[i].name, len) && program[len] == '_')
			return &s->families[i];
	}
	return NULL;
}

static int add_program(struct probes *p, struct bpf_program *prog, const struct schema *schema, char *err, size_t len)
{
	struct program *out = &p->programs[p->n_programs];
	bool on_demand = !bpf_program__autoload(prog);

	out->prog = prog;
	out->name = bpf_program__name(prog);
	out->type = bpf_program__type(prog);
	out->full_section = bpf_program__section_name(prog);
	out->family = family_of(schema, out->name);
	if (!out->family) {
		snprintf(err, len, "BPF program %s: its name does not begin with a family's name and '_'", out->name);
		return -EINVAL;
	}
	if (section__parse(&out->section, out->full_section)) {
		snprintf(err, len, "BPF program %s: section '%s' is malformed", out->name, out->full_section);
		return -EINVAL;
	}
	if (section__refuses_returns(out->full_section)) {
		snprintf(
			err, len,
			"BPF program %s: section '%s' puts return probes on C++ or libc code, where they break what unwinds; entries and placed calls are safe there",
			out->name, out->full_section);
		return -EINVAL;
	}
	/* libbpf has taken the '?' off the name and turned it into this */
	out->section.on_demand = on_demand;
	p->n_programs++;
	return 0;
}

static u64 hash_of(const char *library, const char *function)
{
	return XXH3_64bits_withSeed(function, strlen(function), XXH3_64bits(library, strlen(library)));
}

static int add_functions(struct probes *p, const struct section *s)
{
	const char *list = s->rest;
	char name[512];

	while (*s->library && section__next_function(&list, name, sizeof(name))) {
		u64 key = hash_of(s->library, name);
		bool *named = strpbrk(name, "*?[") ? NULL : map__get(&p->functions, &key);

		if (named)
			*named = true;
		else if (!strpbrk(name, "*?["))
			return -ENOMEM;
	}
	return 0;
}

bool probes__names(const struct probes *p, const char *library, const char *function)
{
	u64 key = hash_of(library, function);

	return map__find(&p->functions, &key);
}

int probes__init(struct probes *p, struct bpf_object *obj, const struct schema *schema, char *err, size_t len)
{
	struct bpf_program *prog;
	u32 n = 0;
	int ret;

	memset(p, 0, sizeof(*p));
	map__init(&p->functions, sizeof(u64), sizeof(bool));
	bpf_object__for_each_program(prog, obj) n++;
	p->programs = calloc(n, sizeof(*p->programs));
	if (!p->programs) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	bpf_object__for_each_program(prog, obj)
	{
		ret = add_program(p, prog, schema, err, len);
		if (!ret && add_functions(p, &p->programs[p->n_programs - 1].section)) {
			snprintf(err, len, "out of memory");
			ret = -ENOMEM;
		}
		if (ret) {
			probes__free(p);
			return ret;
		}
	}
	return 0;
}

void probes__free(struct probes *p)
{
	for (u32 i = 0; i < p->n; i++)
		free(p->list[i].name);
	for (u32 i = 0; i < p->n_programs; i++)
		free(p->programs[i].refusal);
	map__free(&p->functions);
	free(p->list);
	free(p->programs);
	memset(p, 0, sizeof(*p));
}

struct program *probes__program(const struct probes *p, const char *name)
{
	for (u32 i = 0; i < p->n_programs; i++)
		if (!strcmp(p->programs[i].name, name))
			return &p->programs[i];
	return NULL;
}

u16 probes__number(struct probes *p, const struct program *program, const char *function, bool add)
{
	struct probe *bigger;

	for (u32 i = 0; i < p->n; i++)
		if (p->list[i].program == program && !strcmp(p->list[i].name, function))
			return p->list[i].number;
	if (!add || p->n + 1 >= MAX_PROBES)
		return 0;
	if (p->n == p->max) {
		bigger = realloc(p->list, (p->max + 64) * sizeof(*p->list));
		if (!bigger)
			return 0;
		p->list = bigger;
		p->max += 64;
	}
	p->list[p->n].name = strdup(function);
	if (!p->list[p->n].name)
		return 0;
	p->list[p->n].program = program;
	p->list[p->n].number = p->n + 1;
	return p->list[p->n++].number;
}
