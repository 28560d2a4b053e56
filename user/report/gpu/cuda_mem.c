// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/gpu/cuda_mem.h"

#include <errno.h>

static int on_work(const struct gpu_work *w, void *arg)
{
	const char *operation = gpu_work__operation(w); /* one of a few constant texts, compared by address */
	struct cuda_mem *c = arg;
	struct cuda_mem_group *g;
	int err;

	if ((w->kind != GPU_COPY && w->kind != GPU_SET) || !cuda_work__is_whole(w))
		return 0;
	g = map__get(w->host_time ? &c->host : &c->device, &operation);
	if (!g)
		return -ENOMEM;
	g->operation = operation;
	*(w->host_time ? &c->host_total : &c->total) += w->end - w->start;
	c->bytes += w->bytes;
	err = stats__add(&g->time, &c->work.pool, w->end - w->start);
	return err ? err : stats__add(&g->size, &c->work.pool, w->bytes);
}

int cuda_mem__read(struct cuda_mem *c, const struct query *args)
{
	*c = (struct cuda_mem){ 0 };
	map__init(&c->device, sizeof(const char *), sizeof(struct cuda_mem_group));
	map__init(&c->host, sizeof(const char *), sizeof(struct cuda_mem_group));
	return cuda_work__read(&c->work, args, on_work, c);
}

void cuda_mem__free(struct cuda_mem *c)
{
	struct map *maps[] = { &c->device, &c->host };

	for (u32 i = 0; i < 2; i++) {
		MAP_EACH(struct cuda_mem_group *g, maps[i]) {
			stats__free(&g->time, &c->work.pool);
			stats__free(&g->size, &c->work.pool);
		}
		map__free(maps[i]);
	}
	cuda_work__free(&c->work);
}
