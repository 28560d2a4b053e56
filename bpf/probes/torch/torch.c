// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the torch family: finds the entries and ends of operators in libtorch_cpu (docs/torch.md). */
#include "torch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/maps.h"
#include "core/stack.h"
#include "record/family.h"
#include "site/place.h"
#include "util/compare.h"
#include "torch_args.h"
#include "torch_find.h"
#include "torch_lite.h"
#include "torch_schedule.h"

/* The BPF programs that are attached. */
struct torch_programs {
	const char *op, *node, *boxed;
};

static const struct torch_programs plain = { "torch_op", "torch_node", "torch_boxed" },
				   with_stacks = { "torch_op_stacks", "torch_node_stacks", "torch_boxed_stacks" };

/* What `sites` collects. */
struct finding_sites {
	const struct torch_programs *programs;
	struct elf *elf;
	struct placer *placer;
	struct site_list *out;
	u32 functions, unplaced;
	const char *reason; /* for the first function that can't be traced, unplaced_name */
	char unplaced_name[TORCH_NAME_MAX];
};

static bool is_runtime(struct elf *elf, const char *path, bool hint)
{
	return torch_find__is_libtorch(elf) || torch_find__is_libtorch_python(elf) ||
	       shim_user__is_runtime(elf, path, hint);
}

/* cookie: of the entry. */
static int add_call(struct finding_sites *p, const struct elf_symbol *symbol, const char *program, const char *name,
		    u32 name_number, u64 cookie)
{
	struct site site = {
		.program = program,
		.name = name_number ?: site_list__name(p->out, name),
		.cookie = cookie,
	};
	const char *why;
	int err = site.name ? 0 : -ENOMEM;

	err = err ?: site_list__add_placed(p->out, p->elf, p->placer, symbol, &site, &why);
	if (err)
		return err;
	p->functions++;
	if (why && !p->unplaced++) {
		p->reason = why;
		snprintf(p->unplaced_name, sizeof(p->unplaced_name), "%s", name);
	}
	return 0;
}

/* Is the size of the result needed to count the operator's floating-point operations? */
static bool is_convolution(const char *name)
{
	const char *base = strncmp(name, "aten::", 6) ? name : name + 6;

	base += *base == '_';
	return !strncmp(base, "convolution", strlen("convolution"));
}

/*
 * The type of the operator's result; NULL: not known. Where the compiler has inlined the call that has it, the
 * operators whose floating-point operations are counted are known by name: they return tensors, but for the overloads
 * that write to an argument.
 */
static const char *result_type(struct elf *elf, const struct torch_functions *f, const struct torch_function *operator,
			       const char * name)
{
	const char *type = torch_find__result(elf, f, operator), *overload = strchr(name, '.');

	if (type || (overload && strstr(overload, "out")))
		return type;
	return strstr(name, "mm") || strstr(name, "scaled_dot_product") ? "N2at6TensorE" : NULL;
}

/* Where the tensors are that the operator is called with; 0: not known. */
static u64 arguments_cookie(struct elf *elf, const struct torch_functions *f, const struct torch_function *operator,
			    const char * name, u32 key_set)
{
	const char *result = result_type(elf, f, operator, name);
	struct torch_args args;
	u64 cookie = 0;

	if (!result || !key_set)
		return 0;
	torch_args__find(operator->parameters, torch_args__has_result(result), &args);
	if (is_convolution(name) && torch_args__results(result)) {
		cookie |= (u64)torch_args__results(result) << TORCH_RESULTS_SHIFT;
		args.number[0] = args.stack_bool;
	}
	for (u32 i = 0; i < TORCH_ARGS_REGISTERS; i++) {
		u32 shift = i < 3 ? TORCH_NUMBERS_SHIFT + 4 * i : TORCH_NUMBERS2_SHIFT + 4 * (i - 3);

		cookie |= (u64)args.kind[i] << (TORCH_KINDS_SHIFT + 2 * i) | (u64)args.number[i] << shift;
	}
	return cookie | (u64)((key_set - TORCH_KEY_SET_FIRST) / 8) << TORCH_KEY_SET_SHIFT;
}

static int add_operators(struct finding_sites *p, const struct torch_functions *f, bool all, bool shapes)
{
	u32 key_set = shapes ? torch_find__key_set(p->elf, f) : 0;
	char name[TORCH_NAME_MAX];
	int err = 0;

	for (u32 i = 0; !err && i < f->n; i++) {
		torch_find__name(p->elf, &f->operators[i], name, sizeof(name));
		if (!torch_lite__is_observed(name) || (!all && torch_lite__leaves_out(name)))
			continue;
		err = add_call(p, &f->operators[i].symbol, p->programs->op, name, 0,
			       shapes ? arguments_cookie(p->elf, f, &f->operators[i], name, key_set) : 0);
	}
	return err;
}

