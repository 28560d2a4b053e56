/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the parts of `sonde doctor`, each in a file user/cmd/doctor_*.c. */
#pragma once

#include "cmd/scope.h"
#include "kernel/embedded.h"
#include "kernel/features.h"
#include "output/table.h"

/* Something that limits tracing here. Owns its texts. */
struct problem {
	char *what, *effect, *remedy;
};

struct doctor {
	struct report_output out;
	struct features features;
	struct embedded embedded;
	struct table *checks;
	struct problem *problems;
	u32 n_problems;
	bool other_pids; /* sonde runs in a pid namespace other than the host's */
	bool allowed; /* this user may load BPF programs; otherwise few checks can run */
	bool root; /* started as root; doctor gives root up before it examines processes */
	struct scope scope; /* the policy in force */
	u32 usable, families; /* a family counts 2 if it is usable, 1 if partly */
};

/* Adds a row to table `checks`. group: kernel, privileges, mounts, settings or policy. */
void doctor__check(struct doctor *d, const char *group, const char *check, const char *state, const char *what);
/* Adds a row to table `missing`: what is missing, its effect here, and the command that adds it. */
void doctor__missing(struct doctor *d, const char *what, const char *effect, const char *remedy);

void doctor__kernel(struct doctor *d); /* doctor_kernel.c */
void doctor__policy(struct doctor *d); /* doctor_policy.c */
void doctor__system(struct doctor *d); /* doctor_system.c: mounts, settings, namespaces */
void doctor__families(struct doctor *d); /* doctor_families.c */
void doctor__runtimes(struct doctor *d); /* doctor_runtimes.c */
void doctor__gpu(struct doctor *d); /* doctor_gpu.c */
