// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/profiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/value.h"
#include "model/gil.h"
#include "output/text.h"
#include "probes/sample/sample.h"
#include "util/saturate.h"

static const struct profile_kind kinds[PROFILES] = {
	{ "on-cpu", "On-CPU", "sample_cpu", "stack", PROFILE_EVENTS, "time on a CPU, by samples: record with -F HZ" },
	{ "off-cpu", "Off-CPU", "sample_off", "stack", PROFILE_EVENTS, "time off the CPU: record with --off-cpu" },
	{ "gil-wait", "GIL wait", "gil_wait", "stack", PROFILE_GIL_WAITS,
	  "waits for the GIL by what waited (family gil)" },
	{ "gil-blame", "GIL blame", "gil_wait", "stack", PROFILE_GIL_SEGMENTS,
	  "waits for the GIL by what waited, and above it, upside down, what held it (family gil)" },
	{ "torch", "PyTorch", "torch_op", "stack", PROFILE_TORCH,
	  "time of PyTorch's operators, backward nodes and ranges, without the calls within (family torch)" },
};

static const struct schema_field *stack_field(const struct schema_event *e, const char *name)
{
	for (u32 i = 0; e && i < e->n; i++)
		if (field__is_stack(&e->fields[i]) && (!name || !strcmp(e->fields[i].name, name)))
			return &e->fields[i];
	return NULL;
}

/* Returns the kind that "KIND" or "KIND:FIELD" names, if the trace has it and it has stacks. */
static const struct schema_event *find_event(const struct schema *s, const char *option,
					     const struct schema_field **field)
{
	const char *colon = strchr(option, ':');
	const struct schema_event *e;
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)(colon ? colon - option : (long)strlen(option)), option);
	e = schema__event(s, name);
	*field = stack_field(e, colon ? colon + 1 : NULL);
	/* Metadata is excluded: a frame refers to stacks, but is no event with one. */
	return *field && EVENT_FAMILY(e->id) ? e : NULL;
}

static bool is_kind(const char *option)
{
	for (u32 i = 0; i < PROFILES; i++)
		if (!strcmp(kinds[i].name, option))
			return true;
	return false;
}

int profiles__check(struct export *e)
{
	const struct schema *s = trace__schema(e->trace);
	struct text_buffer why = { .buf = e->why, .size = sizeof(e->why) };
	const struct schema_field *field;

	if (!e->choice || is_kind(e->choice) || find_event(s, e->choice, &field))
		return 0;
	text__add(&why, "--event '%s' has no stacks; what has:", e->choice);
	for (u32 i = 0; i < PROFILES; i++)
		text__add(&why, " %s", kinds[i].name);
	for (u32 i = 0; i < s->n_events; i++)
		if (EVENT_FAMILY(s->events[i].id) && stack_field(&s->events[i], NULL))
			text__add(&why, " %s", s->events[i].name);
	return -EINVAL;
}

/* Returns the field with the weight of an event without a duration: a sample's period. */
static const struct schema_field *period_field(const struct schema_event *e)
{
	const struct schema_field *f = schema_event__field(e, "period");

	return f && !strcmp(f->unit, "ns") ? f : NULL;
}

static int add_profile(struct profiles *p, const struct profile_kind *kind, bool lines)
{
	struct stack_profile *new = &p->list[p->n++];
	const struct schema_event *e = schema__event(trace__schema(p->e->trace), kind->event);
	const struct schema_field *stack = stack_field(e, kind->stack);

	*new = (struct stack_profile){ .kind = *kind };
	if (stack || (e && kind->from == PROFILE_TORCH)) {
		new->event = e;
		new->stack = stack;
		new->reason = kind->event && !strcmp(kind->event, "sample_off") ? schema_event__field(e, "reason") :
										  NULL;
		new->period = e->is_span ? NULL : period_field(e);
		new->in_ns = e->is_span || new->period;
	}
	return call_tree__init(&new->tree, &p->functions, lines);
}

int profiles__init(struct profiles *p, const struct export *e, bool lines)
{
	const struct schema_field *field;
	const struct schema_event *event;
	int err;

	*p = (struct profiles){ .e = e };
	map__init(&p->processes, sizeof(u32), sizeof(u32));
	err = call_functions__init(&p->functions, e->stacks);
	if (e->choice && !is_kind(e->choice)) {
		struct profile_kind other = { .name = p->name, .title = p->name, .doc = "" };

		event = find_event(trace__schema(e->trace), e->choice, &field);
		if (!event)
			return -EINVAL;
		snprintf(p->name, sizeof(p->name), "%s", e->choice);
		other.event = event->name;
		other.stack = field->name;
		return err ? err : add_profile(p, &other, lines);
	}
	for (u32 i = 0; !err && i < PROFILES; i++)
		if (!e->choice || !strcmp(e->choice, kinds[i].name))
			err = add_profile(p, &kinds[i], lines);
	return err;
}

