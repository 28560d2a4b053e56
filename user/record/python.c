// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tells the walker in BPF which processes run a CPython, where, and how it is laid out. */
#include "python/layouts.h"
#include "record/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What was found of each file is asked for again with each process; one session at a time records. */
static struct {
	struct python_layout layouts[PYTHON_LAYOUTS];
	u32 n_layouts;
	u32 last_id;
} known;

int mapping__bias(struct elf *elf, const struct mapping *m, u64 *bias)
{
	u64 addr, size, offset;

	for (u32 i = 0; elf__text(elf, i, &addr, &size); i++) {
		if (elf__offset(elf, addr, &offset) || offset + size <= m->offset ||
		    offset >= m->offset + (m->end - m->start))
			continue;
		*bias = m->start - m->offset - (addr - offset);
		return 0;
	}
	return -ENOENT;
}

/* The layout's number in BPF, or -ENOSPC. */
static int number_of(struct session *s, const struct python_layout *l)
{
	u32 i;
	int fd = session__map_fd(s, "python_layouts");

	for (i = 0; i < known.n_layouts; i++)
		if (!memcmp(&known.layouts[i], l, sizeof(*l)))
			return i;
	if (i == PYTHON_LAYOUTS)
		return -ENOSPC;
	if (bpf_map_update_elem(fd, &i, l, BPF_ANY))
		return -errno;
	known.layouts[known.n_layouts++] = *l;
	return i;
}

void python__mapped(struct session *s, struct elf *elf, const struct mapping *m)
{
	struct python_process p = {}, old;
	struct python_runtime r = {};
	char why[160] = "";
	u64 bias;
	int fd, err;

	err = python__identify(elf, &r, why, sizeof(why));
	if (err == -ENOTSUP)
		session__warn(s, "%s: Python stacks are not walked: %s", m->path, why);
	if (err || mapping__bias(elf, m, &bias))
		return;
	err = number_of(s, &r.layout);
	if (err < 0) {
		session__warn(s, "%s: Python stacks are not walked: %s", m->path, strerror(-err));
		return;
	}
	p.layout = err;
	p.runtime = r.runtime + bias;
	p.code_type = r.code_type + bias;
	fd = session__map_fd(s, "python_processes");
	/* several families hear of one mapping */
	if (!bpf_map_lookup_elem(fd, &m->pid, &old) && old.runtime == p.runtime)
		return;
	p.id = known.last_id += 2;
	bpf_map_update_elem(fd, &m->pid, &p, BPF_ANY);
}
