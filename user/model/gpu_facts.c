// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Facts that must be known before work is emitted, but may be anywhere in the trace. So all of it is read once. */
#include "model/gpu_private.h"

#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of all names together: targets choose the names. */
#define TEXTS_BYTES_MAX (64u << 20)

struct device_key {
	u32 pid, device;
};

struct device {
	struct gpu_device_facts facts;
	char model[65];
};

struct handle_key {
	u64 handle;
	u32 pid, unused;
};

static u64 get(const struct view *v, const struct schema_field *f)
{
	return (u64)view__s64(v, f);
}

static struct gpu_process *process_of(struct gpu_model *m, u32 pid)
{
	return map__get(&m->processes, &pid);
}

/* Sets the text of a handle, unless it has one. */
static int set_text(struct gpu_model *m, struct map *map, u32 pid, u64 handle, const char *text, u32 len)
{
	struct handle_key key = { handle, pid, 0 };
	struct gpu_text *t;

	if (m->text_bytes + len > TEXTS_BYTES_MAX)
		return 0;
	t = map__get(map, &key);
	if (!t)
		return -ENOMEM;
	if (t->text)
		return 0;
	t->text = strndup(text, len);
	m->text_bytes += len + sizeof(*t) + sizeof(key);
	return t->text ? 0 : -ENOMEM;
}

static const char *text_of(const struct map *map, u32 pid, u64 handle)
{
	struct handle_key key = { handle, pid, 0 };
	const struct gpu_text *t = map__find(map, &key);

	return t ? t->text : NULL;
}

static int on_name(struct gpu_model *m, const struct view *v, u32 pid)
{
	u32 len;
	const char *text = view__text(v, schema_event__field(v->event, "text"), &len);

	return len ? set_text(m, &m->kernels, pid, (u64)view__get(v, "name"), text, len) : 0;
}

static int on_function(struct gpu_model *m, const struct view *v, u32 pid)
{
	u64 handle = (u64)view__get(v, "function"), kernel = (u64)view__get(v, "kernel");
	u32 len;
	const char *text = view__text(v, schema_event__field(v->event, "name"), &len);

	if (!len && kernel)
		text = text_of(&m->functions, pid, kernel);
	if (!handle || !text || (!len && !kernel))
		return 0;
	return set_text(m, &m->functions, pid, handle, text, len ? len : (u32)strlen(text));
}

static int on_clock(struct gpu_model *m, const struct view *v, u32 pid)
{
	struct gpu_process *p = process_of(m, pid);
	u64 error = (u64)view__get(v, "error");

	if (!p)
		return -ENOMEM;
	p->has_shim = true;
	p->clock_error = error > p->clock_error ? error : p->clock_error;
	return 0;
}

static int on_device(struct gpu_model *m, const struct view *v, u32 pid)
{
	struct device_key key = { pid, (u32)view__get(v, "device") };
	struct gpu_process *p = process_of(m, pid);
	struct device *d = map__get(&m->devices, &key);
	u32 len;
	const char *model = view__text(v, schema_event__field(v->event, "model"), &len);

	if (!p || !d)
		return -ENOMEM;
	p->has_shim = true;
	memcpy(d->model, model, len < sizeof(d->model) ? len : sizeof(d->model) - 1);
	d->facts = (struct gpu_device_facts){
		.pid = pid,
		.device = key.device,
		.model = d->model,
		.memory = (u64)view__get(v, "memory"),
		.bandwidth = (u64)view__get(v, "bandwidth"),
		.multiprocessors = (u32)view__get(v, "multiprocessors"),
		.clock_khz = (u32)view__get(v, "clock_khz"),
		.major = (u32)view__get(v, "major"),
		.minor = (u32)view__get(v, "minor"),
	};
	return 0;
}

static int on_shim(struct gpu_model *m, const struct view *v, u32 pid)
{
	s64 state = view__get(v, "state");
	struct gpu_process *p = state == GPU_SHIM_STARTED || state == GPU_SHIM_STOPPED ? process_of(m, pid) : NULL;
	u64 time = (u64)view__get(v, "time");

	if (!p)
		return 0;
	p->has_shim = true;
	if (state == GPU_SHIM_STARTED) {
		p->first_on = p->first_on && p->first_on < time ? p->first_on : time;
		p->last_on = p->last_on > time ? p->last_on : time;
	} else {
		p->last_off = p->last_off > time ? p->last_off : time;
	}
	return 0;
}

static int on_task(struct gpu_model *m, const struct view *v, u32 pid)
{
	return gpu_facts__set_tid(m, pid, (u32)view__get(v, "ns_tid"), (u32)view__get(v, "tid"));
}

static int on_fork(struct gpu_model *m, const struct view *v, u32 pid)
{
	return gpu_facts__set_tid(m, (u32)view__get(v, "child_pid"), (u32)view__get(v, "child_ns_tid"),
				  (u32)view__get(v, "child_tid"));
}

