// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Imports of modules: their share of the time, the module that took longest and the code that imported it. These are
 * taken from the events of imports; without such events, from samples and waits with importlib on the stack.
 */
#include "findings/import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/span_sums.h"
#include "output/text.h"
#include "util/map.h"

static bool is_import(const struct stack_frame *f)
{
	const char *dot = strrchr(f->name, '.'), *name = dot ? dot + 1 : f->name;

	/* newer Pythons have qualified names; programs call exec_module to load a file as a module */
	return (!strcmp(name, "_find_and_load") || !strcmp(name, "exec_module")) &&
	       !strncmp(f->file, "<frozen importlib", 17);
}

/*
 * The body of the module that the outermost import of a stack runs, and whether that module called the user's functions
 */
struct import_stack {
	bool is_import;
	u32 module; /* frame, 0: it was not running yet */
};

static struct import_stack import_stack__of(const struct stacks *stacks, u32 stack)
{
	struct import_stack s = { 0 };
	const struct stack_frame *f;
	bool calls_user = false;
	u32 module = 0;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller) {
		if (f->kind != FRAME_PYTHON)
			continue;
		if (is_import(f)) {
			/* functions of the user that a module's body calls do not count as an import */
			s = (struct import_stack){ !calls_user, module };
		} else if (!strcmp(f->name, "<module>")) {
			module = at;
		} else {
			calls_user = calls_user || stack_frame__is_own(f);
		}
	}
	return s;
}

/* "numpy" of ".../site-packages/numpy/core/__init__.py" */
static void module_name(const char *file, char *buf, size_t size)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	const char *name = strrchr(file, '/'), *end;

	name = name ? name + 1 : file;
	if (!strncmp(name, "__init__.", 9) && name - file > 1)
		for (name--; name > file && name[-1] != '/';)
			name--;
	for (size_t i = 0; i < 2; i++) {
		const char *folder = strstr(file, folders[i]);

		name = folder ? folder + strlen(folders[i]) : name;
	}
	end = name + strcspn(name, "/");
	if (end - name > 3 && !strncmp(end - 3, ".py", 3))
		end -= 3;
	snprintf(buf, size, "%.*s", (int)(end - name), name);
}

struct module_key {
	char name[64];
};

/* The time that one process spent in imports */
struct import_sums {
	struct map modules; /* struct module_key -> u64: ns */
	struct map lines; /* u32 frame of the user's code -> struct line_sum */
};

struct line_sum {
	u64 ns;
	u32 stack;
};

static int add(struct import_sums *s, const struct finding_input *in, u32 stack, const struct import_stack *import,
	       u64 ns)
{
	const struct stack_frame *module = stacks__frame(in->stacks, import->module);
	u32 user = stack_parts__of(in->stacks, stack).user;
	struct line_sum *line = map__get(&s->lines, &user);
	struct module_key key = { 0 };
	u64 *sum;

	if (!line)
		return -ENOMEM;
	line->ns += ns;
	line->stack = stack;
	if (!module)
		return 0;
	module_name(module->file, key.name, sizeof(key.name));
	sum = map__get(&s->modules, &key);
	if (!sum)
		return -ENOMEM;
	*sum += ns;
	return 0;
}

static int add_samples(struct import_sums *s, const struct finding_input *in, u32 pid, struct imported *imported)
{
	const struct profile *p = in->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->samples.n; i++) {
		const struct profile_sample_key *key = map__key(&p->samples, i);
		const struct profile_sample *sample = map__value(&p->samples, i);
		struct import_stack import;

		if (key->thread.pid != pid)
			continue;
		imported->all_ns += sample->ns;
		import = import_stack__of(in->stacks, key->stack);
		if (!import.is_import)
			continue;
		imported->sampled_ns += sample->ns;
		err = add(s, in, key->stack, &import, sample->ns);
	}
	return err;
}

static void find_most(const struct import_sums *s, struct imported *imported)
{
	u64 most = 0;

	for (u32 i = 0; i < s->modules.n; i++) {
		u64 ns = *(const u64 *)map__value(&s->modules, i);

		if (ns <= most)
			continue;
		most = ns;
		snprintf(imported->module, sizeof(imported->module), "%s",
			 ((const struct module_key *)map__key(&s->modules, i))->name);
	}
	imported->module_ns = most;
	most = 0;
	MAP_EACH(const struct line_sum *line, &s->lines) {
		if (line->ns <= most)
			continue;
		most = line->ns;
		imported->stack = line->stack;
	}
}

