// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the torch family: finds the entries and ends of operators in libtorch_cpu (docs/torch.md). */
#include "torch.h"

#include <errno.h>
#include <stdio.h>

#include "core/maps.h"
#include "record/family.h"
#include "site/place.h"
#include "torch_find.h"
#include "torch_lite.h"

/* What `sites` collects. */
struct finding_sites {
	struct elf *elf;
	struct placer *placer;
	struct site_list *out;
	u32 functions, unplaced;
	const char *reason; /* for the first function that can't be traced, unplaced_name */
	char unplaced_name[TORCH_NAME_MAX];
};

static bool is_runtime(struct elf *elf, const char *path, bool hint)
{
	return torch_find__is_libtorch(elf);
}

/* group: for the program, in the highest bits of the cookie. */
static int add_call(struct finding_sites *p, const struct elf_symbol *symbol, const char *program, const char *name,
		    u32 name_number, u64 group)
{
	struct site site = {
		.program = program,
		.name = name_number ?: site_list__name(p->out, name),
		.cookie = group << COOKIE_GROUP_SHIFT,
	};
	const char *why;
	int err = site.name ? 0 : -ENOMEM;

	if (!err)
		err = site_list__add_placed(p->out, p->elf, p->placer, symbol, &site, &why);
	if (err)
		return err;
	p->functions++;
	if (why && !p->unplaced++) {
		p->reason = why;
		snprintf(p->unplaced_name, sizeof(p->unplaced_name), "%s", name);
	}
	return 0;
}

static int add_operators(struct finding_sites *p, const struct torch_functions *f, bool all)
{
	char name[TORCH_NAME_MAX];
	int err = 0;

	for (u32 i = 0; !err && i < f->n; i++) {
		torch_find__name(p->elf, &f->operators[i], name, sizeof(name));
		if (torch_lite__is_observed(name) && (all || !torch_lite__leaves_out(name)))
			err = add_call(p, &f->operators[i].symbol, "torch_op", name, 0, 0);
	}
	return err;
}

static int add_boxed(struct finding_sites *p, const struct torch_functions *f)
{
	u32 name = f->n_boxed ? site_list__name(p->out, "c10::Dispatcher::callBoxed") : 0;
	int err = f->n_boxed && !name ? -ENOMEM : 0;

	for (u32 i = 0; i < f->n_boxed && !err; i++)
		err = add_call(p, &f->boxed[i], "torch_boxed", "callBoxed", name, !torch_find__is_clone(&f->boxed[i]));
	return err;
}

/* Without it a node is not joined with the operator that made it. */
static int add_sequence(struct finding_sites *p, const struct elf_symbol *function)
{
	struct site site = { .program = "torch_made" };
	u32 distance;
	u64 call;

	/* the kernel emulates the call, which breaks a shadow stack */
	if (place__shadow_stack(p->elf) || !torch_find__sequence_call(p->elf, function, &call, &distance) ||
	    !placer__emulated(p->placer, call) || elf__offset(p->elf, call, &site.offset))
		return 0;
	site.cookie = (u64)distance << COOKIE_GROUP_SHIFT;
	return site_list__add_site(p->out, &site);
}

static int add_functions(struct finding_sites *p, bool all)
{
	struct torch_functions f;
	int err = torch_find__functions(p->elf, &f);

	if (!err)
		err = add_operators(p, &f, all);
	if (!err && f.n)
		err = add_boxed(p, &f);
	if (!err && f.n && f.node.name)
		err = add_call(p, &f.node, "torch_node", "torch::autograd::Node", 0, 0);
	if (!err && f.n && f.sequence.name)
		err = add_sequence(p, &f.sequence);
	torch_functions__free(&f);
	return err;
}

static int sites(struct session *s, struct elf *elf, const char *path, void *own, struct site_list *out, char *why,
		 size_t len)
{
	struct finding_sites p = { .elf = elf, .out = out };
	int err;

	p.placer = placer__new(elf, place__shadow_stack(elf));
	if (!p.placer)
		return -ENOMEM;
	err = add_functions(&p, !s || session__option(s, "torch", "all"));
	if (!err && !p.functions)
		snprintf(why, len, "PyTorch's operators are not traced: it has no functions at::_ops::*::call");
	else if (!err && p.unplaced)
		snprintf(why, len, "%u of %u operators are not traced: %s: %s", p.unplaced, p.functions,
			 p.unplaced_name, p.reason);
	placer__free(p.placer);
	return err;
}

FAMILY_HOST(torch_host) = {
	.name = "torch",
	.is_runtime = is_runtime,
	.python_option = "stacks",
	.sites = sites,
};
