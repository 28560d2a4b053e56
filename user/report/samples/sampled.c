// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report/samples/sampled.h"
#include "core/meta.h"
#include "core/native.h"
#include "probes/sample/sample.h"

#include <errno.h>
#include <string.h>

#include "output/text.h"

struct read {
	struct sampled *sampled;
	const struct query *args;
};

void sampled__add(struct sampled_weight *to, const struct sampled_weight *w)
{
	to->samples += w->samples;
	to->cpu_ns += w->cpu_ns;
	to->gil_ns += w->gil_ns;
	to->no_gil_ns += w->no_gil_ns;
	to->kernel_ns += w->kernel_ns;
	to->waits += w->waits;
	to->off_ns += w->off_ns;
	to->estimated_ns += w->estimated_ns;
}

static int add(struct sampled *s, u32 stack, const struct sampled_weight *w)
{
	struct sampled_weight *known = map__get(&s->by_stack, &stack);

	if (!known)
		return -ENOMEM;
	sampled__add(known, w);
	sampled__add(&s->total, w);
	return 0;
}

static int on_cpu(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, stack, gil, period, kernel);
	struct read *r = arg;
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		struct sampled_weight w = { .samples = 1, .cpu_ns = rows__u64(rows, period, i) };
		s64 held = rows__s64(rows, gil, i);

		w.gil_ns = held == SAMPLE_GIL_HELD ? w.cpu_ns : 0;
		w.no_gil_ns = held == SAMPLE_GIL_NOT_HELD ? w.cpu_ns : 0;
		w.kernel_ns = rows__s64(rows, kernel, i) ? w.cpu_ns : 0;
		err = add(r->sampled, (u32)rows__s64(rows, stack, i), &w);
	}
	return err;
}

static int on_off(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, stack, estimated, reason);
	struct common_fields f = common_fields__of(e);
	struct read *r = arg;
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		struct sampled_weight w = { .waits = 1 };

		/* a thread that is stopped does not wait in this code */
		if (rows__s64(rows, reason, i) == SAMPLE_STOPPED)
			continue;
		w.off_ns = query__inside(r->args, rows__u64(rows, f.start, i), rows__u64(rows, f.time, i));
		w.estimated_ns = rows__s64(rows, estimated, i) ? w.off_ns : 0;
		err = add(r->sampled, (u32)rows__s64(rows, stack, i), &w);
	}
	return err;
}

/* Each event has the sums since the start. */
static int on_clock(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, period, threshold, ticks, missed);
	struct sampled *s = arg;

	for (u32 i = 0; i < rows__count(rows); i++) {
		s->period = rows__u64(rows, period, i);
		s->threshold = rows__u64(rows, threshold, i);
		if (rows__u64(rows, ticks, i) < s->ticks)
			continue;
		s->ticks = rows__u64(rows, ticks, i);
		s->missed = rows__u64(rows, missed, i);
	}
	return 0;
}

int sampled__read(struct sampled *s, const struct query *args)
{
	struct read r = { s, args };
	int err;

	memset(s, 0, sizeof(*s));
	map__init(&s->by_stack, sizeof(u32), sizeof(struct sampled_weight));
	err = stacks__load(&s->stacks, args->trace);
	if (!err)
		/* of the whole recording, even if only a part of the time is selected */
		err = trace__read_kind(args->trace, "sample_clock", on_clock, s);
	if (!err)
		err = query__read_kind(args, "sample_cpu", on_cpu, &r);
	return err ? err : query__read_kind(args, "sample_off", on_off, &r);
}

void sampled__free(struct sampled *s)
{
	map__free(&s->by_stack);
	stacks__free(s->stacks);
}

static int add_to_codes(struct sampled *s, u32 number, bool by_line, struct map *codes,
			struct sampled_weight *without_python)
{
	const struct sampled_weight *w = map__value(&s->by_stack, number);
	static u32 path[STACKS_DEEPEST]; /* the outermost first */
	u32 n = stacks__path(s->stacks, *(const u32 *)map__key(&s->by_stack, number), path, STACKS_DEEPEST);
	int top = (int)n - 1;
	bool counts_native;