static u64 boxed_cookie(const struct torch_functions *f, const struct elf_symbol *boxed)
{
	u64 group = torch_find__is_clone(boxed) ? 0 : TORCH_BOXED_METHOD;

	return (group | (f->old_strings ? TORCH_BOXED_OLD_STRINGS : 0)) << COOKIE_GROUP_SHIFT;
}

static int add_boxed(struct finding_sites *p, const struct torch_functions *f)
{
	u32 name = f->n_boxed ? site_list__name(p->out, "c10::Dispatcher::callBoxed") : 0;
	int err = f->n_boxed && !name ? -ENOMEM : 0;

	for (u32 i = 0; i < f->n_boxed && !err; i++)
		err = add_call(p, &f->boxed[i], p->programs->boxed, "callBoxed", name, boxed_cookie(f, &f->boxed[i]));
	return err;
}

/*
 * Without this site a node is not joined with the operator that made it. Where the kernel can't emulate the call of
 * __tls_get_addr, which would also break a shadow stack, the site is the instruction after the call, which is
 * expensive.
 */
static int add_sequence(struct finding_sites *p, const struct torch_functions *f)
{
	struct site site = { .program = "torch_made" };
	struct torch_variable number, thread;
	bool at_call;

	if (!torch_find__variable(p->elf, &f->sequence, &number))
		return 0;
	at_call = !number.is_prefixed && !place__shadow_stack(p->elf) && placer__emulated(p->placer, number.call);
	if (elf__offset(p->elf, at_call ? number.call : number.after, &site.offset))
		return 0;
	site.cookie = (u64)number.offset << COOKIE_GROUP_SHIFT | (at_call ? 0 : TORCH_MADE_AFTER);
	if (f->thread.name && torch_find__variable(p->elf, &f->thread, &thread)) {
		s64 distance = (s64)(thread.base + thread.offset - number.base);

		site.cookie |= distance == (s16)distance ? (u64)(u16)distance << TORCH_MADE_THREAD_SHIFT : 0;
	}
	return site_list__add_site(p->out, &site);
}

static int add_node(struct finding_sites *p, const struct elf_symbol *node)
{
	return add_call(p, node, p->programs->node, "torch::autograd::Node", 0,
			(u64)torch_find__node_sequence(p->elf, node) << COOKIE_GROUP_SHIFT);
}

static int add_collectives(struct finding_sites *p)
{
	struct elf_symbol found[TORCH_COLLECTIVES];
	int err = 0;

	torch_find__collectives(p->elf, found);
	for (u32 i = 0; i < TORCH_COLLECTIVES && !err; i++)
		if (found[i].name)
			err = add_call(p, &found[i], "torch_collective", torch_find__collective(i), 0, 0);
	return err;
}

static int add_functions(struct finding_sites *p, bool all, bool shapes)
{
	struct torch_functions f;
	int err = torch_find__functions(p->elf, &f);

	err = err ?: add_operators(p, &f, all, shapes);
	err = err ?: add_boxed(p, &f);
	if (!err && f.n && f.node.name)
		err = add_node(p, &f.node);
	if (!err && f.n && f.sequence.name)
		err = add_sequence(p, &f);
	torch_functions__free(&f);
	return err;
}

static int sites(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out, char *why,
		 size_t len)
{
	struct finding_sites p = {
		.programs = s && session__option(s, "torch", "stacks") ? &with_stacks : &plain,
		.elf = elf,
		.out = out,
	};
	int err = 0;

	if (shim_user__is_runtime(elf, path, false))
		return shim_user__sites(s, elf, path, facts, out, why, len);
	p.placer = placer__new(elf, place__shadow_stack(elf));
	if (!p.placer)
		return -ENOMEM;
	if (!s || !session__option(s, "torch", "shim")) {
		err = add_functions(&p, !s || session__option(s, "torch", "all"),
				    s && session__option(s, "torch", "shapes"));
		if (!err && !p.functions && torch_find__is_libtorch(elf))
			snprintf(why, len, "PyTorch's operators are not traced: it has no functions at::_ops::*::call");
	}
	/* which the library in the process does not record */
	err = err ?: add_collectives(&p);
	if (!err && p.unplaced)
		snprintf(why, len, "%u of %u operators are not traced: %s: %s", p.unplaced, p.functions,
			 p.unplaced_name, p.reason);
	placer__free(p.placer);
	return err;
}

#define SAMPLES_MAX 4096

/* State of a recording: what the programs of some calls and hits took, by enum torch_sampled. */
struct torch_state {
	struct {
		u32 ns[SAMPLES_MAX];
		u32 n;
	} samples[TORCH_SAMPLES];
	bool is_reported;
	struct torch_schedule schedule;
};

