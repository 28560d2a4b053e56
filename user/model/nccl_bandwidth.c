// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/nccl_bandwidth.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"

/* Of the functions ncclX and ncclXConfig */
static const struct definition {
	const char *function;
	bool is_part; /* its count is the part of one rank */
	double factor; /* of the bus bandwidth, times (n - 1) / n if */
	bool by_ranks;
} definitions[] = {
	{ "ncclAllReduce", false, 2, true },	{ "ncclAllGather", true, 1, true },
	{ "ncclReduceScatter", true, 1, true }, { "ncclAlltoAll", true, 1, true },
	{ "ncclGather", true, 1, true },	{ "ncclScatter", true, 1, true },
	{ "ncclBroadcast", false, 1, false },	{ "ncclReduce", false, 1, false },
	{ "ncclSend", false, 1, false },	{ "ncclRecv", false, 1, false },
};

static const struct definition *definition_of(const char *function)
{
	for (u32 i = 0; i < ARRAY_LEN(definitions); i++) {
		size_t len = strlen(definitions[i].function);

		if (!strncmp(function, definitions[i].function, len) &&
		    (!function[len] || !strcmp(function + len, "Config")))
			return &definitions[i];
	}
	return NULL;
}

static void set_key(struct nccl_speed_key *key, const struct nccl_calls *c, const struct nccl_kernel *k)
{
	const struct nccl_op *first = &c->ops[k->first];

	memset(key, 0, sizeof(*key));
	key->function = first->function;
	key->ranks = first->rank->size;
	key->fused = k->n;
	memcpy(key->algorithm, k->algorithm, sizeof(key->algorithm));
	memcpy(key->protocol, k->protocol, sizeof(key->protocol));
	for (const struct nccl_op *op = first; op < first + k->n; op++) {
		key->bytes += op->bytes;
		if (op->function != first->function)
			key->function = NCCL_OPERATIONS_DIFFER;
		if (op->rank->size != key->ranks)
			key->ranks = 0;
	}
}

static void define(struct nccl_speed *s, const struct nccl_speed_key *key, const struct nccl_calls *c)
{
	const struct definition *d = key->function == NCCL_OPERATIONS_DIFFER ?
					     NULL :
					     definition_of(nccl_calls__function_name(c, key->function));
	double n = key->ranks;

	if (!d || ((d->is_part || d->by_ranks) && key->ranks < 1))
		return;
	s->size = (double)key->bytes * (d->is_part ? n : 1);
	s->factor = d->factor * (d->by_ranks ? (n - 1) / n : 1);
}

int nccl_bandwidth__sum(struct map *speeds, const struct nccl_calls *c, const struct nccl_kernels *k)
{
	for (const struct nccl_kernel *kernel = k->list; kernel < k->list + k->n; kernel++) {
		u64 ns = kernel->end - kernel->start;
		struct nccl_speed_key key;
		struct nccl_speed *s;

		set_key(&key, c, kernel);
		s = map__get(speeds, &key);
		if (!s)
			return -ENOMEM;
		if (!s->kernels++)
			define(s, &key, c);
		s->ns += ns;
		s->shortest = s->kernels == 1 || ns < s->shortest ? ns : s->shortest;
	}
	return 0;
}
