/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types as CO-RE relocation needs them: those whose names the BPF object
 * mentions, and what is embedded in them. libbpf compares each name that it looks for with
 * those of all types that it is given, and the kernel has some 130,000.
 */
#ifndef SONDE_KERNEL_KERNEL_TYPES_H
#define SONDE_KERNEL_KERNEL_TYPES_H

struct btf;

/*
 * What to give to libbpf as btf_custom_path when the object is opened: a file in memory, empty
 * so far. NULL: there is none, and libbpf reads all of the kernel's types.
 */
const char *kernel_types__path(void);
/* Fills that file, before an object that was opened with it is loaded. 0 or negative errno. */
int kernel_types__write(const struct btf *object);

#endif
