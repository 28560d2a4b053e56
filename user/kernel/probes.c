// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/probes.h"

#include "core/maps.h"
#include "util/array.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/*
 * The most probe numbers for functions that occur only in files of owners other than root; the others are reserved
 * for root's files and sonde's own links.
 */
#define OWNED_MAX (MAX_PROBES / 4 * 3)

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
			"BPF program %s: section '%s' puts return probes on C++ or libc code, where they break unwinding; entries and placed calls are safe there",
			out->name, out->full_section);
		return -EINVAL;
	}
	/* libbpf has removed the '?' from the name and cleared autoload instead */
	out->section.on_demand = on_demand;
	p->n_programs++;
	return 0;
}

static u64 hash_of(const char *library, const char *function)
{
	return XXH3_64bits_withSeed(function, strlen(function), XXH3_64bits(library, strlen(library)));
}

struct number_key {
	u64 program, hash;
};

static struct number_key key_of(const struct program *program, const char *function)
{
	return (struct number_key){ (u64)(uintptr_t)program, map__hash_bytes(function, strlen(function)) };
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

u64 probes__misses(const struct program *program)
{
	struct bpf_prog_info info = {};
	u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(program->prog), &info, &size) ? 0 : info.recursion_misses;
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
	map__init(&p->numbers, sizeof(struct number_key), sizeof(u16));
	map__init(&p->owners, sizeof(u32), sizeof(u32));
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
	PROGRAMS_EACH(program, p)
		free(program->refusal);
	MAPS_FREE(&p->functions, &p->numbers, &p->owners);
	free(p->list);
	free(p->programs);
	memset(p, 0, sizeof(*p));
}

struct program *probes__program(const struct probes *p, const char *name)
{
	PROGRAMS_EACH(program, p)
		if (!strcmp(program->name, name))
			return program;
	return NULL;
}

u16 probes__number(const struct probes *p, const struct program *program, const char *function)
{
	const struct number_key key = key_of(program, function);
	const u16 *number = map__find(&p->numbers, &key);

	if (!number || !strcmp(p->list[*number - 1].name, function))
		return number ? *number : 0;
	/* two names may have the same hash */
	for (u32 i = 0; i < p->n; i++)
		if (p->list[i].program == program && !strcmp(p->list[i].name, function))
			return p->list[i].number;
	return 0;
}

/* Counts a number for the owner; returns false if the owner's limit is reached. */
static bool take_number(struct probes *p, u32 owner)
{
	u32 *taken;

	if (p->n + 1 >= MAX_PROBES)
		return false;
	if (!owner)
		return true;
	taken = map__get(&p->owners, &owner);
	if (!taken || p->n_owned >= OWNED_MAX || *taken >= (OWNED_MAX - (p->n_owned - *taken)) / 2)
		return false;
	++*taken;
	p->n_owned++;
	return true;
}

u16 probes__add(struct probes *p, const struct program *program, const char *function, u32 owner)
{
	const struct number_key key = key_of(program, function);
	u16 number = probes__number(p, program, function), *indexed;
	char *name;

	if (number)
		return number;
	if (!array__room(p->list, p->n))
		return 0;
	name = strdup(function);
	indexed = name ? map__get(&p->numbers, &key) : NULL;
	if (!indexed || !take_number(p, owner)) {
		if (indexed && !*indexed)
			map__remove(&p->numbers, &key);
		free(name);
		return 0;
	}
	*indexed = *indexed ?: (u16)(p->n + 1);
	p->list[p->n] = (struct probe){ .name = name, .program = program, .number = (u16)(p->n + 1) };
	return p->list[p->n++].number;
}
