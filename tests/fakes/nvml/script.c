// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "script.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTERS 256

/* How often each device and key was asked for */
static struct {
	unsigned int device;
	char key[32];
	unsigned int calls;
} counters[COUNTERS];

static unsigned int count_call(unsigned int device, const char *key)
{
	for (unsigned int i = 0; i < COUNTERS; i++) {
		if (!*counters[i].key) {
			counters[i].device = device;
			snprintf(counters[i].key, sizeof(counters[i].key), "%s", key);
		}
		if (counters[i].device == device && !strcmp(counters[i].key, key))
			return counters[i].calls++;
	}
	return 0;
}

/* Copies the n-th answer of the entry, or its last one. */
static void nth_word(const char *at, const char *end, unsigned int n, char *buf, size_t size)
{
	for (unsigned int i = 0; at < end; i++) {
		size_t len;

		at += strspn(at, " ");
		len = strcspn(at, " ;");
		if (!len || at >= end)
			return;
		snprintf(buf, size, "%.*s", (int)len, at);
		if (i == n)
			return;
		at += len;
	}
}

/* Returns whether the entry is about this device and key; *rest: its answers. */
static int is_about(const char *entry, unsigned int device, const char *key, const char **rest)
{
	char name[32], found[32];
	int len = 0;

	if (device == ~0U)
		snprintf(name, sizeof(name), "*");
	else
		snprintf(name, sizeof(name), "%u", device);
	entry += strspn(entry, " ");
	if (strncmp(entry, name, strlen(name)) != 0 || entry[strlen(name)] != ' ' ||
	    sscanf(entry + strlen(name), " %31[a-z_]%n", found, &len) != 1 || strcmp(found, key) != 0)
		return 0;
	*rest = entry + strlen(name) + len;
	return 1;
}

static int find_word(unsigned int device, const char *key, char *buf, size_t size)
{
	const char *at = getenv("FAKE_NVML"), *rest;

	for (; at && *at; at += *at == ';') {
		const char *end = at + strcspn(at, ";");

		if (is_about(at, device, key, &rest)) {
			nth_word(rest, end, count_call(device, key), buf, size);
			return 1;
		}
		at = end;
	}
	return 0;
}

static void parse(const char *word, struct script_answer *a)
{
	while (*word && a->n < ANSWER_PARTS) {
		unsigned int *n = &a->parts[a->n].n;
		char *end;

		if (*n < ANSWER_VALUES)
			a->parts[a->n].values[(*n)++] = strtoull(word, &end, 0);
		else
			strtoull(word, &end, 0);
		if (*end != ':')
			a->n++;
		if (*end != ':' && *end != '+')
			return;
		word = end + 1;
	}
}

nvmlReturn_t script__next(unsigned int device, const char *key, struct script_answer *a)
{
	char word[512] = "-";

	memset(a, 0, sizeof(*a));
	if (!find_word(device, key, word, sizeof(word)) || !strcmp(word, "-"))
		return NVML_ERROR_NOT_SUPPORTED;
	if (!strcmp(word, "lost"))
		return NVML_ERROR_GPU_IS_LOST;
	if (!strcmp(word, "none"))
		return NVML_ERROR_NOT_FOUND;
	if (!strcmp(word, "denied"))
		return NVML_ERROR_NO_PERMISSION;
	while (!strcmp(word, "hang"))
		pause();
	/* without a line in the kernel's log, which a real fault would leave */
	if (!strcmp(word, "crash"))
		raise(SIGSEGV);
	parse(word, a);
	return NVML_SUCCESS;
}

nvmlReturn_t script__number(unsigned int device, const char *key, unsigned long long *value)
{
	struct script_answer a;
	nvmlReturn_t err = script__next(device, key, &a);

	if (err == NVML_SUCCESS)
		*value = a.parts[0].values[0];
	return err;
}

unsigned int script__devices(void)
{
	const char *at = getenv("FAKE_NVML");
	unsigned int n = 0;

	for (; at && *at; at += *at == ';') {
		at += strspn(at, " ");
		if (*at >= '0' && *at <= '9' && strtoul(at, NULL, 10) + 1 > n)
			n = (unsigned int)strtoul(at, NULL, 10) + 1;
		at += strcspn(at, ";");
	}
	return n;
}
