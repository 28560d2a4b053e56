// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A consumer of the shim's probe site in the same process: preloaded after the
 * shim, it switches groups on as a tracer's probe would (SHIM_GROUPS, bits) and
 * appends what it gets to a file (SHIM_OUT), each batch in one write.
 */
#define _GNU_SOURCE
#include "core/shim.h"
#include "cupti-shim/cupti.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
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

static void on_callback(void *user, int domain, uint32_t id, const void *data)
{
}

/*
 * Another profiler (SHIM_RIVAL: a file in which it writes what becomes of it): tries to subscribe until it can, stays
 * for half a second and goes.
 */
static void *rival(void *arg)
{
	uint32_t (*subscribe)(cupti_subscriber * s, cupti_callback fn, void *user,
			      struct cupti_subscriber_params *params) = NULL;
	uint32_t (*unsubscribe)(cupti_subscriber s) = NULL, result;
	FILE *log = fopen(getenv("SHIM_RIVAL"), "a");
	char holder[64] = "";
	struct cupti_subscriber_params params = {
		.size = sizeof(params), .name = "rival", .other_name = holder, .other_size = sizeof(holder)
	};
	cupti_subscriber handle;
	void *library;

	setvbuf(log, NULL, _IOLBF, 0);
	while (!(library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD)))
		usleep(10000);
	*(void **)&subscribe = dlsym(library, "cuptiSubscribe_v2");
	*(void **)&unsubscribe = dlsym(library, "cuptiUnsubscribe");
	/* the shim first */
	usleep(300000);
	for (int i = 0; (result = subscribe(&handle, on_callback, NULL, &params)); i++) {
		if (!i)
			fprintf(log, "refused %u, %s has it\n", result, holder);
		usleep(20000);
	}
	fprintf(log, "subscribed\n");
	usleep(500000);
	fprintf(log, "left %u\n", unsubscribe(handle));
	fclose(log);
	return NULL;
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
	if (getenv("SHIM_RIVAL")) {
		pthread_t thread;

		pthread_create(&thread, NULL, rival, NULL);
	}
}
