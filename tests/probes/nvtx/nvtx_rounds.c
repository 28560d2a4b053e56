// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that push and pop without pause, each range with a payload that counts them: nvtx_rounds THREADS. Lines on
 * stdin: `table` prints the bytes of this program's table of NVTX; `rounds N` has the shim, which must be loaded, serve
 * the table N times as for a tracer, and prints how often it was as before; `stop` prints how many ranges each thread
 * made, and ends.
 */
#include <nvtx3/nvToolsExt.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define TRIES	    5000 /* of a millisecond */

static atomic_bool ends;
static uint64_t made[THREADS_MAX];

static void *push(void *arg)
{
	uint64_t *n = arg;
	nvtxEventAttributes_t a = { .version = NVTX_VERSION,
				    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				    .messageType = NVTX_MESSAGE_TYPE_ASCII,
				    .message.ascii = "round",
				    .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 };

	for (; !ends; ++*n) {
		a.payload.ullValue = *n;
		nvtxRangePushEx(&a);
		usleep(20);
		nvtxRangePop();
	}
	return NULL;
}

static void print_table(void)
{
	const unsigned char *p = (const unsigned char *)&NVTX_VERSIONED_IDENTIFIER(nvtxGlobals);

	for (size_t i = 0; i < sizeof(NVTX_VERSIONED_IDENTIFIER(nvtxGlobals)); i++)
		printf("%02x", p[i]);
	printf("\n");
}

static int wait_until_served(int served)
{
	void *volatile *slot = (void *volatile *)&NVTX_VERSIONED_IDENTIFIER(nvtxGlobals).nvtxRangePop_impl_fnptr;

	for (int i = 0; i < TRIES; i++) {
		if (!!*slot == served)
			return 1;
		usleep(1000);
	}
	return 0;
}

/* Raises the semaphore as the kernel does for a probe. */
static void play_rounds(int n)
{
	volatile uint16_t *semaphore = dlsym(RTLD_DEFAULT, "sonde_cupti_semaphore_nvtx");
	static unsigned char before[sizeof(NVTX_VERSIONED_IDENTIFIER(nvtxGlobals))];
	int same = 0;

	if (!semaphore) {
		puts("the shim is not loaded");
		return;
	}
	memcpy(before, &NVTX_VERSIONED_IDENTIFIER(nvtxGlobals), sizeof(before));
	for (int i = 0; i < n; i++) {
		++*semaphore;
		if (!wait_until_served(1))
			break;
		--*semaphore;
		if (!wait_until_served(0))
			break;
		usleep(100);
		same += !memcmp(before, &NVTX_VERSIONED_IDENTIFIER(nvtxGlobals), sizeof(before));
	}
	printf("%d\n", same);
}

int main(int argc, char **argv)
{
	int n = atoi(argv[argc - 1]), rounds;
	pthread_t threads[THREADS_MAX];
	char line[64];

	nvtxInitialize(NULL);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, push, &made[i]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "stop\n"))
		if (sscanf(line, "rounds %d", &rounds) == 1)
			play_rounds(rounds);
		else
			print_table();
	ends = 1;
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		printf("%llu\n", (unsigned long long)made[i]);
	}
	return 0;
}
