/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Uprobe links. Debian 12's libbpf (1.1) knows neither uprobe_multi nor
 * uprobe_session, so those go through bpf(2) here and nowhere else. Constants
 * and layouts: include/uapi/linux/bpf.h, Linux 6.6 (multi) and 6.13 (session).
 */
#ifndef SONDE_KERNEL_LINK_H
#define SONDE_KERNEL_LINK_H

#include "core/meta.h"

#define ATTACH_TYPE_UPROBE_MULTI   48
#define ATTACH_TYPE_UPROBE_SESSION 57

struct bpf_program;
struct links;

struct link_sites {
	int fd; /* of the file */
	const u64 *offsets;
	const u64 *cookies;
	const u64 *
		counters; /* offsets of words of 2 bytes that the kernel raises while there is a probe, 0: none; NULL: of no site */
	u32 n;
	bool returns; /* ATTACH_MULTI, ATTACH_PERF: on the returns instead of the entries */
	s32 pid; /* 0: every process */
	u32 object; /* by which links__drop knows it: the object's id, and perhaps the family's, see LINK_OBJECT */
};

/* The links of one family on an object; object 0: on all */
#define LINK_OBJECT(family, object) ((u32)(family) << 16 | (object))
#define LINK_OBJECT_MASK	    0xffffu

/* Links of this process: see attach/attacher.h for which that is. */
struct links *links__new(void);
/*
 * Thousands of sites go into links of so many, with such a pause in between:
 * while the kernel puts breakpoints in, a target that maps or faults waits for its
 * own address space. docs/design.md, "Attaching", has the measurements.
 */
#define LINK_SITES    64
#define LINK_PAUSE_US 1000
/*
 * At once, in one file and in all files that belong to a user other than root: far more than the libraries have that are
 * probed, and little enough for the kernel to take off in time.
 */
#define LINK_FILE_SITES_MAX 16384
#define LINK_USER_SITES_MAX 65536
/* Is there room for these? */
bool links__has_room(const struct links *l, const struct link_sites *sites);
/* One program on n sites of a file. 0 or negative errno. */
int links__attach(struct links *l, const struct bpf_program *prog, enum attach_method method,
		  const struct link_sites *sites);
/* Takes a link's descriptor over. 0 or -ENOMEM, and it is closed. */
int links__keep(struct links *l, int fd);
/* Detaches what was attached for some objects, a family's alone, or all of a family. */
void links__drop(struct links *l, const u32 *objects, u32 n);
/* Detaches many at once, for which the kernel waits some 50 ms; how many links are left. */
u32 links__close_some(struct links *l);
/* Detaches all. */
void links__free(struct links *l);

/* The raw link-create call: its descriptor or negative errno. */
int link__create_multi(int prog_fd, u32 attach_type, const struct link_sites *sites);

#endif
