// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OPS_MAX	   200000
#define FACTS_MAX  256
#define FACT_BYTES 1024

static const char *const names[] = { "kernel", "copy", "set", "sync", "graph", "alloc", "free" };
static struct op ops[OPS_MAX];
static uint32_t n_ops, written, phase;
static char facts[FACTS_MAX][FACT_BYTES];
static uint32_t n_facts, facts_written;

uint64_t truth__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

struct op *truth__begin(enum op_kind kind, uint32_t stream)
{
	uint32_t i = __atomic_fetch_add(&n_ops, 1, __ATOMIC_RELAXED);

	if (i >= OPS_MAX) {
		fprintf(stderr, "more than %d operations\n", OPS_MAX);
		exit(2);
	}
	ops[i] = (struct op){
		.op = kind, .stream = stream, .tid = syscall(SYS_gettid), .phase = phase, .begin = truth__now()
	};
	return &ops[i];
}

void truth__fact(const char *key, const char *json)
{
	if (n_facts < FACTS_MAX)
		snprintf(facts[n_facts++], FACT_BYTES, "{\"fact\": \"%s\", \"value\": %s}", key, json);
}

/* Nothing here comes from outside but names of devices and errors. */
void truth__fact_text(const char *key, const char *text)
{
	char json[FACT_BYTES / 2], *at = json;

	*at++ = '"';
	for (; *text && at < json + sizeof(json) - 2; text++)
		*at++ = *text < ' ' || *text == '"' || *text == '\\' || *text > '~' ? ' ' : *text;
	*at++ = '"';
	*at = '\0';
	truth__fact(key, json);
}

void truth__fact_number(const char *key, long long number)
{
	char json[32];

	snprintf(json, sizeof(json), "%lld", number);
	truth__fact(key, json);
}

void truth__phase(const char *name)
{
	char json[128];

	phase++;
	snprintf(json, sizeof(json), "{\"number\": %u, \"name\": \"%s\", \"begin\": %lu}", phase, name, truth__now());
	truth__fact("phase", json);
}

void truth__write(void)
{
	const char *path = getenv("WORK_TRUTH");
	FILE *f = path ? fopen(path, "a") : NULL;
	uint32_t n = n_ops < OPS_MAX ? n_ops : OPS_MAX;

	if (!f)
		return;
	for (; facts_written < n_facts; facts_written++)
		fprintf(f, "%s\n", facts[facts_written]);
	for (; written < n; written++) {
		const struct op *o = &ops[written];

		fprintf(f,
			"{\"op\": \"%s\", \"name\": \"%s\", \"tid\": %u, \"stream\": %u, \"phase\": %u, \"kind\": %u, "
			"\"grid\": %u, \"block\": %u, \"begin\": %lu, \"end\": %lu, \"bytes\": %lu, \"address\": %lu, "
			"\"event_ns\": %lu, \"inside_ns\": %lu}\n",
			names[o->op], o->name ? o->name : "", o->tid, o->stream, o->phase, o->kind, o->grid, o->block,
			o->begin, o->end, o->bytes, o->address, o->event_ns, o->inside_ns);
	}
	fclose(f);
}
