/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Uprobe links. Debian 12's libbpf (1.1) supports neither uprobe_multi nor uprobe_session, so these use bpf(2) here
 * and nowhere else. Constants and layouts: include/uapi/linux/bpf.h, Linux 6.6 (multi) and 6.13 (session).
 */
#pragma once

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
		/*
		 * offsets of semaphores (2 bytes each) that the kernel increments while a probe is attached, 0: none;
		 * NULL: no site has one
		 */
		counters;
	u32 n;
	bool returns; /* ATTACH_MULTI, ATTACH_PERF: probe the returns instead of the entries */
	s32 pid; /* 0: all processes */
	/* identifies the link for links__drop: the object's id, and possibly the family's, see LINK_OBJECT */
	u32 object;
};

/* The links of one family on an object; object 0: on all objects. */
#define LINK_OBJECT(family, object) ((u32)(family) << 16 | (object))
#define LINK_OBJECT_MASK	    0xffffu

/* A set of links of this process (the attacher, see attach/attacher.h). */
struct links *links__new(void);
/*
 * Thousands of sites are split into links of this many sites, with a wait between two links: while the kernel inserts
 * breakpoints, a target that maps memory or faults waits for its mmap lock. docs/design.md, "Attaching", has the
 * measurements.
 */
#define LINK_SITES   64
#define LINK_WAIT_US 1000
/*
 * Limits of attached sites in one file, and in all files of one user other than root: far more than the probed
 * libraries have, and few enough that the kernel can detach them in time.
 */
#define LINK_FILE_SITES_MAX 16384
#define LINK_USER_SITES_MAX 65536
/* Is there room for these sites? */
bool links__has_room(const struct links *l, const struct link_sites *sites);
/* Attaches a program to n sites of a file. Returns 0, or a negative errno, and then none of them is attached. */
int links__attach(struct links *l, const struct bpf_program *prog, enum attach_method method,
		  const struct link_sites *sites);
/* Takes ownership of a link's descriptor. Returns 0, or -ENOMEM after closing it. */
int links__keep(struct links *l, int fd);
/* Detaches the links of some objects, those of one family on them, or all links of a family. */
void links__drop(struct links *l, const u32 *objects, u32 n);
/* Detaches many links at once, for which the kernel waits about 50 ms; returns how many are left. */
u32 links__close_some(struct links *l);
/* Detaches all links. */
void links__free(struct links *l);

/* Creates a multi link by bpf(2): returns its descriptor or negative errno. */
int link__create_multi(int prog_fd, u32 attach_type, const struct link_sites *sites);
