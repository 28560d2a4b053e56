// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/merge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/map.h"

/*
 * Findings of several processes of a user with the same key are merged, such as those of a server's workers. Keys are
 * compared as bytes, so those after the end of a text must be 0.
 */
struct code_key {
	u32 kind;
	u32 user; /* names__user() */
	char function[sizeof(((struct finding_code *)0)->function)];
	char file[sizeof(((struct finding_code *)0)->file)];
	char counterpart[sizeof(((struct finding_code *)0)->function)];
};

/* Retains the call with more time. */
static void merge_calls(struct finding *into, const struct finding *f)
{
	bool same = !strcmp(into->call, f->call);

	if (!same && f->call_ns > into->call_ns) {
		memcpy(into->call, f->call, sizeof(into->call));
		into->calls = f->calls;
	} else if (!same)
		return;
	into->call_ns = f->call_ns + (same ? into->call_ns : 0);
	into->call_times = f->call_times + (same ? into->call_times : 0);
}

static void merge_callers(struct finding_code *into, const struct finding_code *code)
{
	if (strcmp(into->caller, code->caller))
		*into->caller = '\0';
	if (into->caller_percent > code->caller_percent)
		into->caller_percent = code->caller_percent;
}

/* into->lost_ns is already the sum of both. Fields in which the processes differ are cleared. */
static void merge_counterparts(struct finding *into, const struct finding *f)
{
	struct finding_counterpart *counterpart = &into->counterpart;
	double part = into->lost_ns ? (double)f->lost_ns / (double)into->lost_ns : 0;
	bool own = counterpart->pid == into->pid && f->counterpart.pid == f->pid;

	if ((!own && counterpart->pid != f->counterpart.pid && !*counterpart->code.function) ||
	    strcmp(counterpart->code.native, f->counterpart.code.native)) {
		*counterpart = (struct finding_counterpart){ 0 };
		return;
	}
	if (!own && counterpart->pid != f->counterpart.pid)
		counterpart->pid = 0;
	if (!counterpart->pid || counterpart->tid != f->counterpart.tid)
		counterpart->tid = 0;
	if (counterpart->code.line != f->counterpart.code.line)
		counterpart->code.line = 0;
	merge_callers(&counterpart->code, &f->counterpart.code);
	if (strcmp(counterpart->activity, f->counterpart.activity)) {
		*counterpart->activity = '\0';
		counterpart->activity_code = (struct finding_code){ 0 };
	}
	counterpart->percent += (f->counterpart.percent - counterpart->percent) * part;
	counterpart->cpus_percent += (f->counterpart.cpus_percent - counterpart->cpus_percent) * part;
}

/*
 * Of details that differ, the text before the colon is kept if it is the same and has no figures: of "many small round
 * trips: 42%" the words.
 */
static void merge_details(struct finding *into, const struct finding *f)
{
	size_t len = strcspn(f->detail, ":");

	if (!strcmp(into->detail, f->detail))
		return;
	if (strcspn(into->detail, ":") != len || memcmp(into->detail, f->detail, len))
		len = 0;
	/* digits are figures */
	if (strcspn(f->detail, "0123456789") < len)
		len = 0;
	into->detail[len] = '\0';
}

/* What is stated of a finding stays true if another one that is merged into it has less than this part of its time. */
#define LITTLE_PART 4

static void merge(struct finding *into, const struct finding *f)
{
	bool is_little = f->lost_ns < into->lost_ns / LITTLE_PART;

	into->processes += f->processes;
	into->threads += f->threads;
	into->lost_ns += f->lost_ns;
	into->wall_ns += f->wall_ns;
	into->times += f->times;
	into->delay_ns += f->delay_ns;
	into->ran_ns += f->ran_ns;
	into->in_code_ns += f->in_code_ns;
	merge_calls(into, f);
	/* waits for something to do cost no more if more processes wait: the longest counts, as among threads */
	into->weight = !into->is_background || !f->is_background ? into->weight + f->weight :
		       into->weight > f->weight			 ? into->weight :
								   f->weight;
	into->is_background = into->is_background && f->is_background;
	into->tid = 0;
	if (f->confidence > into->confidence)
		into->confidence = f->confidence;
	into->words = is_little || into->words == f->words ? into->words : NULL;
	merge_callers(&into->code, &f->code);
	merge_counterparts(into, f);
	if (!is_little)
		merge_details(into, f);
	if (strcmp(into->advice, f->advice))
		*into->advice = '\0';
	if (strcmp(into->report, f->report))
		*into->report = '\0';
	if (strcmp(into->object, f->object))
		*into->object = '\0';
}

/* Returns the finding among the `kept` first ones of the list that f is to be merged with; NULL: none. */
static struct finding *same_as(struct finding *list, struct map *codes, const struct names *names,
			       const struct finding *f, u32 kept, bool *failed)
{
	/* two workers that compute are merged, also if one of them mostly waited for a CPU (FINDING_CPU) */
	struct code_key key = { .kind = f->kind == FINDING_CPU && f->ran_ns ? FINDING_COMPUTE : f->kind,
				.user = names ? names__user(names, f->pid) : 0 };
	const char *object = strrchr(f->code.native, '(');
	u32 *number;

	/* of several jobs each has its slow rank */
	if (f->kind == FINDING_STRAGGLER)
		return NULL;
	/* processes of one native program that compute are one finding, regardless of the functions that do so */
	if (!*f->code.function && (key.kind != FINDING_COMPUTE || !object))
		return NULL;
	snprintf(key.function, sizeof(key.function), "%s", *f->code.function ? f->code.function : object);
	snprintf(key.file, sizeof(key.file), "%s", *f->code.function ? f->code.file : "");
	snprintf(key.counterpart, sizeof(key.counterpart), "%s", f->counterpart.code.function);
	number = map__get(codes, &key);
	if (!number) {
		*failed = true;
		return NULL;
	}
	/* merging may have changed the counterpart of that finding */
	if (*number && !strcmp(list[*number - 1].counterpart.code.function, f->counterpart.code.function))
		return list[*number - 1].pid == f->pid ? NULL : &list[*number - 1];
	*number = kept + 1;
	return NULL;
}

int finding__merge(struct finding *list, u32 *n, const struct names *names)
{
	u32 kept = 0;
	struct map codes;
	bool failed = false;

	map__init(&codes, sizeof(struct code_key), sizeof(u32));
	for (u32 i = 0; i < *n; i++) {
		struct finding *same = same_as(list, &codes, names, &list[i], kept, &failed);

		if (same)
			merge(same, &list[i]);
		else
			list[kept++] = list[i];
	}
	map__free(&codes);
	*n = kept;
	return failed ? -ENOMEM : 0;
}
