// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls each function of NVTX's core a known number of times: nvtx_calls [before] ROUNDS. Waits for a line on stdin
 * first; `before` makes a call before that, as a program does that has run for a while.
 */
#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static nvtxEventAttributes_t attributes(const char *text)
{
	return (nvtxEventAttributes_t){ .version = NVTX_VERSION,
					.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					.messageType = NVTX_MESSAGE_TYPE_ASCII,
					.message.ascii = text };
}

static void plain(int i)
{
	nvtxRangePushA("outer");
	nvtxRangePushW(L"wide \u00e9\u4e2d\U0001F600");
	nvtxMarkA("mark");
	nvtxMarkW(L"wide mark");
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangeEnd(nvtxRangeStartA("started"));
	nvtxRangeEnd(nvtxRangeStartW(L"started wide"));
}

static void with_attributes(int i)
{
	nvtxEventAttributes_t a = attributes("with attributes");

	a.colorType = NVTX_COLOR_ARGB;
	a.color = 0xff00ff80;
	a.category = 7;
	a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	a.payload.llValue = -i;
	nvtxRangePushEx(&a);
	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = i + 0.5;
	nvtxMarkEx(&a);
	nvtxRangePop();
	a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	a.payload.uiValue = 4000000000u;
	nvtxRangeEnd(nvtxRangeStartEx(&a));
}

static void *end_in_thread(void *id)
{
	nvtxRangeEnd(*(nvtxRangeId_t *)id);
	return NULL;
}

static void in_domain(nvtxDomainHandle_t domain, nvtxStringHandle_t registered)
{
	nvtxEventAttributes_t a = attributes("in domain");

	nvtxDomainRangePushEx(domain, &a);
	nvtxRangePushA("default inside domain");
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = registered;
	nvtxDomainRangePushEx(domain, &a);
	nvtxDomainMarkEx(domain, &a);
	nvtxDomainRangePop(domain);
	/* the domains' ranges overlap */
	nvtxDomainRangePop(domain);
	nvtxRangePop();
	nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &a));
}

static void name_things(nvtxDomainHandle_t domain)
{
	nvtxResourceAttributes_t r = { .version = NVTX_VERSION,
				       .size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE,
				       .identifierType = NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE,
				       .messageType = NVTX_MESSAGE_TYPE_ASCII,
				       .message.ascii = "named as resource" };

	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main of the test");
	nvtxNameCategoryA(7, "seventh");
	nvtxDomainNameCategoryW(domain, 8, L"eighth");
	r.identifier.ullValue = (uint64_t)getppid();
	nvtxDomainResourceDestroy(nvtxDomainResourceCreate(domain, &r));
}

int main(int argc, char **argv)
{
	int before = argc > 2 && !strcmp(argv[1], "before"), rounds = atoi(argv[argc - 1]), i;
	nvtxDomainHandle_t domain;
	nvtxStringHandle_t registered;
	nvtxRangeId_t id;
	pthread_t thread;
	char line[16];

	if (before) {
		nvtxRangePushA("before");
		nvtxMarkA("before");
	}
	printf("%d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	domain = nvtxDomainCreateA("the domain");
	registered = nvtxDomainRegisterStringA(domain, "registered");
	name_things(domain);
	for (i = 0; i < rounds; i++) {
		plain(i);
		with_attributes(i);
		in_domain(domain, registered);
	}
	id = nvtxRangeStartA("ended by another thread");
	pthread_create(&thread, NULL, end_in_thread, &id);
	pthread_join(thread, NULL);
	if (before)
		nvtxRangePop();
	nvtxDomainDestroy(domain);
	nvtxRangePushA("never popped");
	return 0;
}
