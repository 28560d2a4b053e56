// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Passes to the BPF stack walker which processes run a CPython, the addresses, and the layouts. */
#include "record/stacks/python.h"

#include "attach/steering.h"
#include "record/examine/file_facts.h"
#include "record/parts.h"
#include "record/stacks/tasks.h"
#include "util/array.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Processes whose data is not mapped yet; beyond this number BPF finds them itself. */
#define LATE_MAX     64
#define LATE_NS	     5000000000ULL
#define LATE_EACH_NS 20000000ULL

/* The largest struct of all versions, _PyRuntimeState, has half a MiB. */
#define RUNTIME_MAX (4U << 20)
#define FRAME_MAX   128
#define FILE_MAX    (1ULL << 32) /* bytes of a mapped file; no real one is nearly as large */

static bool check_layout(const void *key, const void *value)
{
	const struct python_layout *l = value;
	const u32 offsets[] = { l->interpreters, l->interp_next, l->interp_threads, l->interp_gil,
				l->runtime_gil,	 l->interp_id,	 l->interp_epoch };

	for (u32 i = 0; i < ARRAY_LEN(offsets); i++)
		if (offsets[i] > RUNTIME_MAX)
			return false;
	return l->frame_size <= FRAME_MAX && l->by_cframe <= 1;
}

STEERING(layouts) = {
	.map = "python_layouts",
	.key_size = sizeof(u32),
	.value_size = sizeof(struct python_layout),
	.once = true,
	.check = check_layout,
};

/* Checks that the addresses are in the data of a program or a library, not on its heap or stacks. */
static bool check_process(const void *key, const void *value)
{
	const struct python_process *p = value;
	u32 pid;

	memcpy(&pid, key, sizeof(pid));
	if (p->n > PYTHON_RUNTIMES)
		return false;
	for (u32 i = 0; i < p->n; i++)
		if (p->at[i].layout >= PYTHON_LAYOUTS || !steering__in_file(pid, p->at[i].runtime) ||
		    !steering__in_file(pid, p->at[i].code_type))
			return false;
	return true;
}

STEERING(processes) = {
	.map = "python_processes",
	.key_size = sizeof(u32),
	.value_size = sizeof(struct python_process),
	.check = check_process,
};

/* Checks ranges only: the BPF program checks that the addresses are in the data of the file, python__in_file(). */
static bool check_file(const void *key, const void *value)
{
	const struct python_file *f = value;

	return f->layout < PYTHON_LAYOUTS && f->runtime <= FILE_MAX && f->code_type <= FILE_MAX;
}

STEERING(files) = {
	.map = "python_files",
	.key_size = sizeof(struct python_file_key),
	.value_size = sizeof(struct python_file),
	.check = check_file,
};

/*
 * A process that the attacher refused: a program's code is mapped before its data, and its mapping is reported at
 * once.
 */
struct late {
	u32 pid;
	u64 until; /* ns: dropped after that */
	struct python_at at;
};

struct python_known {
	struct python_layout layouts[PYTHON_LAYOUTS];
	u32 n_layouts;
	u32 last_id;
	struct late late[LATE_MAX];
	u32 n_late;
	u64 late_again; /* ns: time of the next attempt */
};

struct python_known *python_known__new(void)
{
	return calloc(1, sizeof(struct python_known));
}

int mapping__bias(const struct file_facts *f, const struct mapping *m, u64 *bias)
{
	for (u32 i = 0; i < f->n_segments; i++) {
		const struct file_segment *seg = &f->segments[i];

		if (seg->offset + seg->size <= m->offset || seg->offset >= m->offset + (m->end - m->start))
			continue;
		*bias = m->start - m->offset - (seg->addr - seg->offset);
		return 0;
	}
	return -ENOENT;
}

/* Returns the layout's number in BPF, or -ENOSPC. */
static int number_of(struct session *s, const struct python_layout *l)
{
	struct python_known *known = s->python;
	int err;
	u32 i;

	for (i = 0; i < known->n_layouts; i++)
		if (!memcmp(&known->layouts[i], l, sizeof(*l)))
			return i;
	if (i == PYTHON_LAYOUTS)
		return -ENOSPC;
	err = session__map_set(s, "python_layouts", &i, l, BPF_ANY);
	if (err)
		return err;
	known->layouts[known->n_layouts++] = *l;
	return i;
}

static struct python_file_key key_of(u64 dev, u64 ino, u32 generation)
{
	return (struct python_file_key){ .dev = dev, .ino = ino, .generation = generation };
}