int imported__of(struct imported *imported, const struct finding_input *in, u32 pid)
{
	struct import_sums s;
	int err;

	memset(imported, 0, sizeof(*imported));
	map__init(&s.modules, sizeof(struct module_key), sizeof(u64));
	map__init(&s.lines, sizeof(u32), sizeof(struct line_sum));
	err = add_samples(&s, in, pid, imported);
	if (!err)
		find_most(&s, imported);
	MAPS_FREE(&s.modules, &s.lines);
	return err;
}

/* The sampled time of one thread */
struct thread_samples {
	u64 imports, total; /* ns */
	u64 on_cpu; /* ns on a CPU, or preempted */
};

static void add_on_cpu(const struct profile *p, u32 pid, struct map *threads)
{
	for (u32 i = 0; i < p->cells.n; i++) {
		const struct profile_key *key = profile__key(p, i);
		/* a thread that was runnable after a wait was not importing before */
		bool on_cpu = key->state == ACTIVITY_RUNNING ||
			      (key->state == ACTIVITY_RUNNABLE && key->reason >= ACTIVITY_CAUSE_BASE);
		struct thread_samples *s = on_cpu && key->thread.pid == pid ? map__find(threads, &key->thread) : NULL;

		if (s)
			s->on_cpu += profile__cell(p, i)->ns;
	}
}

/* Time on a CPU of one thread, or waiting for one; 0: the thread imported hardly anything. */
static u64 import_time(const struct finding_input *in, struct thread_key thread, const struct thread_samples *s)
{
	const struct profile_thread *t = map__find(&in->profile->threads, &thread);
	u64 ns = t && s->total ? (u64)((double)s->on_cpu * (double)s->imports / (double)s->total) : 0;

	return t && ns >= t->wall / SPAN_SHARE_MIN ? ns : 0;
}

int imported__add_times(const struct finding_input *in, struct finding *f)
{
	const struct profile *p = in->profile;
	struct map threads;
	int err = 0;

	map__init(&threads, sizeof(struct thread_key), sizeof(struct thread_samples));
	for (u32 i = 0; !err && i < p->samples.n; i++) {
		const struct profile_sample_key *key = map__key(&p->samples, i);
		const struct profile_sample *sample = map__value(&p->samples, i);
		struct thread_samples *s = key->thread.pid == f->pid ? map__get(&threads, &key->thread) : NULL;

		if (key->thread.pid != f->pid)
			continue;
		if (!s) {
			err = -ENOMEM;
			break;
		}
		s->total += sample->ns;
		s->imports += import_stack__of(in->stacks, key->stack).is_import ? sample->ns : 0;
	}
	f->lost_ns = f->wall_ns = f->threads = 0;
	add_on_cpu(p, f->pid, &threads);
	for (u32 i = 0; !err && i < threads.n; i++) {
		const struct thread_key *thread = map__key(&threads, i);
		u64 ns = import_time(in, *thread, map__value(&threads, i));

		if (!ns)
			continue;
		f->threads++;
		f->lost_ns += ns;
		f->wall_ns += ((const struct profile_thread *)map__find(&p->threads, thread))->wall;
	}
	map__free(&threads);
	return err;
}

void imported__complete(const struct finding_input *in, const struct imported *imported, struct finding *f)
{
	snprintf(f->report, sizeof(f->report), "lines");
	f->kind = FINDING_IMPORT;
	f->confidence = FINDING_ATTRIBUTED;
	finding_code__fill(&f->code, in->stacks, imported->stack);
	*f->detail = *f->call = *f->object = '\0';
	if (imported->module_ns)
		snprintf(f->object, sizeof(f->object), "most of it `%s`", imported->module);
}

static int complete(const struct finding_input *in, const struct span_sum *s, struct finding *f)
{
	(void)in;
	snprintf(f->report, sizeof(f->report), "imports");
	snprintf(f->object, sizeof(f->object), "%s", s->name);
	snprintf(f->detail, sizeof(f->detail), "`import %s` took %s", s->name, TEXT_NS(s->longest));
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return span_sums__find(in, "python_import", FINDING_IMPORT, complete, NULL, out);
}

FINDINGS(import) = { .name = "import", .find = find };