void profiles__free(struct profiles *p)
{
	for (u32 i = 0; i < p->n; i++)
		call_tree__free(&p->list[i].tree);
	call_functions__free(&p->functions);
	map__free(&p->processes);
}

int profiles__process(struct profiles *p, struct call_tree *t, u32 pid, u32 *out)
{
	u32 *known = map__get(&p->processes, &pid), function;
	char label[64] = "kernel";
	int err = known ? 0 : -ENOMEM;

	if (!err && !*known) {
		if (pid)
			names__label(p->e->names, label, sizeof(label), pid, 0);
		err = call_functions__note(&p->functions, CALL_PROCESS, label, &function);
		*known = err ? 0 : function + 1;
	}
	return err ? err : call_tree__child(t, 0, *known - 1, 0, out);
}

static int put_note(struct profiles *p, struct call_tree *t, const char *text, u32 *node)
{
	u32 function;
	int err = call_functions__note(&p->functions, CALL_NOTE, text, &function);

	return err ? err : call_tree__child(t, *node, function, 0, node);
}

/* Adds the holder's stack in reverse, so that the code that held the GIL is next to the code that waited. */
static int put_holder(struct profiles *p, struct call_tree *t, const struct gil_segment *segment, u32 *node)
{
	static const char *const notes[] = {
		[GIL_UNKNOWN] = "-- holder unknown --",
		[GIL_HELD] = "-- held by --",
		[GIL_FREE] = "-- free: woken, not running yet --",
	};
	char label[64];
	int err = put_note(p, t, notes[segment->holding], node);

	if (err || segment->holding != GIL_HELD)
		return err;
	if (segment->holder_stack || !segment->holder)
		return call_tree__upside_down(t, *node, segment->holder_stack, node);
	/* The holder's stack could not be read, so its thread is shown. */
	names__label(p->e->names, label, sizeof(label), segment->gil.pid, segment->holder);
	return put_note(p, t, label, node);
}

/* Returns the ns of [from, to) within the traced time, as reports count them. */
static u64 inside(const struct profiles *p, u64 from, u64 to)
{
	return trace_facts__inside(p->e->facts, from, to);
}

/* Does any part lie within the traced time? */
static bool is_traced(const struct profiles *p, u64 from, u64 to)
{
	const struct trace_facts *facts = p->e->facts;

	for (u32 i = 0; i < facts->n_windows; i++)
		if (to >= facts->windows[i].from && from <= facts->windows[i].to)
			return true;
	return false;
}

static u64 weight(const struct profiles *p, const struct stack_profile *profile, const struct rows *rows,
		  const struct common_fields *f, u32 i)
{
	if (profile->period)
		return rows__u64(rows, profile->period, i);
	if (!profile->in_ns)
		return 1;
	if (rows__u64(rows, f->flags, i) & EVENT_NO_DURATION)
		return 0;
	return inside(p, rows__u64(rows, f->start, i), rows__u64(rows, f->time, i));
}

void profiles__add_amount(struct stack_profile *profile, u32 node, u64 amount)
{
	profile->tree.nodes[node].self += amount;
	profile->tree.nodes[node].count++;
	profile->total += amount;
	profile->events++;
}

static void add_amount(struct stack_profile *profile, u32 node, u32 stack, u64 amount)
{
	profiles__add_amount(profile, node, amount);
	profile->without_stack += stack ? 0 : amount;
}

/* Finds or adds the node of a stack beneath its process. */
static int find_node(struct profiles *p, struct stack_profile *profile, u32 pid, u32 stack, u32 *node)
{
	int err = profiles__process(p, &profile->tree, pid, node);

	return err ? err : call_tree__stack(&profile->tree, *node, stack, node);
}

static int add_row(struct profiles *p, struct stack_profile *profile, const struct rows *rows,
		   const struct common_fields *f, u32 i)
{
	u32 stack = (u32)rows__u64(rows, profile->stack, i), node = 0;
	u64 end = rows__u64(rows, f->time, i);
	int err;

	if (!is_traced(p, f->start ? rows__u64(rows, f->start, i) : end, end))
		return 0;
	err = find_node(p, profile, (u32)rows__u64(rows, f->pid, i), stack, &node);
	if (!err && profile->reason && rows__s64(rows, profile->reason, i) == SAMPLE_STOPPED)
		err = put_note(p, &profile->tree, "-- stopped --", &node);
	if (!err)
		add_amount(profile, node, stack, weight(p, profile, rows, f, i));
	return err;
}

static struct stack_profile *find_profile(struct profiles *p, u32 from)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->list[i].event && p->list[i].kind.from == from)
			return &p->list[i];
	return NULL;
}