/* Makes the BPF programs recognize processes that run the file as soon as they do. */
static void enter_file(struct session *s, const struct mapping *m, const struct python_at *p)
{
	struct python_file_key key = key_of(m->dev, m->ino, m->generation);
	u64 base = m->start - m->offset;
	struct python_file file = {
		.runtime = p->runtime - base,
		.code_type = p->code_type - base,
		.layout = p->layout,
	}, old;

	if (bpf_map_lookup_elem(session__map_fd(s, "python_files"), &key, &old) || memcmp(&old, &file, sizeof(file)))
		session__map_set(s, "python_files", &key, &file, BPF_ANY);
}

void python__forget_file(struct session *s, u64 dev, u64 ino, u32 generation)
{
	struct python_file_key key = key_of(dev, ino, generation);

	session__map_set(s, "python_files", &key, NULL, 0);
}

/* Adds a CPython to those of the process: 0, or -EPERM if the attacher refused it. */
static int enter(struct session *s, u32 pid, const struct python_at *at)
{
	struct python_process p;

	if (bpf_map_lookup_elem(session__map_fd(s, "python_processes"), &pid, &p))
		p = (struct python_process){};
	for (u32 i = 0; i < p.n; i++)
		if (!memcmp(&p.at[i], at, sizeof(*at)))
			return 0;
	if (p.n == PYTHON_RUNTIMES)
		return 0;
	if (!p.n)
		p.id = s->python->last_id += 2;
	p.at[p.n++] = *at;
	return session__set_process(s, "python_processes", pid, &p);
}

static void enter_process(struct session *s, u32 pid, const struct python_at *at)
{
	struct python_known *known = s->python;
	u32 i = 0;

	if (!session__test_switch("refuse-python") && enter(s, pid, at) != -EPERM)
		return;
	while (i < known->n_late && (known->late[i].pid != pid || memcmp(&known->late[i].at, at, sizeof(*at))))
		i++;
	if (i < LATE_MAX)
		known->late[i] = (struct late){ .pid = pid, .until = session__now(s) + LATE_NS, .at = *at };
	if (i == known->n_late && i < LATE_MAX)
		known->n_late++;
}

void python__enter_late(struct session *s)
{
	struct python_known *known = s->python;
	u64 now = known->n_late ? session__now(s) : 0;
	u32 left = 0;

	/* each attempt is a request to the attacher, which reads the process's mappings */
	if (now < known->late_again)
		return;
	known->late_again = now + LATE_EACH_NS;

	for (u32 i = 0; i < known->n_late; i++) {
		const struct late *l = &known->late[i];

		if (now < l->until && enter(s, l->pid, &l->at) == -EPERM)
			known->late[left++] = *l;
	}
	known->n_late = left;
}

/*
 * Computes the runtime's address in the mapping, and identifies its layout. false: its stacks can't be walked, which
 * is reported once.
 */
static bool locate_runtime(struct session *s, struct file_facts *f, const struct mapping *m, struct python_at *p)
{
	const struct python_runtime *r = &f->python.runtime;
	int number;
	u64 bias;

	if (f->python.error == -ENOTSUP && !f->python.reported)
		session__warn_of(s, session__user(s, m->pid), "%s: Python stacks are not walked: %s", m->path,
				 f->python.why);
	f->python.reported |= f->python.error == -ENOTSUP;
	if (f->python.error || mapping__bias(f, m, &bias))
		return false;
	number = number_of(s, &r->layout);
	if (number < 0) {
		session__warn_of(s, session__user(s, m->pid), "%s: Python stacks are not walked: %s", m->path,
				 strerror(-number));
		return false;
	}
	*p = (struct python_at){
		.runtime = r->runtime + bias,
		.code_type = r->code_type + bias,
		.layout = number,
	};
	if (!session__test_switch("no-python-files"))
		enter_file(s, m, p);
	return true;
}

bool python__is_walked(const struct session *s)
{
	const struct program *walks = probes__program(&s->embedded.probes, "core_python_run");

	return walks && walks->enabled;
}

void python__examined(struct session *s, struct file_facts *f, const struct mapping *m)
{
	struct python_at at;

	if (python__is_walked(s))
		locate_runtime(s, f, m, &at);
}

void python__mapped(struct session *s, struct file_facts *f, const struct mapping *m)
{
	struct python_at at;

	if (!f || !locate_runtime(s, f, m, &at))
		return;
	tasks__runs_python(s, m->pid);
	if (!session__test_switch("late-python"))
		enter_process(s, m->pid, &at);
}
