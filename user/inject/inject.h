/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads the shim (cupti-shim/) into a running process: one of its threads is made to call dlopen() and then continues
 * as if nothing had happened. docs/gpu.md, "Into a running process", explains this.
 */
#pragma once

#include "core/types.h"

enum inject_outcome {
	INJECT_DONE,
	INJECT_ALREADY, /* the process has the shim already */
	INJECT_REFUSED, /* nothing was changed; `why` has the reason */
	INJECT_FAILED, /* it was tried, without success; `why` has the reason */
};

struct inject_result {
	enum inject_outcome outcome;
	char why[512];
	bool cuda; /* the process maps libcuda or libcudart */
	bool memfd; /* the library was passed as a memfd, because the process can't see its file */
	u32 tid; /* the thread that made the calls */
	u64 held_ns; /* from the interruption of the thread to its release; no other thread was stopped meanwhile */
	/* the part of held_ns in which the thread was stopped; no thread was stopped for longer than this */
	u64 stopped_ns;
	u32 tried; /* number of threads that were examined */
	int refused; /* the first system call that the child's filter refused (sandbox/syscalls.h); -1: none */
};

/* The results of the checks that need not stop the process. */
struct inject_status {
	bool possible; /* as far as that is known in advance */
	bool has_shim;
	bool cuda, cupti; /* libraries that it maps */
	char injection[256]; /* its CUDA_INJECTION64_PATH; "": not set or unreadable */
	char why[512]; /* why it is not possible */
};

/* shim: the library's file on this machine. Returns 0, or -ESRCH if the process has ended. */
int inject__examine(u32 pid, const char *shim, bool remote_files, struct inject_status *out);
struct inject_options {
	bool force; /* even if the process's seccomp filter can't be read */
	bool remote_files; /* open its C library also on a remote file system */
	const char *functions; /* the Python functions to trace, for the shim (core/shim_functions.h); NULL: none */
	bool impatient; /* the limit of dlopen is one second, not five */
	void (*waiting)(u32 pid); /* called once after one second; may be NULL */
	/*
	 * Returns true if the caller no longer waits for the result; the child then completes by itself. NULL: never.
	 */
	bool (*stopped)(void);
};

/* Loads the library, in a child of this process with only the privileges for that. Always fills the result. */
void inject__process(u32 pid, const char *shim, const struct inject_options *options, struct inject_result *out);
