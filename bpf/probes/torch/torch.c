// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the torch family: finds the entries and ends of operators in libtorch_cpu (docs/torch.md). */
#include "torch.h"

#include <errno.h>
#include <stdio.h>

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

static int add_operator(struct finding_sites *p, const struct elf_symbol *symbol, const char *name)
{
	struct site site = { .program = "torch_op", .name = site_list__name(p->out, name) };
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

static int add_operators(struct finding_sites *p, bool all)
{
	struct torch_functions f;
	char name[TORCH_NAME_MAX];
	int err = torch_find__operators(p->elf, &f);

	for (u32 i = 0; !err && i < f.n; i++) {
		torch_find__name(p->elf, &f.operators[i], name, sizeof(name));
		if (all || !torch_lite__leaves_out(name))
			err = add_operator(p, &f.operators[i].symbol, name);
	}
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
	err = add_operators(&p, !s || session__option(s, "torch", "all"));
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
