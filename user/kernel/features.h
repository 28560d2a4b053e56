/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel can do, found by trying it. */
#ifndef SONDE_KERNEL_FEATURES_H
#define SONDE_KERNEL_FEATURES_H

#include "core/types.h"

#include <stddef.h>

struct features {
	bool bpf; /* programs can be loaded at all; if not, error says why */
	int error; /* negative errno of that attempt */
	bool btf; /* /sys/kernel/btf/vmlinux */
	bool multi; /* uprobe_multi links, 6.6 */
	bool session; /* uprobe_session links, 6.13 */
	bool returns; /* a probed return does not get a process killed by its seccomp filter */
	/* ns a hit of an empty program on an emulated instruction, 0: not measured */
	u64 entry_ns; /* entry alone */
	u64 span_ns; /* entry and return by a session link */
	int costs, child; /* a pipe and a process, 0: not any more */
};

/* Begins to try each on a function of sonde's own, in a child that then measures what they cost. */
void features__begin(struct features *f);
/* Waits for what was found. */
void features__await(struct features *f);
/* Both. */
void features__probe(struct features *f);
/* Waits for the costs. Its own probes are off some 0.1 s later, when the child has ended. */
void features__costs(struct features *f);
/* Has the child ended? */
bool features__ended(struct features *f);
/* Waits for the costs and for the child's end. */
void features__finish(struct features *f);
/* Is the kernel older than sonde's oldest? Says so in words, with its version. */
bool features__old_kernel(char *why, size_t len);
/* Does this kernel have a tracepoint that tp_btf programs can attach to? */
bool features__tracepoint(const char *name);

#endif
