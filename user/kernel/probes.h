/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF object's programs by family, and the numbers by which events and hit counters identify each probe. */
#pragma once

#include "schema/schema.h"
#include "util/map.h"
#include "util/section.h"

struct bpf_object;
struct bpf_program;

struct program {
	struct bpf_program *prog;
	const char *name;
	const char *full_section; /* with its '?' */
	struct section section;
	const struct schema_family *family; /* core: family 0 */
	bool enabled; /* loaded in this recording */
	u32 type; /* enum bpf_prog_type */
	int load_error; /* negative errno: the kernel refused it */
	char *refusal; /* the reason: the end of the verifier's log; NULL: there is none */
};

struct probe {
	char *name; /* the function's or the tracepoint's */
	const struct program *program;
	u16 number; /* from 1 */
};

struct probes {
	struct program *programs;
	u32 n_programs;
	struct probe *list; /* list[number - 1] */
	u32 n;
	struct map functions; /* functions that the programs name, see probes__names */
	struct map numbers; /* by program and function */
	/* by owner of files: how many numbers are used by functions that only this owner's files have */
	struct map owners;
	u32 n_owned; /* by owners other than root */
};

/* Loops over the programs: struct program *p. */
#define PROGRAMS_EACH(p, probes) \
	for (struct program *p = (probes)->programs, *end_ = p + (probes)->n_programs; p < end_; p++)

/*
 * Call it before the object is loaded. A program belongs to the family with which its name begins. Returns 0 or
 * negative errno.
 */
int probes__init(struct probes *p, struct bpf_object *obj, const struct schema *schema, char *err, size_t len);
void probes__free(struct probes *p);
struct program *probes__program(const struct probes *p, const char *name);
/* How often the kernel skipped this program because a program ran on that CPU already. */
u64 probes__misses(const struct program *program);
/* Does a program name this function of the library? Globs do not count. */
bool probes__names(const struct probes *p, const char *library, const char *function);
/* The number of a program's probe on a function, the same in every object; 0: it has none yet. */
u16 probes__number(const struct probes *p, const struct program *program, const char *function);
/*
 * The same, but assigns a number if there is none. owner: the user id of the owner of the file that has the function.
 * Files choose the names of their functions, so the numbers of all owners other than root are limited: one owner gets
 * at most half of what is left of their share, and a share is reserved for root's files. Returns 0 if there is no
 * memory, or no number is left for the owner.
 */
u16 probes__add(struct probes *p, const struct program *program, const char *function, u32 owner);
