/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of `sonde doctor` share: user/cmd/doctor_*.c, a part each. */
#ifndef SONDE_CMD_DOCTOR_H
#define SONDE_CMD_DOCTOR_H

#include "cmd/scope.h"
#include "kernel/embedded.h"
#include "kernel/features.h"
#include "output/table.h"

/* Something that is not as it should be. Texts are ours. */
struct finding {
	char *what, *effect, *mend;
};

struct doctor {
	struct report_output out;
	struct features features;
	struct embedded embedded;
	struct table *checks;
	struct finding *findings;
	u32 n_findings;
	bool other_pids; /* in a pid namespace that is not the host's */
	bool allowed; /* to load BPF programs: where not, little can be tried */
	bool root; /* root at the start: doctor gives up root before it examines processes */
	struct scope scope; /* the policy in force */
	u32 usable, families; /* a family counts 2 if it is usable, 1 if partly */
};

/* A line of the checks; `group`: kernel, privileges, mounts, settings. */
void doctor__check(struct doctor *d, const char *group, const char *check, const char *state, const char *what);
/* Adds a row to table `missing`: what is missing, what that means here, the command that adds it. */
void doctor__missing(struct doctor *d, const char *what, const char *effect, const char *mend);
/* The first line of a small file, without its end; "" and false if it can't be read. */
bool doctor__read_line(const char *path, char *buf, size_t len);

void doctor__kernel(struct doctor *d); /* doctor_kernel.c */
void doctor__confinement(struct doctor *d); /* doctor_confinement.c */
void doctor__policy(struct doctor *d); /* doctor_policy.c */
void doctor__system(struct doctor *d); /* doctor_system.c: mounts, settings, namespaces */
void doctor__families(struct doctor *d); /* doctor_families.c */
void doctor__runtimes(struct doctor *d); /* doctor_runtimes.c */
void doctor__gpu(struct doctor *d); /* doctor_gpu.c */

#endif