static int on_wait(const struct gil_timed_wait *w, void *arg)
{
	struct stack_profile *profile = find_profile(arg, PROFILE_GIL_WAITS);
	u32 node = 0;
	int err;

	if (!is_traced(arg, w->start, w->end))
		return 0;
	err = find_node(arg, profile, w->gil.pid, w->stack, &node);
	if (!err)
		add_amount(profile, node, w->stack, saturate__round((double)inside(arg, w->start, w->end) * w->weight));
	return err;
}

static int on_segment(const struct gil_segment *segment, void *arg)
{
	struct stack_profile *profile = find_profile(arg, PROFILE_GIL_SEGMENTS);
	u32 node = 0;
	int err;

	if (!is_traced(arg, segment->from, segment->to))
		return 0;
	err = find_node(arg, profile, segment->gil.pid, segment->waiter_stack, &node);
	if (!err)
		err = put_holder(arg, &profile->tree, segment, &node);
	if (!err)
		add_amount(profile, node, segment->waiter_stack,
			   saturate__round((double)inside(arg, segment->from, segment->to) * segment->weight));
	return err;
}

int profiles__finish(struct profiles *p)
{
	const struct gil_listener listener = {
		.on_wait = find_profile(p, PROFILE_GIL_WAITS) ? on_wait : NULL,
		.on_segment = find_profile(p, PROFILE_GIL_SEGMENTS) ? on_segment : NULL,
	};

	struct stack_profile *torch = find_profile(p, PROFILE_TORCH);
	int err = 0;

	if (listener.on_wait || listener.on_segment)
		err = gil_model__read(p->e->trace, p->e->facts->live, p->e->facts->stop, NULL, &listener, p, NULL);
	return err || !torch ? err : profiles__add_torch(p, torch);
}

int profiles__add(struct profiles *p, const struct rows *rows)
{
	const struct schema_event *e = rows__event(rows);
	int err = 0;

	for (u32 i = 0; i < p->n; i++) {
		struct common_fields f;

		if (p->list[i].event != e || p->list[i].kind.from != PROFILE_EVENTS)
			continue;
		f = common_fields__of(e);
		for (u32 j = 0; !err && j < rows__count(rows); j++)
			err = add_row(p, &p->list[i], rows, &f, j);
	}
	return err;
}

int profiles__limit(struct profiles *p, u32 nodes)
{
	struct call_tree *trees[PROFILES];
	int err = 0;

	for (u32 i = 0; !err && i < p->n; i++) {
		trees[i] = &p->list[i].tree;
		err = call_tree__limit(trees[i], nodes, &p->list[i].min_ns);
	}
	return err ? err : call_functions__drop_unused(&p->functions, trees, p->n);
}

const struct stack_profile *profiles__first(const struct profiles *p)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->list[i].events)
			return &p->list[i];
	return NULL;
}

/* Appends a note about frames without a caller. */
static void note_broken(const struct profiles *p, char *buf, size_t size)
{
	u32 broken = stacks__broken(p->e->stacks);
	size_t used = strlen(buf);

	if (broken && used + 1 < size)
		snprintf(buf + used, size - used,
			 "%s%u frames have no caller in the trace: their stacks begin with them", used ? "; " : "",
			 broken);
}

/* Notes which kinds a format with a single kind omits. */
static void note_others(const struct profiles *p, const struct stack_profile *first, char *buf, size_t size)
{
	char others[128] = "";
	size_t used = 0;

	for (u32 i = 0; i < p->n && used < sizeof(others); i++)
		if (&p->list[i] != first && p->list[i].events)
			used += (size_t)snprintf(others + used, sizeof(others) - used, " %s", p->list[i].kind.name);
	if (used)
		snprintf(buf, size, "this is %s alone; --event takes the others in the trace:%s", first->kind.name,
			 others);
}

void profiles__note(const struct profiles *p, bool only_one, char *buf, size_t size)
{
	const struct stack_profile *first = profiles__first(p);

	*buf = 0;
	if (!first && p->n == 1)
		snprintf(buf, size, "the trace has no stacks of %s", p->list[0].kind.name);
	else if (!first)
		snprintf(
			buf, size,
			"the trace has no stacks of what is selected, or no stacks: record with -F HZ or --off-cpu, or waits for the GIL");
	else if (only_one)
		note_others(p, first, buf, size);
	note_broken(p, buf, size);
}

int profiles__begin(struct export *e)
{
	e->data = calloc(1, sizeof(struct profiles));
	return e->data ? profiles__init(e->data, e, false) : -ENOMEM;
}

int profiles__rows(struct export *e, const struct rows *rows)
{
	return profiles__add(e->data, rows);
}

int profiles__end(struct export *e, bool only_one, int (*put)(struct export *e, const struct profiles *p))
{
	struct profiles *p = e->data;
	int err;

	if (!p)
		return 0;
	err = profiles__finish(p);
	if (!err)
		err = put(e, p);
	profiles__note(p, only_one, e->note, sizeof(e->note));
	profiles__free(p);
	free(p);
	return err;
}
