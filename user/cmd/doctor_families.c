// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports which families of probes are usable, and what a hit of each costs here. */
#include "cmd/doctor.h"

#include "record/load/refused.h"
#include "record/load/try_families.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct column family_columns[] = {
	{ "name", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "usable", "Usable", VALUE_TEXT, SHOW_PLAIN },
	{ "by_default", "Default", VALUE_TEXT, SHOW_PLAIN },
	{ "hit_ns", "Cost per hit (ns)", VALUE_U64, SHOW_COUNT },
	{ "hit", "Where it hits", VALUE_TEXT, SHOW_PLAIN },
	{ "why", "Why not, or what it traces", VALUE_TEXT, SHOW_PLAIN },
};

/* How many probes of each kind a family has. */
struct kinds {
	u32 calls, entries, tracepoints;
};

static struct kinds kinds_of(const struct doctor *d, const struct schema_family *f)
{
	struct kinds k = {};

	PROGRAMS_EACH(p, &d->embedded.probes) {
		if (p->family != f)
			continue;
		k.calls += p->section.kind == SECTION_SPAN;
		k.entries += p->section.kind == SECTION_ENTRY || p->section.kind == SECTION_PLACED ||
			     p->section.kind == SECTION_SITE;
		k.tracepoints += p->section.kind == SECTION_TRACEPOINT;
	}
	return k;
}

/* Returns the text for column "Usable"; why gets the reason unless the family is fully usable. */
static const char *judge(const struct doctor *d, const struct schema_family *f, const struct families_tried *t,
			 char *why, size_t len)
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
	if (t && *t->failed) {
		snprintf(why, len, "%s", t->failed);
		return "no";
	}
	if (t && t->refusals[f->id].programs) {
		snprintf(why, len, "%s", t->refusals[f->id].text);
		return t->refusals[f->id].is_whole_family ? "no" : "partly";
	}
	PROGRAMS_EACH(p, &d->embedded.probes) {
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
		       const struct families_tried *t)
{
	const struct kinds k = kinds_of(d, f);
	bool traps = k.calls || k.entries;
	u64 ns = k.calls && d->features.span_ns ? d->features.span_ns : traps ? d->features.entry_ns : 0;
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
	table__add(table, V_TEXT(f->name), V_TEXT(usable), V_TEXT(f->by_default ? "yes" : "with -t"),
		   ns ? V_U64(ns) : V_NONE, V_TEXT(hit), V_TEXT(*why ? why : f->doc));
}

void doctor__families(struct doctor *d)
{
	struct table *table = REPORT_TABLE(&d->out, "families", "Families of probes", family_columns);
	const struct schema *schema = d->embedded.schema;
	bool is_tried = d->allowed && d->features.btf;
	struct families_tried *t = is_tried ? families__try(&d->features) : NULL;

	d->out.failed |= is_tried && !t;
	for (u32 i = 0; i < schema->n_families; i++)
		if (schema->families[i].id)
			add_family(d, table, &schema->families[i], t);
	report_output__note(
		&d->out,
		"A hit of a probe site or a call: what an empty program costs there, without the work of the family's program. "
		"A recording prints at its end what all of its hits cost; docs/design.md, \"Cost\", has figures of "
		"tracepoints.");
	families_tried__free(t);
}
