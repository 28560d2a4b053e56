// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A consumer of the shim's probe site in the same process: preloaded after the
 * shim, it switches groups on as a tracer's probe would (SHIM_GROUPS, bits) and
 * appends what it gets to a file (SHIM_OUT), each batch in one write.
 */
#define _GNU_SOURCE
#include "core/shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int out = -1;
static uint64_t ns_between;

static void consume(const void *batch, uint64_t bytes)
{
	if (write(out, batch, bytes) != (ssize_t)bytes)
		abort();
	/* slow: CUPTI's buffers fill up meanwhile */
	usleep(ns_between / 1000);
}

static void raise_by(int by)
{
	static const char *const names[] = {
#define NAME(up, low) "sonde_cupti_semaphore_" #low,
		SHIM_GROUPS(NAME)
	};
	unsigned long groups = strtoul(getenv("SHIM_GROUPS"), NULL, 0);

	for (int i = 0; i < SHIM_GROUP_COUNT; i++) {
		volatile uint16_t *semaphore = dlsym(RTLD_DEFAULT, names[i]);

		if (semaphore && groups >> i & 1)
			*semaphore += by;
	}
}

/* USR1: a tracer comes. USR2: one goes. */
static void on_signal(int sig)
{
	raise_by(sig == SIGUSR1 ? 1 : -1);
}

static __attribute__((constructor)) void begin(void)
{
	void (*volatile * consumer)(const void *batch, uint64_t bytes) = dlsym(RTLD_DEFAULT, "sonde_cupti_consumer");
	const char *slow = getenv("SHIM_SLOW_NS");

	if (!consumer || !getenv("SHIM_OUT"))
		return;
	ns_between = slow ? strtoull(slow, NULL, 10) : 0;
	out = open(getenv("SHIM_OUT"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	*consumer = consume;
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	if (!getenv("SHIM_LATER"))
		raise_by(1);
}
