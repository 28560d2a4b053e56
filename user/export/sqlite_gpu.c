// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes table gpu_work (kernels, copies and sets with their launches) and table gpus. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/nsight.h"

static const char create[] =
	"CREATE TABLE sonde_gpu_work(kind TEXT, start INTEGER, \"end\" INTEGER, only_by_calls INTEGER, open INTEGER, name TEXT, "
	"mangled TEXT, pid INTEGER, device INTEGER, gpu INTEGER, context INTEGER, stream INTEGER, correlation INTEGER, "
	"graph INTEGER, graph_node INTEGER, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, "
	"block_y INTEGER, block_z INTEGER, registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, "
	"bytes INTEGER, copy TEXT, from_memory TEXT, to_memory TEXT, asynchronous INTEGER, queued INTEGER, "
	"launch INTEGER, launch_function TEXT, launch_pid INTEGER, launch_tid INTEGER, launch_start INTEGER, "
	"launch_end INTEGER, launch_stack INTEGER, launched_at TEXT, launch_gil TEXT, stream_free INTEGER)";
enum { N_COLUMNS = 40 };

struct pass {
	const struct sqlite *s;
	struct gpu_model *model;
	struct gpus *gpus;
	sqlite3_stmt *insert; /* NULL: no row yet */
	int column;
};

static void bind_value(struct pass *p, u64 value)
{
	sqlite3_bind_int64(p->insert, ++p->column, (sqlite3_int64)value);
}

static void put_known(struct pass *p, u64 value)
{
	sqlite__bind_known(p->insert, ++p->column, value);
}

static void put_text(struct pass *p, const char *text)
{
	sqlite__bind_text(p->insert, ++p->column, text);
}

static void skip(struct pass *p, int columns)
{
	while (columns--)
		sqlite3_bind_null(p->insert, ++p->column);
}

static void put_where(struct pass *p, const struct gpu_work *w)
{
	bind_value(p, names__number(p->s->e->names, w->pid));
	if (w->host_time) {
		skip(p, 5);
	} else {
		bind_value(p, w->device);
		bind_value(p, gpus__number(p->gpus, w->pid, w->device));
		bind_value(p, w->context);
		bind_value(p, w->stream);
		bind_value(p, w->correlation);
	}
	put_known(p, w->graph);
	put_known(p, w->graph_node);
}

static void put_shape(struct pass *p, const struct gpu_work *w)
{
	if (w->kind != GPU_KERNEL) {
		skip(p, 9);
		return;
	}
	for (int i = 0; i < 3; i++)
		bind_value(p, w->grid[i]);
	for (int i = 0; i < 3; i++)
		bind_value(p, w->block[i]);
	bind_value(p, w->registers);
	bind_value(p, w->static_shared);
	bind_value(p, w->dynamic_shared);
}

static void put_transfer(struct pass *p, const struct gpu_work *w)
{
	bool copies = w->kind == GPU_COPY;

	if (!copies && w->kind != GPU_SET) {
		skip(p, 5);
		return;
	}
	bind_value(p, w->bytes);
	put_text(p, copies ? gpu_copy__name(w->copy_kind) : NULL);
	put_text(p, copies ? gpu_memory__name(w->from_memory) : NULL);
	put_text(p, gpu_memory__name(w->to_memory));
	bind_value(p, w->asynchronous);
}

static void put_launch(struct pass *p, const struct gpu_work *w)
{
	const struct gpu_launch *l = w->launch;
	char label[STACK_LABEL];

	if (!l) {
		skip(p, 10);
		return;
	}
	bind_value(p, w->queued);
	bind_value(p, l->number);
	put_text(p, l->function);
	bind_value(p, names__number(p->s->e->names, l->pid));
	put_known(p, names__number(p->s->e->names, l->tid));
	bind_value(p, l->start);
	bind_value(p, l->end);
	put_known(p, l->stack);
	put_text(p, l->stack ? stacks__label(p->s->e->stacks, l->stack, label, sizeof(label)) : NULL);
	put_text(p, gpu_launch__gil_state(l));
}

static int prepare(struct pass *p)
{
	char sql[64 + 3 * N_COLUMNS] = "INSERT INTO sonde_gpu_work VALUES(?";
	size_t len = strlen(sql);
	int err = sqlite__execute(p->s, create);

	for (int i = 1; i < N_COLUMNS; i++)
		len += (size_t)snprintf(sql + len, sizeof(sql) - len, ", ?");
	snprintf(sql + len, sizeof(sql) - len, ")");
	return err ? err : sqlite__prepare(p->s, sql, &p->insert);
}

static int on_work(const struct gpu_work *w, void *arg)
{
	struct pass *p = arg;
	int err = p->insert ? 0 : prepare(p);

	if (err)
		return err;
	p->column = 0;
	put_text(p, gpu_work__name(w));
	bind_value(p, w->start);
	bind_value(p, w->end);
	bind_value(p, w->host_time);
	bind_value(p, w->open);
	put_text(p, gpu_work__title(p->model, w));
	put_text(p, w->name);
	put_where(p, w);
	put_shape(p, w);
	put_transfer(p, w);
	put_launch(p, w);
	put_known(p, w->stream_free);
	err = p->column == N_COLUMNS ? sqlite__step(p->s, p->insert) : -EINVAL;
	return err ? err : nsight__put_work(p->s->nsight, p->model, w);
}

static int on_call(const struct gpu_host_call *c, void *arg)
{
	return nsight__put_call(((struct pass *)arg)->s->nsight, c);
}

static int put_gpus(const struct pass *p)
{
	sqlite3_stmt *insert;
	int err = p->gpus->n ? sqlite__execute(p->s, "CREATE TABLE sonde_gpus(gpu INTEGER, model TEXT, memory INTEGER, "
						     "major INTEGER, minor INTEGER)") :
			       0;

	if (err || !p->gpus->n)
		return err;
	err = sqlite__prepare(p->s, "INSERT INTO sonde_gpus VALUES(?, ?, ?, ?, ?)", &insert);
	if (err)
		return err;
	for (u32 i = 0; !err && i < p->gpus->n; i++) {
		const struct gpu *gpu = &p->gpus->list[i];

		if (!gpu->is_used)
			continue;
		sqlite3_bind_int64(insert, 1, i);
		sqlite__bind_text(insert, 2, *gpu->model ? gpu->model : NULL);
		sqlite__bind_known(insert, 3, gpu->memory);
		sqlite__bind_known(insert, 4, gpu->major);
		sqlite3_bind_int64(insert, 5, gpu->minor);
		err = sqlite__step(p->s, insert);
	}
	sqlite3_finalize(insert);
	return err;
}

int sqlite__put_gpu_work(const struct sqlite *s)
{
	const struct gpu_listener listener = { .work = on_work, .call = on_call };
	struct pass p = { .s = s, .gpus = &s->nsight->gpus };
	int err = gpu_model__new(&p.model, s->e->trace, s->e->names);

	if (!err)
		err = gpu_model__read(p.model, 0, 0, NULL, &listener, &p, NULL);
	if (!err)
		err = put_gpus(&p);
	if (!err)
		err = nsight__join_calls(s->nsight);
	sqlite3_finalize(p.insert);
	gpu_model__free(p.model);
	return err;
}
