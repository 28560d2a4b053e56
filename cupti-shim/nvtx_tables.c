// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NVTX's tables in the process: the shim's functions are put into their slots, and removed again.
 *
 * libnvToolsExt.so.1 (NVTX 2, which PyTorch before 2.7 uses) has one table for all its users. It exports a function by
 * which a tool subscribes, as its code shows: its own headers do not describe that. A second tool is refused.
 */
#define _GNU_SOURCE
#include "libc.h"
#include "nvtx.h"
#include "nvtx_find.h"

#include "shim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define TABLES_MAX 128
#define PATH_BYTES 256

struct subscription;

struct served {
	struct nvtx_table *table; /* NULL: of libnvToolsExt */
	void *library; /* libnvToolsExt, which stays loaded meanwhile; NULL: another */
	const struct subscription *subscription; /* of libnvToolsExt */
	void *handle;
	uint64_t *slots[NVTX_SLOTS];
	uint64_t before[NVTX_SLOTS];
	bool serves; /* its slots are the shim's; false: another tool has it */
	bool by_nvtx; /* NVTX has asked for them */
	bool seen;
	char path[PATH_BYTES];
};

static struct {
	struct served *list; /* of TABLES_MAX; NULL: nothing was served yet */
	uint32_t n;
	bool others_tool; /* the environment names another tool */
	bool pending; /* a thread was initializing a table */
	char old[PATH_BYTES]; /* the path of libnvToolsExt; "": it is not loaded, or has loaded the shim itself */
	uintptr_t by_nvtx[TABLES_MAX]; /* a slot of each table that NVTX has passed to the shim */
	uint32_t n_by_nvtx;
} tables;

static struct served *find(const struct nvtx_table *t)
{
	for (uint32_t i = 0; i < tables.n; i++)
		if (tables.list[i].table == t)
			return &tables.list[i];
	return NULL;
}

/* Who fills the slots: none, the shim already, or another tool? */
static bool has_other_functions(const struct served *s, bool *ours)
{
	bool others = false;

	*ours = false;
	for (uint32_t i = 0; i < NVTX_SLOTS; i++) {
		uint64_t now = s->slots[i] ? *s->slots[i] : 0;

		*ours |= now && now == (uint64_t)(uintptr_t)nvtx_functions[i];
		others |= now && now != (uint64_t)(uintptr_t)nvtx_functions[i];
	}
	return others;
}

static void fill(const struct served *s)
{
	for (uint32_t i = 0; i < NVTX_SLOTS; i++)
		if (s->slots[i] && nvtx_functions[i])
			__atomic_store_n(s->slots[i], (uint64_t)(uintptr_t)nvtx_functions[i], __ATOMIC_RELEASE);
}

/* A table that no call was made with has functions in all slots, of which only the shim's stay. */
static void clear_others(const struct served *s)
{
	for (uint32_t i = 0; i < NVTX_SLOTS; i++)
		if (s->slots[i] && !nvtx_functions[i])
			__atomic_store_n(s->slots[i], 0, __ATOMIC_RELEASE);
}

