// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits what names store in a recording, which may last for days. Of texts the most recently used are stored. The
 * recording's writer stores two generations, of STRINGS_MAX texts and STRINGS_BYTES each. Generations here are twice as
 * large, so a text is stored at least as long as the writer refers to it. Of tasks all that live are stored, as far as
 * there is room.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/names_private.h"
#include "trace/strings.h"

#define TEXTS_MAX   (2 * STRINGS_MAX)
#define TEXTS_BYTES (2 * STRINGS_BYTES)
#define TASKS_MAX   131072

static void release_text(void *value)
{
	free(*(char **)value);
}

void recent_texts__init(struct recent_texts *t, size_t key_size)
{
	recent__init(&t->table, key_size, sizeof(char *), TEXTS_MAX);
	t->table.release = release_text;
	t->young_bytes = 0;
}

/* Counts a used text of len bytes; before it was used, the young generation had `before` texts. */
static void count_bytes(struct recent_texts *t, u32 before, size_t len)
{
	if (t->table.young.n > before)
		t->young_bytes += len;
	else if (t->table.young.n < before)
		t->young_bytes = 0;
	if (t->young_bytes > TEXTS_BYTES && t->table.max != ~0U) {
		recent__turn(&t->table);
		t->young_bytes = 0;
	}
}

int recent_texts__set(struct recent_texts *t, const void *key, const char *text, u32 len)
{
	u32 before = t->table.young.n;
	char *copy = strndup(text, len), **slot = copy ? recent__get(&t->table, key) : NULL;

	if (!slot) {
		free(copy);
		return -ENOMEM;
	}
	free(*slot);
	*slot = copy;
	count_bytes(t, before, len);
	return 0;
}

int recent_texts__feed(struct recent_texts *t, const void *key, const struct view *v)
{
	u32 len;
	const char *text = view__text(v, schema_event__field(v->event, "text"), &len);

	return recent_texts__set(t, key, text, len);
}

const char *recent_texts__find(const struct recent_texts *t, const void *key)
{
	char **text = recent__peek(&t->table, key);

	return text ? *text : NULL;
}

const char *recent_texts__use(struct recent_texts *t, const void *key)
{
	u32 before = t->table.young.n;
	char **text = recent__find(&t->table, key);

	/* recent__find() has moved the text to the young generation, so *text stays valid if that becomes the old */
	if (text)
		count_bytes(t, before, strlen(*text));
	return text ? *text : NULL;
}

static u64 last_seen(const struct named_task *t)
{
	u64 last = t->first_fed > t->named ? t->first_fed : t->named;

	return last > t->imaged ? last : t->imaged;
}

/* Living tasks first, then those with the latest event */
static int by_use(const void *a, const void *b)
{
	const struct named_task *x = *(struct named_task *const *)a, *y = *(struct named_task *const *)b;
	u64 at = last_seen(x), other = last_seen(y);

	if (!x->task.end != !y->task.end)
		return x->task.end ? 1 : -1;
	return at > other ? -1 : at < other;
}

void names__bound_tasks(struct names *n)
{
	struct named_task **list;
	u32 count = n->tasks.n;

	if (n->trace || count < TASKS_MAX)
		return;
	list = calloc(count, sizeof(struct named_task *));
	if (!list)
		return;
	for (u32 i = 0; i < count; i++)
		list[i] = map__value(&n->tasks, i);
	qsort(list, count, sizeof(struct named_task *), by_use);
	for (u32 i = TASKS_MAX / 2; i < count; i++)
		map__remove(&n->tasks, &(struct task_key){ list[i]->task.pid, list[i]->task.tid });
	free(list);
}
