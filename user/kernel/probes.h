/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF object's programs by family, and the numbers that events and hit counters know each probe by. */
#ifndef SONDE_KERNEL_PROBES_H
#define SONDE_KERNEL_PROBES_H

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
	char *refusal; /* and why: the end of the verifier's log; NULL: it said nothing */
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
	struct map functions; /* that the programs name, see probes__names */
	struct map numbers; /* by program and function */
	struct map owners; /* of files: how many numbers the functions took that only their files have */
	u32 n_owned; /* by owners other than root */
};

/* Before the object is loaded. A program belongs to the family that its name begins with. 0 or negative errno. */
int probes__init(struct probes *p, struct bpf_object *obj, const struct schema *schema, char *err, size_t len);
void probes__free(struct probes *p);
struct program *probes__program(const struct probes *p, const char *name);
/* Does a program name this function of the library? Globs do not count. */
bool probes__names(const struct probes *p, const char *library, const char *function);
/* The number of a program's probe on a function, the same in every object; 0: it has none yet. */
u16 probes__number(const struct probes *p, const struct program *program, const char *function);
/*
 * The same, and gives it a number if it has none. owner: the user id to whom the file belongs that has the function. Files choose
 * their functions' names, so the numbers of all other owners but root are limited: one owner gets half of what is left of
 * their part at most, and a part is left to root's files. 0: no memory, or no number is left for the owner.
 */
u16 probes__add(struct probes *p, const struct program *program, const char *function, u32 owner);

#endif
