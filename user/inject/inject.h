/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads the shim (cupti-shim/) into a running process: a thread of it is made to
 * call dlopen(), and goes on as if nothing had been. docs/gpu.md, "Into a running
 * process", says how and why so.
 */
#ifndef SONDE_INJECT_INJECT_H
#define SONDE_INJECT_INJECT_H

#include "core/types.h"

enum inject_outcome {
	INJECT_DONE,
	INJECT_ALREADY, /* it has the shim */
	INJECT_REFUSED, /* `why` says why; nothing was changed */
	INJECT_FAILED, /* likewise, but it was tried */
};

struct inject_result {
	enum inject_outcome outcome;
	char why[512];
	bool cuda; /* it maps libcuda or libcudart */
	bool memfd; /* the library's file was handed over, since the process can't see it */
	u32 tid; /* whose thread was borrowed */
	u64 held_ns; /* from its interruption to its release; no other thread was stopped meanwhile */
	u64 stopped_ns; /* of these it stood still, and did not run the calls; also the longest that any other thread did */
	u32 tried; /* threads that were looked at */
	int refused; /* the first system call that its filter refused (sandbox/syscalls.h), -1: none */
};

/* What can be known without touching the process. */
struct inject_look {
	bool possible; /* as far as that can be said before */
	bool has_shim;
	bool cuda, cupti; /* libraries that it maps */
	char injection[256]; /* its CUDA_INJECTION64_PATH, "": none or not to be read */
	char why[512]; /* it is not possible */
};

/* shim: the library's file on this machine. 0, or -ESRCH: it is gone. */
int inject__look(u32 pid, const char *shim, bool remote_files, struct inject_look *out);
struct inject_options {
	bool force; /* also where the process's seccomp filter can't be read */
	bool remote_files; /* its C library is opened also on a file system that is served remotely */
	bool impatient; /* dlopen gets one second, not five */
	void (*waiting)(u32 pid); /* called once after it has taken a second; NULL: none */
	/* true: the result is no longer waited for, and the child completes by itself; NULL: signals wait for it */
	bool (*stopped)(void);
};

/* Does it, in a child of this process, which has nothing but what that takes. Always fills the result. */
void inject__process(u32 pid, const char *shim, const struct inject_options *options, struct inject_result *out);

#endif
