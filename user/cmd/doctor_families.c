// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports which families of probes are usable, and what a hit of each costs here. */
#include "cmd/doctor.h"

#include "record/calibrate.h"
#include "record/refused.h"
#include "util/test_switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct column family_columns[] = {
	{ "name", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "usable", "Usable", VALUE_TEXT, SHOW_PLAIN },
	{ "by_default", "Default", VALUE_TEXT, SHOW_PLAIN },
	{ "hit_ns", "Cost per hit (ns)", VALUE_U64, SHOW_COUNT },
	{ "foreign_hit_ns", "If not followed (ns)", VALUE_U64, SHOW_COUNT },
	{ "measured", "Measured", VALUE_TEXT, SHOW_PLAIN },
	{ "hit", "Where it hits", VALUE_TEXT, SHOW_PLAIN },
	{ "why", "Why not, or what it traces", VALUE_TEXT, SHOW_PLAIN },
};

/* Costs in ns from docs/design.md, "Cost", for what cannot be measured here. */
#define DOCUMENTED_HIT_NS     300
#define DOCUMENTED_FOREIGN_NS 10

/* Results of trying the BPF programs. */
struct trial_costs {
	struct family_cost costs[FAMILY_MAX];
	struct family_refusal refusals[FAMILY_MAX];
	char failed[512]; /* why nothing could be tried; "" if it was */
};

/* How many probes of each kind a family has. */
struct kinds {
	u32 calls, entries, tracepoints;
};

static struct kinds kinds_of(const struct doctor *d, const struct schema_family *f)
{
	struct kinds k = {};

	for (u32 i = 0; i < d->embedded.probes.n_programs; i++) {
		const struct program *p = &d->embedded.probes.programs[i];

		if (p->family != f)
			continue;
		k.calls += p->section.kind == SECTION_SPAN;
		k.entries += p->section.kind == SECTION_ENTRY || p->section.kind == SECTION_PLACED ||
			     p->section.kind == SECTION_SITE;
		k.tracepoints += p->section.kind == SECTION_TRACEPOINT;
	}
	return k;
}

/* Loads and runs the programs of all families together, as a recording does. */
static void try_programs(struct doctor *d, struct trial_costs *t)
{
	const struct schema *schema = d->embedded.schema;
	char all[512] = "", err[600];
	size_t used = 0;

	if (!d->allowed || !d->features.btf || test_switch__is_set("no-trial"))
		return;
	for (u32 i = 0; i < schema->n_families; i++)
		if (schema->families[i].id && used < sizeof(all))
			used += snprintf(all + used, sizeof(all) - used, "%s%s", used ? "," : "",
					 schema->families[i].name);
	if (calibrate__families(&d->features, all, t->costs, t->refusals, err, sizeof(err)))
		snprintf(t->failed, sizeof(t->failed), "%.*s", (int)strcspn(err, "\n"), err);
}

/* Returns the text for column "Usable"; why gets the reason unless the family is fully usable. */
static const char *judge(const struct doctor *d, const struct schema_family *f, const struct trial_costs *t, char *why,
			 size_t len)
{
	*why = '\0';
	if (!d->features.bpf) {
		bool denied = d->features.error == -EPERM || d->features.error == -EACCES;

		snprintf(why, len, "%s",
			 denied ? "this user may not load BPF programs" : "BPF programs cannot be loaded");
		return denied ? "not allowed" : "no";
	}
	if (!d->features.btf) {
		snprintf(why, len, "no BTF");
		return "no";
	}
	if (d->other_pids) {
		snprintf(why, len, "processes have other numbers here than in the kernel");
		return "no";
	}
	if (*t->failed) {
		snprintf(why, len, "%s", t->failed);
		return "no";
	}
	if (t->refusals[f->id].programs) {
		snprintf(why, len, "%s", t->refusals[f->id].text);
		return t->refusals[f->id].is_whole_family ? "no" : "partly";
	}
	for (u32 i = 0; i < d->embedded.probes.n_programs; i++) {
		const struct program *p = &d->embedded.probes.programs[i];

		if (p->family != f)
			continue;
		if (p->section.kind == SECTION_TRACEPOINT && !features__tracepoint(p->section.rest) &&
		    !refused__is_optional(p)) {
			snprintf(why, len, "this kernel has no tracepoint %s", p->section.rest);
			return "partly";
		}
		if (p->section.kind == SECTION_SPAN && !(d->features.returns && d->features.session)) {
			snprintf(why, len, "%s",
				 d->features.returns ? "durations only with -p" : "no durations: see returns");
			return "partly";
		}
	}
	return "yes";
}

static void add_family(struct doctor *d, struct table *table, const struct schema_family *f,
		       const struct trial_costs *t)
{
	const struct kinds k = kinds_of(d, f);
	const struct family_cost *c = &t->costs[f->id];
	u64 trap = k.calls ? d->features.span_ns ?: d->features.entry_ns : d->features.entry_ns;
	bool traps = k.calls || k.entries;
	u64 foreign;
	char why[512], hit[128];
	const char *usable = judge(d, f, t, why, sizeof(why));

	d->families++;
	d->usable += !strcmp(usable, "yes") ? 2 : !strcmp(usable, "partly");
	snprintf(hit, sizeof(hit), "%s%s",
		 k.calls   ? "call with its return" :
		 k.entries ? "probe site in a program" :
			     "",
		 traps && k.tracepoints ? ", kernel tracepoints too" :
		 k.tracepoints		? "kernel tracepoints" :
					  "");
	if (!traps && !c->followed)
		trap = DOCUMENTED_HIT_NS;
	else if (!traps)
		trap = c->followed;
	foreign = c->foreign ?: k.tracepoints ? DOCUMENTED_FOREIGN_NS : 0;
	table__add(table, V_TEXT(f->name), V_TEXT(usable), V_TEXT(f->by_default ? "yes" : "with -t"),
		   trap ? V_U64(trap) : V_NONE, foreign ? V_U64(foreign) : V_NONE,
		   V_TEXT(!trap			 ? "no" :
			  (traps || c->followed) ? "here" :
						   "elsewhere"),
		   V_TEXT(hit), V_TEXT(*why ? why : f->doc));
}

void doctor__families(struct doctor *d)
{
	struct table *table = REPORT_TABLE(&d->out, "families", "Families of probes", family_columns);
	struct trial_costs *t = calloc(1, sizeof(*t));
	const struct schema *schema = d->embedded.schema;

	if (!t) {
		d->out.failed = true;
		return;
	}
	try_programs(d, t);
	for (u32 i = 0; i < schema->n_families; i++)
		if (schema->families[i].id)
			add_family(d, table, &schema->families[i], t);
	report_output__note(
		&d->out,
		"A hit: of a probe site or a call, what an empty program costs there, without the work of the family's "
		"program; of a tracepoint, the time of the family's program, averaged over a mix of its events. Not followed: "
		"the same for a thread that sonde does not follow. Some 20 ns of each are the measurement. \"Elsewhere\": it "
		"could not be measured here, and the figure is from docs/design.md, \"Cost\".");
	free(t);
}
