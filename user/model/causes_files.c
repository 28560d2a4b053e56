// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A read may wait for a disk, for another process or for a peer: the descriptor's file says which. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/causes.h"
#include "model/osrt_files.h"
#include "model/syscalls.h"

struct call_key {
	u32 pid, nr;
};

struct sum_key {
	struct call_key call;
	u32 file, unused;
};

struct best {
	u64 ns;
	u32 file;
};

struct cause_files {
	const struct schema_field *nr;
	struct osrt_files *names;
	struct map sums; /* struct sum_key -> u64 ns */
	struct map best; /* struct call_key -> struct best */
};

static int on_calls(const struct rows *rows, void *arg)
{
	struct common_fields common = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), file);
	struct cause_files *f = arg;
	u64 *ns;

	ROWS_EACH(v, rows) {
		struct sum_key key = { { (u32)view__s64(&v, common.pid), (u32)view__s64(&v, f->nr) },
				       (u32)view__s64(&v, file),
				       0 };
		struct best *best;

		if (!key.file)
			continue;
		ns = map__get(&f->sums, &key);
		best = map__get(&f->best, &key.call);
		if (!ns || !best)
			return -ENOMEM;
		*ns += (u64)view__s64(&v, common.time) - (u64)view__s64(&v, common.start);
		if (*ns >= best->ns)
			*best = (struct best){ *ns, key.file };
	}
	return 0;
}

/* Without family syscall, the waits that --off-cpu recorded are used. */
int cause_files__new(struct cause_files **out, const struct query *args)
{
	const char *calls = trace__has(args->trace, "syscall") ? "syscall" : "sample_off";
	const struct schema_event *e = schema__event(trace__schema(args->trace), calls);
	struct cause_files *f = calloc(1, sizeof(*f));
	int err;

	*out = f;
	if (!f)
		return -ENOMEM;
	map__init(&f->sums, sizeof(struct sum_key), sizeof(u64));
	map__init(&f->best, sizeof(struct call_key), sizeof(struct best));
	f->nr = e ? schema_event__field(e, "nr") : NULL;
	err = osrt_files__new(&f->names, args);
	return err ? err : query__read_kind(args, calls, on_calls, f);
}

void cause_files__free(struct cause_files *f)
{
	if (!f)
		return;
	osrt_files__free(f->names);
	MAPS_FREE(&f->sums, &f->best);
	free(f);
}

enum cause_kind cause_files__find(const struct cause_files *f, u32 pid, const char *call, const char **name)
{
	const struct osrt_file *t = NULL;

	*name = NULL;
	for (u32 i = 0; f->nr && i < f->best.n; i++) {
		const struct call_key *key = map__key(&f->best, i);
		const char *known = key->pid == pid ? syscalls__known_name(f->nr, key->nr) : NULL;
		u32 file = ((const struct best *)map__value(&f->best, i))->file;

		if (known && !strcmp(known, call))
			t = osrt_files__find(f->names, pid, file);
	}
	if (!t)
		return CAUSE_PEER;
	*name = osrt_files__name(f->names, t->number);
	return t->kind == SYSCALL_FILE_ANON ? CAUSE_IDLE : CAUSE_PEER;
}
