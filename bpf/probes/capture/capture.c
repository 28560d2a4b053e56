// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of capture ranges. What their records mean: user/record/capture.c. */
#include "capture.h"

#include <bpf/bpf.h>
#include <string.h>

#include "core/shim.h"
#include "record/family.h"
#include "util/array.h"
#include "util/glob.h"

/* The ranges of NVTX that are followed; NULL: none */
static const struct capture_range *nvtx_range(struct session *s)
{
	const struct capture_range *c = session__capture(s);

	return session__step_range(s) ?: c && c->is_nvtx ? c : NULL;
}

static bool needs_program(struct session *s, const char *program)
{
	const struct capture_range *c = session__capture(s);

	/* all of them in a trial of the family */
	if (!c && !session__step_range(s))
		return true;
	return !strcmp(program, "capture_nvtx") || !strcmp(program, "capture_control") ? nvtx_range(s) != NULL :
											 c && !c->is_nvtx;
}

static int configure(struct session *s)
{
	const struct capture_range *c = session__capture(s);
	bool steps = session__step_range(s);
	u32 max = c ? c->max : 0;

	return session__set_variable(s, "capture_max", &max, sizeof(max)) ?:
		       session__set_variable(s, "capture_steps", &steps, sizeof(steps));
}

static void prepare(struct session *s)
{
	const struct capture_range *c = nvtx_range(s);
	const char *patterns[] = { c ? c->name : "", c ? c->domain : "" };
	static struct glob glob; /* large */

	for (u32 i = 0; c && i < ARRAY_LEN(patterns); i++)
		if (glob__compile(&glob, patterns[i], GLOB_STEPS) ||
		    bpf_map_update_elem(session__map_fd(s, "capture_globs"), &i, &glob, BPF_ANY))
			session__warn(s, "the pattern '%s' can't be set: no range of NVTX matches it", patterns[i]);
	if (c)
		session__prepare_shims(s);
}

static void ended(struct session *s, u32 pid)
{
}

static const struct shim_user user = { .family = "capture", .control = "capture_control", .ended = ended };

static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	if (nvtx_range(s))
		session__request_records(s, &user, facts, m, 1U << SHIM_RANGES);
}

FAMILY_HOST(capture_host) = {
	.name = "capture",
	.needs_program = needs_program,
	.configure = configure,
	.prepare = prepare,
	.is_runtime = shim_user__is_runtime,
	.sites = shim_user__sites,
	.object_mapped = object_mapped,
	.tick = shim_user__tick,
	.has_more_records = shim_user__has_more,
};