static const struct shim_form forms[] = {
	[SHIM_TORCH_OP] = { FORM_REST(torch_op, span) },      [SHIM_TORCH_NAME] = { FORM_REST(torch_operator, event) },
	[SHIM_TORCH_NODE] = { FORM_REST(torch_node, span) },  [SHIM_TORCH_RANGE] = { FORM_REST(torch_range, span) },
	[SHIM_TORCH_COST] = { FORM_REST(torch_cost, event) }, [SHIM_TORCH_REST] = { FORM_SPAN(shim_torch_rest) },
	[SHIM_TORCH_STEP] = { FORM_REST(torch_step, span) },  [SHIM_TORCH_DROPPED] = { FORM_EVENT(shim_torch_dropped) },
	[SHIM_TORCH_STATE] = { FORM_TEXT(shim_state) },
};

static const struct shim_user shim_user = {
	.family = "torch",
	.control = "torch_control",
	SHIM_FORMS(forms),
	.state = ID_torch_shim,
	.dropped = ID_torch_dropped,
	.ended_reason = TORCH_PROCESS_ENDED,
};

static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	u32 groups = 1U << SHIM_TORCH;

	if (session__option(s, "torch", "inner"))
		groups |= 1U << SHIM_TORCH_INNER;
	if (session__option(s, "torch", "every"))
		groups |= 1U << SHIM_TORCH_EVERY;
	if (session__option(s, "torch", "shim") && shim_user__has_sites(facts))
		session__request_records(s, &shim_user, facts, m, groups);
}

static struct torch_state *state_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_torch_op));
}

static void event(struct session *s, const struct event *e, u32 size)
{
	const struct torch_sample *sample = (const struct torch_sample *)e;
	struct torch_state *state = state_of(s);

	session__note_shim(s, &shim_user, e, size);
	if (e->id == ID_torch_phase && size >= sizeof(struct torch_phase))
		torch_schedule__event(s, &state->schedule, (const struct torch_phase *)e);
	if (e->id != RAW_OF(EVENT_FAMILY(ID_torch_op)) || size < sizeof(*sample) || sample->kind >= TORCH_SAMPLES)
		return;
	if (state->samples[sample->kind].n < SAMPLES_MAX)
		state->samples[sample->kind].ns[state->samples[sample->kind].n++] = sample->ns;
}

/* The duration than which `percent` of the samples are shorter; 0: there is no sample */
static u32 quantile(struct torch_state *state, enum torch_sampled kind, u32 percent)
{
	u32 *ns = state->samples[kind].ns, n = state->samples[kind].n;

	qsort(ns, n, sizeof(*ns), compare__u32);
	return n ? ns[(u64)n * percent / 100] : 0;
}

/*
 * A call hits two probes, and half of each trap is outside of the call's own duration. With stacks, entry_ns contains
 * the walk, so it does not show whether memory was in the CPU's caches.
 */
static bool has_more_records(struct session *s)
{
	struct torch_state *state = state_of(s);
	u64 trap = session__trap_ns(s);
	struct torch_cost r = {
		.event = { .time = session__now(s), .id = ID_torch_cost },
		.own = trap,
		.hit = trap + quantile(state, TORCH_SAMPLE_HIT, 50),
	};

	if (session__option(s, "torch", "shim"))
		return shim_user__has_more(s);
	if (session__schedule(s))
		torch_schedule__finish(s, &state->schedule);
	if (state->is_reported || !state->samples[TORCH_SAMPLE_END].n || !trap)
		return false;
	r.call = 2 * trap + quantile(state, TORCH_SAMPLE_ENTRY, 50) + quantile(state, TORCH_SAMPLE_END, 50);
	if (!session__option(s, "torch", "stacks"))
		r.entry = quantile(state, TORCH_SAMPLE_ENTRY, 5);
	state->is_reported = true;
	session__emit(s, &r, sizeof(r));
	return false;
}

/* callBoxed, by which ranges are opened, and so the ends of steps are found */
static bool stays_attached(const char *program)
{
	return !strcmp(program, plain.boxed) || !strcmp(program, with_stacks.boxed);
}

static void tick(struct session *s, u64 now)
{
	if (session__option(s, "torch", "shim"))
		shim_user__tick(s, now);
	if (session__schedule(s))
		torch_schedule__tick(s, &state_of(s)->schedule, now);
}

static void end(struct session *s)
{
	torch_schedule__free(&state_of(s)->schedule);
}

FAMILY_HOST(torch_host) = {
	.name = "torch",
	.toggles = true,
	.python_option = "stacks",
	.state = sizeof(struct torch_state),
	.configure = torch_schedule__configure,
	.detaches = true,
	.stays_attached = stays_attached,
	.set_suspended = torch_schedule__set_suspended,
	.end = end,
	.event = event,
	.tick = tick,
	.has_more_records = has_more_records,
	.prepare = session__prepare_shims,
	.is_runtime = is_runtime,
	.sites = sites,
	.object_mapped = object_mapped,
	.cut = session__translate_tid,
};
