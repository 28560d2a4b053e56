/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subset of the kernel's types that CO-RE relocation needs: those whose names the BPF object mentions, and the
 * types embedded in them. libbpf compares each name with those of all types that it is given, and the kernel has
 * about 130,000.
 */
#pragma once

struct btf;

/*
 * The path for libbpf's option btf_custom_path when the object is opened: a file in memory, still empty. NULL: there
 * is none, and libbpf reads all types of the kernel.
 */
const char *kernel_types__path(void);
/*
 * Fills that file; call it before an object that was opened with it is loaded. Further calls return the first one's
 * result: 0 or negative errno. The kernel's types can be freed afterwards (kernel_btf__free_types).
 */
int kernel_types__write(const struct btf *object);