static const struct source {
	const char *kind;
	int (*fn)(struct gpu_model *m, const struct view *v, u32 pid);
} sources[] = {
	{ "gpu_name", on_name },  { "gpu_clock", on_clock },	       { "gpu_device", on_device },
	{ "gpu_shim", on_shim },  { "cudadrv_function", on_function }, { "proc_task", on_task },
	{ "proc_fork", on_fork },
};

static int on_rows(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), pid);
	const struct source *s = sources;
	int err = 0;

	while (strcmp(s->kind, rows__event(rows)->name))
		s++;
	ROWS_WHILE(!err, v, rows)
		err = s->fn(arg, &v, (u32)get(&v, pid));
	return err;
}

/* Notes only which processes have driver calls and memory events, as there may be many. */
static int on_many(const struct rows *rows, void *arg)
{
	const struct schema_field *f = schema_event__field(rows__event(rows), "pid");
	bool calls = !strcmp(rows__event(rows)->name, "gpu_call");
	struct gpu_process *p = NULL;
	u32 pid, last = 0;

	ROWS_EACH(v, rows) {
		pid = (u32)get(&v, f);
		if (p && pid == last)
			continue;
		p = process_of(arg, last = pid);
		if (!p)
			return -ENOMEM;
		p->has_shim = true;
		p->has_calls |= calls;
		p->has_memory |= !calls;
	}
	return 0;
}

int gpu_facts__load(struct gpu_model *m)
{
	const struct schema_event *kinds[ARRAY_LEN(sources) + 1] = { NULL }, *many[3] = { NULL };
	struct trace_filter filter = { .kinds = kinds }, second = { .kinds = many };
	/* a trace of all processes has many threads' ids, which only driver calls need */
	bool tids = trace__has(m->trace, "gpu_call");
	u32 i, n = 0;
	int err = 0;

	map__init(&m->processes, sizeof(u32), sizeof(struct gpu_process));
	map__init(&m->devices, sizeof(struct device_key), sizeof(struct device));
	map__init(&m->kernels, sizeof(struct handle_key), sizeof(struct gpu_text));
	map__init(&m->functions, sizeof(struct handle_key), sizeof(struct gpu_text));
	map__init(&m->tids, sizeof(struct gpu_thread_key), sizeof(u32));
	for (i = 0; i < ARRAY_LEN(sources); i++)
		if (trace__has(m->trace, sources[i].kind) &&
		    (tids || (sources[i].fn != on_task && sources[i].fn != on_fork)))
			kinds[n++] = schema__event(m->schema, sources[i].kind);
	if (n)
		err = trace__read(m->trace, &filter, on_rows, m);
	n = 0;
	if (tids)
		many[n++] = schema__event(m->schema, "gpu_call");
	if (trace__has(m->trace, "gpu_memory"))
		many[n++] = schema__event(m->schema, "gpu_memory");
	if (!err && n)
		err = trace__read(m->trace, &second, on_many, m);
	return err;
}

static void free_texts(struct map *map)
{
	u32 i;

	for (i = 0; i < map->n; i++)
		free(((struct gpu_text *)map__value(map, i))->text);
	map__free(map);
}

void gpu_facts__free(struct gpu_model *m)
{
	free_texts(&m->kernels);
	free_texts(&m->functions);
	MAPS_FREE(&m->processes, &m->devices, &m->tids);
}

const struct gpu_process *gpu_facts__process(const struct gpu_model *m, u32 pid)
{
	return map__find(&m->processes, &pid);
}

const char *gpu_facts__kernel(const struct gpu_model *m, u32 pid, u64 hash)
{
	return text_of(&m->kernels, pid, hash);
}

const char *gpu_facts__function(struct gpu_model *m, u32 pid, u64 handle)
{
	const char *known = text_of(&m->functions, pid, handle);
	char made[40];
	int len;

	if (known)
		return known;
	len = snprintf(made, sizeof(made), "kernel 0x%llx", handle);
	if (set_text(m, &m->functions, pid, handle, made, (u32)len))
		return NULL;
	known = text_of(&m->functions, pid, handle);
	return known ? known : "kernel";
}

u64 gpu_facts__slack(const struct gpu_model *m, u32 pid)
{
	const struct gpu_process *p = gpu_facts__process(m, pid);

	/* a larger error means that the shim's clock is not usable */
	return !p ? 0 : p->clock_error < 1000000 ? p->clock_error : 1000000;
}

u32 gpu_facts__tid(const struct gpu_model *m, u32 pid, u32 ns_tid)
{
	struct gpu_thread_key key = { pid, ns_tid };
	const u32 *tid = map__find(&m->tids, &key);

	return tid ? *tid : 0;
}

int gpu_facts__set_tid(struct gpu_model *m, u32 pid, u32 ns_tid, u32 tid)
{
	struct gpu_thread_key key = { pid, ns_tid };
	u32 *to;

	if (!ns_tid || !tid)
		return 0;
	to = map__get(&m->tids, &key);
	if (!to)
		return -ENOMEM;
	*to = tid;
	return 0;
}

const struct gpu_device_facts *gpu_model__device(const struct gpu_model *m, u32 pid, u32 device)
{
	struct device_key key = { pid, device };
	const struct device *d = map__find(&m->devices, &key);

	return d ? &d->facts : NULL;
}
