/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Features of this kernel, found by trying them. */
#pragma once

#include "core/types.h"

#include <stddef.h>

struct features {
	bool bpf; /* programs can be loaded at all; if not, see error */
	int error; /* negative errno of that attempt */
	bool btf; /* /sys/kernel/btf/vmlinux */
	bool multi; /* uprobe_multi links, 6.6 */
	bool session; /* uprobe_session links, 6.13 */
	bool returns; /* return probes work in a process with a seccomp filter: the process is not killed */
	/* Cost of a hit in ns, with an empty program on an emulated instruction; 0: not measured. */
	u64 entry_ns; /* only the entry */
	u64 span_ns; /* entry and return, by a session link */
	int costs, child; /* a pipe and a process; 0: closed, ended */
};

/* Starts a child that tries each feature on a function of sonde's own, and then measures the costs. */
void features__begin(struct features *f);
/* Waits for the features. */
void features__await(struct features *f);
/* Begins, and waits for the features. */
void features__probe(struct features *f);
/* Waits for the costs. The child's probes are detached about 0.1 s later, when it has ended. */
void features__costs(struct features *f);
/* Has the child ended? */
bool features__ended(struct features *f);
/* Waits for the costs and for the child's end. */
void features__finish(struct features *f);
/* Is the kernel older than the oldest that sonde supports? why (of size len) then says so, with its version. */
bool features__old_kernel(char *why, size_t len);
/* Is this the initial pid namespace, whose pids BPF programs use? /proc has those of this one. */
bool features__in_first_pid_namespace(void);
/* Does this kernel have a tracepoint that tp_btf programs can attach to, or a function (see below)? */
bool features__tracepoint(const char *name);
/* Can programs be attached to this function of the kernel? Only for those that kernel_btf.c lists. */
bool features__function(const char *name);
