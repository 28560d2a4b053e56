/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between load.c, which makes calls in a process, and load_file.c, which gives it the shim's file. */
#pragma once

#include <sys/stat.h>

#include "inject/load.h"
#include "inject/tracee.h"

#define SCRATCH	   (512 * 1024) /* the stack for the calls, and texts below it */
#define MEMFD_NAME "libsonde-cupti.so" /* the name that user/util/section.c expects */

struct load {
	struct space *s;
	struct tracee t;
	struct inject_result *r;
	const char *shim;
	struct stat file; /* of the shim */
	u8 *library; /* its contents, file.st_size bytes */
	u64 dlopen, dlerror, mmap, munmap, syscall, memfd_create, errno_location;
	u32 dlopen_flags;
	u64 dlopen_ns; /* limit of dlopen */
	u64 scratch;
	u64 errno_at; /* address of the borrowed thread's errno */
};

int load__call(struct load *l, u64 function, u64 a, u64 b, u64 c, u64 *result);
/* Makes a system call in the process, with the process's rights. Returns 0 and the call's result, or negative errno. */
int load__system_call(struct load *l, u64 number, u64 a, u64 b, u64 c, u64 *result);

/* Reads the library before any thread is stopped. Returns 0 or negative errno. */
int shim_file__read(struct load *l);
/* Does the process see exactly this file at the same path? */
bool shim_file__is_visible(const struct load *l);
/* Makes a descriptor in the process with the library in it; negative errno if that fails. */
int shim_file__make_memfd(struct load *l, struct stat *st);
int shim_file__close_memfd(struct load *l, int memfd);
/* Writes the reason for the failure of shim_file__make_memfd. */
void shim_file__explain(struct load *l, int err);
