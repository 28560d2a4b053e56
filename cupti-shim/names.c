// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of kernels are sent once; kernels carry a hash of the name, which is the same in every process and after an
 * exec, so that no numbers have to be kept apart. Descriptions of devices, contexts and streams are stored, too: a
 * second tracer would otherwise never get them.
 */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX  65536 /* a power of two; beyond that, names are sent every time */
#define CHAIN	   16
#define THINGS_MAX 4096

/* Looked up by address first and by hash after that: kernels come with the same pointer again and again. */
static struct name {
	uint64_t hash;
	char *text;
} * names;

static struct thing {
	enum shim_kind kind;
	uint64_t key;
	void *body;
	size_t size;
} * things;
static uint32_t n_things;

/* FNV-1a, 64 bits, finished by a multiplication so that the low bits are well distributed, too. */
static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93;
	return h ^ h >> 32 ? h ^ h >> 32 : 1;
}

static void report(uint64_t id, const char *text)
{
	struct shim_name *n = out__record_text(SHIM_NAME, sizeof(*n), 0, shim__now(), text);

	if (n)
		n->name = id;
}

uint64_t names__id(const char *text)
{
	uint64_t id;
	uint32_t i;

	if (!text)
		return 0;
	id = hash(text);
	if (!names)
		names = calloc(NAMES_MAX, sizeof(*names));
	for (i = 0; names && i < CHAIN; i++) {
		struct name *n = &names[(id + i) & (NAMES_MAX - 1)];

		if (n->hash == id)
			return id;
		if (n->hash)
			continue;
		n->text = strdup(text);
		if (!n->text)
			break;
		n->hash = id;
		break;
	}
	report(id, text);
	return id;
}

void names__keep(enum shim_kind kind, const void *body, size_t size, uint64_t key)
{
	struct thing *t = NULL;
	uint32_t i;

	if (!things)
		things = calloc(THINGS_MAX, sizeof(*things));
	for (i = 0; things && i < n_things; i++)
		if (things[i].kind == kind && things[i].key == key)
			t = &things[i];
	if (!t && things && n_things < THINGS_MAX) {
		t = &things[n_things];
		t->body = malloc(size);
		if (!t->body)
			return;
		n_things++;
	}
	if (!t)
		return;
	t->kind = kind;
	t->key = key;
	t->size = size;
	memcpy(t->body, body, size);
}

void names__report_all(void)
{
	uint64_t now = shim__now();
	uint32_t i;
	void *at;

	for (i = 0; i < n_things; i++) {
		at = out__record(things[i].kind, things[i].size, 0, now, 0);
		if (at)
			memcpy(at, things[i].body, things[i].size);
	}
	for (i = 0; names && i < NAMES_MAX; i++)
		if (names[i].hash)
			report(names[i].hash, names[i].text);
}

/* In a child, where another thread of the parent may have locked malloc: the memory is not freed. */
void names__reset(void)
{
	names = NULL;
	things = NULL;
	n_things = 0;
}
