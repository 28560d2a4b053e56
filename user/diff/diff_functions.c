// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff/diff_functions.h"

#include <errno.h>
#include <string.h>

#include "findings/classify.h"

struct role_run {
	struct noise_sum run, sampled; /* ns */
	u64 samples;
};

struct function_key {
	struct diff_role role;
	u32 name;
};

struct function_samples {
	struct noise_sum sampled; /* ns */
	u64 samples;
};

void function_sums__init(struct function_sums *s, struct diff *d, u32 side, struct map *roles)
{
	*s = (struct function_sums){ .d = d, .side = side, .roles = roles };
	map__init(&s->runs, sizeof(struct diff_role), sizeof(struct role_run));
	map__init(&s->functions, sizeof(struct function_key), sizeof(struct function_samples));
	map__init(&s->names, sizeof(u32), sizeof(u32));
}

void function_sums__free(struct function_sums *s)
{
	MAPS_FREE(&s->runs, &s->functions, &s->names);
}

int function_sums__add_run(struct function_sums *s, const struct diff_role *role, const float *bins)
{
	struct role_run *r = map__get(&s->runs, role);

	for (u32 i = 0; r && i < NOISE_BINS; i++) {
		r->run.bins[i] += bins[i];
		s->d->run_ns[s->side] += bins[i];
	}
	return r ? 0 : -ENOMEM;
}

/* The function that a sample counts for: the user's own, else Python's innermost, else the innermost native one */
static u32 name_of(struct function_sums *s, u32 stack, int *err)
{
	u32 *number = map__get(&s->names, &stack), frame;
	struct stack_parts parts;
	char name[STACK_LABEL];

	if (!number)
		*err = -ENOMEM;
	if (!number || *number)
		return number ? *number : 0;
	parts = stack_parts__of(s->stacks, stack);
	frame = parts.user ? parts.user : parts.python ? parts.python : parts.native;
	*number = diff__text(s->d, frame ? stacks__function(s->stacks, frame, name, sizeof(name)) : "(no stack)", err);
	return *number;
}

static int add_sample(struct function_sums *s, struct thread_key thread, u32 stack, u64 time, u64 ns)
{
	const struct diff_role *role = diff_role__of(s->d, s->side, s->roles, thread);
	struct function_samples *f = NULL;
	struct function_key key;
	struct role_run *r;
	int err = 0;
	u32 bin = diff__bin(s->d, s->side, time);

	if (!role)
		return -ENOMEM;
	key = (struct function_key){ *role, name_of(s, stack, &err) };
	r = map__get(&s->runs, role);
	if (!err && r)
		f = map__get(&s->functions, &key);
	if (!f)
		return err ? err : -ENOMEM;
	r->samples++;
	r->sampled.bins[bin] += (float)ns;
	f->samples++;
	f->sampled.bins[bin] += (float)ns;
	return 0;
}

static int on_samples(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, stack, period);
	struct common_fields f = common_fields__of(e);
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++) {
		struct thread_key thread = { (u32)rows__s64(rows, f.pid, i), (u32)rows__s64(rows, f.tid, i) };

		err = add_sample(arg, thread, (u32)rows__s64(rows, stack, i), rows__u64(rows, f.time, i),
				 rows__u64(rows, period, i));
	}
	return err;
}

/*
 * Returns in *out the function's part of the role's time on CPUs: this time multiplied by the function's part of the
 * role's samples. Its bins vary with both factors.
 */
static void divide(struct noise_sum *out, const struct role_run *r, const struct function_samples *f)
{
	double run = noise_sum__total(&r->run), sampled = noise_sum__total(&r->sampled);
	double share = sampled > 0 ? noise_sum__total(&f->sampled) / sampled : 0, each;
	struct noise_sum samples = f->sampled, ratio;

	/* without the scheduler's events, samples are all that is known of the running time */
	if (run <= 0) {
		*out = f->sampled;
		each = sampled / (double)r->samples;
		out->counting = each * each * (double)f->samples;
		return;
	}
	each = sampled / (double)r->samples;
	samples.counting = each * each * ((1 - share) * (double)f->samples > 1 ? (1 - share) * (double)f->samples : 1);
	noise_sum__ratio(&ratio, &samples, &r->sampled, run);
	for (u32 i = 0; i < NOISE_BINS; i++)
		out->bins[i] = (float)(ratio.bins[i] + share * (r->run.bins[i] - run / NOISE_BINS));
	out->counting = ratio.counting;
}

static int add_function(struct function_sums *s, const struct function_key *key, const struct function_samples *f)
{
	const struct role_run *r = map__find(&s->runs, &key->role);
	struct diff_key compared = { .section = DIFF_FUNCTIONS, .process = key->role.process, .name = key->name };
	struct noise_sum ns;
	int err = 0;
	struct diff_measure *m = diff__measure(s->d, &compared, s->side, &err);

	if (!m || !r)
		return err;
	divide(&ns, r, f);
	for (u32 i = 0; i < NOISE_BINS; i++)
		m->ns.bins[i] += ns.bins[i];
	m->ns.counting += ns.counting;
	m->samples += f->samples;
	return 0;
}

int function_sums__finish(struct function_sums *s, const struct stacks *stacks)
{
	int err;

	s->stacks = stacks;
	err = query__read_kind(s->d->q[s->side], "sample_cpu", on_samples, s);
	for (u32 i = 0; !err && i < s->functions.n; i++)
		err = add_function(s, map__key(&s->functions, i), map__value(&s->functions, i));
	return err;
}