/* Returns false if a thread is initializing the table: the next scan decides. */
static bool serve(struct served *s)
{
	struct nvtx_table *t = s->table;
	uint32_t fresh = TABLE_FRESH;
	bool ours;

	if (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == TABLE_FRESH) {
		/* another tool will be loaded at the first call */
		if (tables.others_tool)
			return false;
		if (!__atomic_compare_exchange_n(&t->state, &fresh, TABLE_STARTED, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			goto later;
		clear_others(s);
		fill(s);
		__atomic_store_n(&t->state, TABLE_COMPLETE, __ATOMIC_RELEASE);
		s->serves = true;
		return true;
	}
	if (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) != TABLE_COMPLETE)
		goto later;
	s->serves = !has_other_functions(s, &ours);
	s->by_nvtx = s->serves && ours;
	if (s->serves && !ours)
		fill(s);
	return true;
later:
	tables.pending = true;
	return false;
}

static void record(const struct served *s)
{
	struct shim_nvtx_object body = { .address = (uint64_t)(uintptr_t)s->table, .served = s->serves };

	lane__record_text(LANE_NVTX, NVTX_OBJECT, &body, sizeof(body), s->path, strlen(s->path));
}

static void found(struct nvtx_table *t, const char *path)
{
	struct served *s = find(t);

	bool ours;

	if (s) {
		s->seen = true;
		/* an object may have been unloaded and loaded again at the same address */
		if (!s->serves || (!has_other_functions(s, &ours) && ours))
			return;
	}
	if (!s && tables.n == TABLES_MAX)
		return;
	if (!s)
		s = &tables.list[tables.n++];
	*s = (struct served){ .table = t, .seen = true };
	for (uint32_t i = 0; i < NVTX_SLOTS; i++)
		s->slots[i] = &t->slots[i];
	strncpy(s->path, *path ? path : "/proc/self/exe", sizeof(s->path) - 1);
	/* one that a thread is initializing is served by the next search */
	if (serve(s))
		record(s);
	else
		s->seen = false;
}

/* nvtxDetail/nvtxTypes.h: NvtxExportTableCallbacks; its id is 1 */
struct callbacks {
	size_t size;
	int (*get_functions)(int module, void ****table, unsigned int *size);
};

static bool get_slots(const struct callbacks *c, int module, uint32_t first, uint32_t n, uint64_t **slots)
{
	void ***table;
	unsigned int size;

	if (!c || c->size != sizeof(*c) || !c->get_functions(module, &table, &size) || size < n)
		return false;
	/* the list begins with a NULL at index 0 */
	for (uint32_t i = 0; i < n; i++)
		slots[first + i] = (uint64_t *)table[i + 1];
	return true;
}

bool nvtx_tables__slots(const void *callbacks, uint64_t **slots)
{
	return get_slots(callbacks, 1, NVTX_TABLE_CORE, 15, slots) &&
	       get_slots(callbacks, 2, NVTX_TABLE_CUDA, 8, slots) &&
	       get_slots(callbacks, 4, NVTX_TABLE_CUDART, 6, slots) &&
	       get_slots(callbacks, 5, NVTX_TABLE_CORE2, 15, slots);
}

void nvtx_tables__keep(const uint64_t *slot)
{
	uint32_t i = __atomic_fetch_add(&tables.n_by_nvtx, 1, __ATOMIC_RELAXED);

	if (i < TABLES_MAX)
		tables.by_nvtx[i] = (uintptr_t)slot;
	else
		__atomic_store_n(&tables.n_by_nvtx, TABLES_MAX, __ATOMIC_RELAXED);
}

/* The export table 1 of libnvToolsExt. */
struct subscription {
	size_t size;
	void *(*attach)(void (*callback)(void *user, int module, int function, void *result, const uint64_t *args),
			void *user);
	void (*detach)(void *handle);
};

/* Calls the shim's function for one of libnvToolsExt. All arguments are numbers or pointers, at most three. */
static void on_old_call(void *user, int module, int function, void *result, const uint64_t *args)
{
	static const struct {
		uint32_t first, n;
		uint32_t of_int; /* bits: functions that return an int */
	} of[] = { [1] = { NVTX_TABLE_CORE, 15, 1U << 8 | 1U << 9 | 1U << 10 | 1U << 11 },
		   [2] = { NVTX_TABLE_CUDA, 8, 0 },
		   [4] = { NVTX_TABLE_CUDART, 6, 0 },
		   [5] = { NVTX_TABLE_CORE2, 15, 1U << 4 | 1U << 5 } };
	static const uint64_t none[3];
	uint64_t (*fn)(uint64_t, uint64_t, uint64_t), returned;

	args = args ? args : none;
	if (module < 1 || module > 5 || function < 1 || (uint32_t)function > of[module].n)
		return;
	fn = (uint64_t(*)(uint64_t, uint64_t, uint64_t))nvtx_functions[of[module].first + (uint32_t)function - 1];
	if (!fn)
		return;
	returned = fn(args[0], args[1], args[2]);
	if (result)
		memcpy(result, &returned, of[module].of_int >> function & 1 ? sizeof(int) : sizeof(returned));
}

static void serve_old(const char *path)
{
	void *library = tables.n < TABLES_MAX ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	const void *(*get_table)(uint32_t id) = library ? dlsym(library, "nvtxGetExportTable") : NULL;
	struct served *s;

	if (!get_table) {
		if (library)
			dlclose(library);
		return;
	}
	s = &tables.list[tables.n++];
	*s = (struct served){ .library = library, .seen = true, .subscription = get_table(1) };
	memcpy(s->path, path, sizeof(s->path));
	if (s->subscription && s->subscription->size == sizeof(*s->subscription))
		s->handle = s->subscription->attach(on_old_call, NULL);
	s->serves = s->handle;
	record(s);
}

static void serve_all_old(void)
{
	for (uint32_t i = 0; i < tables.n; i++)
		if (tables.list[i].library)
			return;
	if (*tables.old)
		serve_old(tables.old);
}

static bool has_loaded_shim(uintptr_t begin, uintptr_t end)
{
	for (uint32_t k = 0; k < tables.n_by_nvtx; k++)
		if (tables.by_nvtx[k] >= begin && tables.by_nvtx[k] < end)
			return true;
	return false;
}

static void found_old(const char *path, uintptr_t begin, uintptr_t end)
{
	if (strlen(path) < sizeof(tables.old) && !has_loaded_shim(begin, end))
		strcpy(tables.old, path);
}

void nvtx_tables__serve(void)
{
	const char *tool;
	uint32_t keep = 0;

	if (!nvtx_find__has_changed() && !tables.pending)
		return;
	if (!tables.list)
		tables.list = calloc(TABLES_MAX, sizeof(*tables.list));
	if (!tables.list)
		return;
	tables.pending = false;
	tool = getenv("NVTX_INJECTION64_PATH");
	tables.others_tool = tool && *tool && !strstr(tool, "libsonde-cupti");
	for (uint32_t i = 0; i < tables.n; i++)
		tables.list[i].seen = false;
	nvtx_find__each(found, found_old);
	/* unloaded */
	for (uint32_t i = 0; i < tables.n; i++)
		if ((tables.list[i].seen || tables.list[i].library) && keep++ != i)
			tables.list[keep - 1] = tables.list[i];
	tables.n = keep;
	serve_all_old();
}

static void restore(struct served *s)
{
	for (uint32_t i = 0; s->serves && !s->by_nvtx && i < NVTX_SLOTS; i++) {
		uint64_t ours = (uint64_t)(uintptr_t)nvtx_functions[i];

		if (s->slots[i] && ours)
			__atomic_compare_exchange_n(s->slots[i], &ours, s->before[i], false, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED);
	}
}

static void restore_found(struct nvtx_table *t, const char *path)
{
	struct served *s = find(t);

	if (s)
		restore(s);
}

void nvtx_tables__restore(void)
{
	nvtx_find__again(restore_found);
	for (uint32_t i = 0; i < tables.n; i++)
		if (tables.list[i].library) {
			if (tables.list[i].handle)
				tables.list[i].subscription->detach(tables.list[i].handle);
			dlclose(tables.list[i].library);
		}
	tables.n = 0;
	*tables.old = '\0';
}

void nvtx_tables__report(void)
{
	for (uint32_t i = 0; i < tables.n; i++)
		record(&tables.list[i]);
}