	while (top >= 0 && stacks__frame(s->stacks, path[top])->kind != FRAME_PYTHON)
		top--;
	counts_native = top < 0 && !without_python;
	if (counts_native)
		top = (int)n - 1;
	else if (top < 0)
		sampled__add(without_python, w);
	for (int i = 0; i <= top; i++) {
		const struct stack_frame *frame = stacks__frame(s->stacks, path[i]);
		struct sampled_code_key key = { frame->code, by_line ? frame->line : 0 };
		struct sampled_code *c;

		if (counts_native ? !frame->code : frame->kind != FRAME_PYTHON)
			continue;
		c = map__get(codes, &key);
		if (!c)
			return -ENOMEM;
		c->frame = path[i];
		if (i == top) {
			sampled__add(&c->self, w);
			c->native_ns += (u32)top + 1 < n ? w->cpu_ns : 0;
		}
		if (c->last != number + 1)
			sampled__add(&c->total, w);
		c->last = number + 1;
	}
	return 0;
}

int sampled__by_code(struct sampled *s, bool by_line, struct map *codes, struct sampled_weight *without_python)
{
	int err = 0;

	map__init(codes, sizeof(struct sampled_code_key), sizeof(struct sampled_code));
	for (u32 i = 0; !err && i < s->by_stack.n; i++)
		err = add_to_codes(s, i, by_line, codes, without_python);
	return err;
}

/* Are native frames missing on the stack? */
static bool lacks_frames(const struct sampled *s, u32 stack)
{
	static u32 path[STACKS_DEEPEST]; /* the outermost first */
	u32 n = stacks__path(s->stacks, stack, path, STACKS_DEEPEST);
	const struct stack_frame *f, *caller = NULL;

	for (u32 i = 0; i < n; i++, caller = f) {
		f = stacks__frame(s->stacks, path[i]);
		/* what lies inside of frames that the walk of a Python stack left out is Python code */
		if (f->kind == FRAME_NATIVE &&
		    (!strcmp(f->symbol, FRAMES_MISSING) || (caller && caller->kind == FRAME_CUT)))
			return true;
	}
	return false;
}

static void add_lacking_note(const struct sampled *s, struct report_output *out)
{
	u64 ns = 0;

	MAP_EACH_ENTRY(const struct sampled_weight *w, const u32 *stack, &s->by_stack)
		ns += lacks_frames(s, *stack) ? w->cpu_ns : 0;
	if (ns && 100 * ns >= s->total.cpu_ns)
		report_output__note(
			out,
			"%.0f%% of the CPU time is on stacks with missing frames ([cut], [frames missing]): %s bytes of a stack are copied, beyond which only code with frame pointers (-fno-omit-frame-pointer) can be followed.",
			100.0 * (double)ns / (double)s->total.cpu_ns, TEXT_COUNT(NATIVE_WINDOW));
}

bool sampled__add_notes(const struct sampled *s, const struct query *args, struct report_output *out)
{
	const struct sampled_weight *none;
	u32 id = 0;

	if (!s->by_stack.n) {
		report__nothing(args, out, "No samples were recorded", "sample");
		report_output__finding(out, "`sonde record -F 99` samples CPU time, `--off-cpu` records waits.");
		return false;
	}
	none = map__find(&s->by_stack, &id);
	if (none && none->samples)
		report_output__note(out, "%llu of %llu samples have no stack.", none->samples, s->total.samples);
	if (s->missed && s->ticks)
		report_output__note(
			out,
			"%.2f%% of the clock's ticks are missing: the hypervisor had taken the CPU, or the kernel delayed them.",
			100.0 * (double)s->missed / (double)(s->ticks + s->missed));
	add_lacking_note(s, out);
	if (s->threshold)
		report_output__note(out, "Off-CPU time counts intervals of at least %s.", TEXT_NS(s->threshold));
	if (200 * s->total.estimated_ns >= s->total.off_ns && s->total.estimated_ns)
		report_output__note(
			out,
			"%.0f%% of the off-CPU time is attributed by the stacks of similar intervals: of a thread's intervals shorter than %u ms only one for each %u ms gets a stack.",
			100.0 * (double)s->total.estimated_ns / (double)s->total.off_ns, SAMPLE_STACK_NS / 1000000,
			SAMPLE_STACK_NS / 1000000);
	return true;
}
