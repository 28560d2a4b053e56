/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the double of NVML answers: FAKE_NVML in the environment, entries with ';' between them:
 *
 *	0 sm_clock 1980 1005 -; 0 busy_samples 40+60 100; * init 9
 *
 * An entry has a device ('*': none), a key, and the answers of the first, second, .. call; the last one is repeated. An
 * answer is numbers with '+' or ':' between them, or one of these words. A key that is not there is not supported.
 *
 *	-	NVML_ERROR_NOT_SUPPORTED
 *	lost	NVML_ERROR_GPU_IS_LOST
 *	none	NVML_ERROR_NOT_FOUND
 *	denied	NVML_ERROR_NO_PERMISSION
 *	hang	the call never returns
 *	crash	SIGSEGV
 */
#pragma once

#include <nvml.h>

#define ANSWER_PARTS  16
#define ANSWER_VALUES 6

struct script_answer {
	unsigned int n; /* parts, with '+' between them */
	struct {
		unsigned int n; /* values, with ':' between them */
		unsigned long long values[ANSWER_VALUES];
	} parts[ANSWER_PARTS];
};

/* The next answer for a device (~0U: '*') and a key */
nvmlReturn_t script__next(unsigned int device, const char *key, struct script_answer *a);
/* The same for an answer of one number. */
nvmlReturn_t script__number(unsigned int device, const char *key, unsigned long long *value);
/* The number of devices: the largest that the script names, plus one */
unsigned int script__devices(void);
