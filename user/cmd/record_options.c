// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The options of families that `sonde record` passes to the session, and those for sampling, which stand for some of
 * them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/record.h"
#include "cmd/shim.h"
#include "probes/torch/torch.h"
#include "util/array.h"
#include "util/section.h"

#define STEPS_MAX 1000000000 /* of a number of --schedule */

int record_options__copy(struct record_args *a, char *text)
{
	if (text && array__push(a->copies, a->n_copies, text))
		return 0;
	free(text);
	return -ENOMEM;
}

void record_options__free(struct record_args *a)
{
	free(a->functions.text);
	for (u32 i = 0; i < a->n_copies; i++)
		free(a->copies[i]);
	free(a->copies);
}

static int add_option(struct record_args *a, const char *name, const char *value)
{
	char *text;
	int err;

	if (a->n_options + 1 >= ARRAY_LEN(a->options)) {
		fprintf(stderr, "sonde record: more than %zu options of families\n", ARRAY_LEN(a->options) - 1);
		return -EINVAL;
	}
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	err = record_options__copy(a, text);
	if (!err)
		a->options[a->n_options++] = text;
	return err;
}

/* Adds the option of family sample that stands for an option of this command, such as -F. */
static int add_number(struct record_args *a, const char *option, unsigned long long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", number);
	return add_option(a, option, text);
}

/* Returns the kernel's limit: it throttles faster clocks, and samples would be missing. */
static unsigned long max_rate(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned long rate = 0;

	if (f && fscanf(f, "%lu", &rate) != 1)
		rate = 0;
	if (f)
		fclose(f);
	return rate && rate < ATTACHER_HZ_MAX ? rate : ATTACHER_HZ_MAX;
}

int record_options__frequency(struct record_args *a, const char *arg)
{
	unsigned long hz, max = max_rate();
	char *end;

	errno = 0;
	hz = strtoul(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || !hz) {
		fprintf(stderr, "sonde record: -F needs samples a second, a whole number from 1 on, not '%s'\n", arg);
		return -EINVAL;
	}
	if (hz > max) {
		fprintf(stderr,
			"sonde record: -F %lu is more than this system allows: %lu "
			"(sysctl kernel.perf_event_max_sample_rate, at most %d)\n",
			hz, max, ATTACHER_HZ_MAX);
		return -EINVAL;
	}
	return add_number(a, "sample-hz", hz);
}

int record_options__off_cpu(struct record_args *a, const char *arg)
{
	unsigned long long ns;
	char *end;

	errno = 0;
	ns = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || !ns) {
		fprintf(stderr, "sonde record: --off-cpu needs nanoseconds, a whole number from 1 on, not '%s'\n", arg);
		return -EINVAL;
	}
	return add_number(a, "sample-off", ns);
}

static int set_steps(struct step_schedule *s, const char *item)
{
	const struct {
		const char *name;
		u32 *number;
	} known[] = {
		{ "skip_first=", &s->skip_first }, { "wait=", &s->wait },     { "warmup=", &s->warmup },
		{ "active=", &s->active },	   { "repeat=", &s->repeat },
	};

	for (u32 i = 0; i < ARRAY_LEN(known); i++) {
		size_t n = strlen(known[i].name);
		unsigned long value;
		char *end;

		if (strncmp(item, known[i].name, n))
			continue;
		value = strtoul(item + n, &end, 10);
		if (item[n] < '0' || item[n] > '9' || *end || value > STEPS_MAX)
			return -EINVAL;
		*known[i].number = (u32)value;
		return 0;
	}
	return -EINVAL;
}

int record_options__schedule(struct record_args *a, const char *arg)
{
	char *save, *copy = strdup(arg);
	int err = record_options__copy(a, copy);

	a->schedule = (struct step_schedule){ 0 };
	for (char *item = err ? NULL : strtok_r(copy, ",", &save); item && !err; item = strtok_r(NULL, ",", &save))
		err = set_steps(&a->schedule, item);
	if (!err && !a->schedule.active)
		err = -EINVAL;
	if (err)
		fprintf(stderr,
			"sonde record: --schedule needs numbers of steps, skip_first=N,wait=N,warmup=N,active=N,repeat=N, active from 1 on, not '%s'\n",
			arg);
	a->session.schedule = &a->schedule;
	return err;
}

#define NVTX "nvtx:"

static int refuse_range(const char *option, const char *arg)
{
	fprintf(stderr,
		"sonde record: %s: '%s' is not nvtx:NAME or nvtx:NAME@DOMAIN with at most %d characters in NAME and DOMAIN\n",
		option, arg, CAPTURE_PATTERN - 1);
	return -EINVAL;
}

/* NAME[@DOMAIN] */
static int set_range(struct capture_range *c, const char *arg)
{
	const char *at = strrchr(arg, '@');
	size_t name = at ? (size_t)(at - arg) : strlen(arg), domain = at ? strlen(at + 1) : 0;

	if (!name || name >= CAPTURE_PATTERN || (at && !domain) || domain >= CAPTURE_PATTERN)
		return -EINVAL;
	memcpy(c->name, arg, name);
	memcpy(c->domain, at ? at + 1 : "", domain);
	return 0;
}

int record_options__step(struct record_args *a, const char *arg)
{
	size_t n = strlen(arg);

	a->session.step = arg;
	if (!strncmp(arg, NVTX, strlen(NVTX))) {
		a->session.step_range = &a->step_range;
		return set_range(&a->step_range, arg + strlen(NVTX)) ? refuse_range("--step", arg) : 0;
	}
	if (!n || !strcmp(arg, "*") || n >= TORCH_STEP_NAME || strcspn(arg, "*") + 1 < n) {
		fprintf(stderr,
			"sonde record: --step needs the name of a range of at most %d characters, with a * only at its end, not '%s'\n",
			TORCH_STEP_NAME - 1, arg);
		return -EINVAL;
	}
	return 0;
}

int record_options__capture(struct record_args *a, const char *arg)
{
	int err = 0;

	if (a->session.capture) {
		fprintf(stderr, "sonde record: --capture-range can be given once, and was also given as '%s'\n", arg);
		return -EINVAL;
	}
	a->capture = (struct capture_range){ .max = 1 };
	a->session.capture = &a->capture;
	if (!strncmp(arg, NVTX, strlen(NVTX))) {
		a->capture.is_nvtx = true;
		err = set_range(&a->capture, arg + strlen(NVTX));
	} else if (strcmp(arg, "cudaProfilerApi")) {
		fprintf(stderr,
			"sonde record: --capture-range needs cudaProfilerApi, nvtx:NAME or nvtx:NAME@DOMAIN, not '%s'\n",
			arg);
		return -EINVAL;
	}
	return err ? refuse_range("--capture-range", arg) : 0;
}

/* stop, or repeat, or repeat:N */
static int set_capture_end(struct capture_range *c, const char *arg)
{
	unsigned long n = 0;
	char *end = "";

	if (!strcmp(arg, "stop"))
		return 0;
	if (strncmp(arg, "repeat", strlen("repeat")))
		return -EINVAL;
	arg += strlen("repeat");
	if (*arg) {
		n = arg[0] == ':' && arg[1] >= '0' && arg[1] <= '9' ? strtoul(arg + 1, &end, 10) : 0;
		if (!n || *end || n > STEPS_MAX)
			return -EINVAL;
	}
	c->max = (u32)n;
	return 0;
}

int record_options__finish_capture(struct record_args *a)
{
	if (!a->session.capture && !a->capture_end)
		return a->session.step_range ? record_options__add_family(a, "capture") : 0;
	if (!a->session.capture) {
		fprintf(stderr, "sonde record: --capture-range-end needs --capture-range\n");
		return -EINVAL;
	}
	if (a->capture_end && set_capture_end(&a->capture, a->capture_end)) {
		fprintf(stderr,
			"sonde record: --capture-range-end needs stop, repeat, or repeat:N with N from 1 on, not '%s'\n",
			a->capture_end);
		return -EINVAL;
	}
	if (a->session.schedule || a->session.start_paused) {
		fprintf(stderr, "sonde record: --capture-range can't be combined with --schedule or --start-paused\n");
		return -EINVAL;
	}
	if (a->capture.is_nvtx && a->session.step_range) {
		fprintf(stderr, "sonde record: --capture-range and --step can't both name ranges of NVTX\n");
		return -EINVAL;
	}
	return record_options__add_family(a, "capture");
}

static bool has_choice(const struct record_args *a, const char *option)
{
	for (u32 i = 0; i < a->n_options; i++)
		if (!strcmp(a->options[i], option))
			return true;
	return false;
}

unsigned int record_options__shim_needs(const struct record_args *a)
{
	bool has_ranges = a->session.step_range || (a->session.capture && a->capture.is_nvtx);

	return shim__needs(a->session.families) | (has_ranges ? SHIM_NEED_NVTX : 0) |
	       (has_choice(a, "torch=shim") ? SHIM_NEED_TORCH : 0);
}

static bool has_family(const struct record_args *a, const char *family)
{
	const char *list = a->session.families;
	char name[64];

	while (list && section__next_function(&list, name, sizeof(name)))
		if (!strcmp(name + (*name == '+'), family))
			return true;
	return false;
}

/* These need probes in libtorch. */
static bool torch_needs_probes(const struct record_args *a)
{
	return a->session.schedule || a->session.step || has_choice(a, "torch=all") || has_choice(a, "torch=shapes") ||
	       has_choice(a, "torch=stacks");
}

int record_options__torch(struct record_args *a)
{
	bool by_shim = has_choice(a, "torch=shim");

	if (!by_shim && a->inject && has_family(a, "torch") && !torch_needs_probes(a))
		return add_option(a, "torch", "shim");
	if (!by_shim && (a->has_torch_budget || has_choice(a, "torch=inner"))) {
		fprintf(stderr,
			"sonde record: %s is for -t torch --inject, and not with --torch=all, --torch=shapes,\n"
			"  --torch=stacks, --schedule or --step\n",
			a->has_torch_budget ? "--torch-budget" : "--torch=inner");
		return -EINVAL;
	}
	if (!by_shim)
		return 0;
	if (torch_needs_probes(a)) {
		fprintf(stderr, "sonde record: --torch=shim can't be combined with --torch=all, shapes or stacks, "
				"nor with --schedule or --step, which need probes in libtorch\n");
		return -EINVAL;
	}
	if (!a->inject && !a->launch.argv) {
		fprintf(stderr, "sonde record: --torch=shim needs --inject, which loads sonde's library into the "
				"process; else put the command after --\n");
		return -EINVAL;
	}
	return has_family(a, "torch") ? 0 : record_options__add_family(a, "torch");
}

int record_options__add_family(struct record_args *a, const char *name)
{
	const char *families = a->session.families;
	char *with;
	int err;

	/* "A,B" replaces the default set, "+A,+B" adds to it */
	if (asprintf(&with, "%s%s%s%s", families ? families : "", families ? "," : "",
		     families && *families != '+' ? "" : "+", name) < 0)
		return -ENOMEM;
	err = record_options__copy(a, with);
	if (!err)
		a->session.families = with;
	return err;
}

#define DEFAULT_HZ 49

static bool is_given(const struct record_args *a, const char *option)
{
	size_t len = strlen(option);

	for (u32 i = 0; i < a->n_options; i++)
		if (!strncmp(a->options[i], option, len) && a->options[i][len] == '=')
			return true;
	return false;
}

int record_options__add_default_sampling(struct record_args *a)
{
	unsigned long max = max_rate();
	int err = 0;

	if (a->session.families && *a->session.families != '+')
		return 0;
	if (!is_given(a, "sample-hz"))
		err = add_number(a, "sample-hz", max < DEFAULT_HZ ? max : DEFAULT_HZ);
	return err || is_given(a, "sample-off") ? err : record_options__off_cpu(a, RECORD_OFF_CPU_NS);
}

int record_options__cost_limit(struct record_args *a, const char *arg)
{
	double percent = 0;
	char *end = NULL;

	a->has_cost_limit = true;
	if (strcmp(arg, "none")) {
		percent = strtod(arg, &end);
		if (end == arg || *end || strspn(arg, "0123456789.") != strlen(arg) || !(percent > 0) ||
		    percent > 100) {
			fprintf(stderr,
				"sonde record: --cost-limit needs a percentage above 0 and up to 100, or none, not '%s'\n",
				arg);
			return -EINVAL;
		}
	}
	a->session.cost_limit = percent / 100;
	return 0;
}

void record_options__default_cost_limit(struct record_args *a)
{
	if (!a->has_cost_limit && (!a->session.families || *a->session.families == '+'))
		a->session.cost_limit = 0.01;
}

static int add_choice(struct record_args *a, const char *family, const char *option)
{
	/* an option of this command: the functions are Python's, and recorded without family torch */
	if (!strcmp(family, "torch") && !strcmp(option, "functions"))
		return functions__add_torch(&a->functions);
	return add_option(a, family, option);
}

/* arg: FAMILY=OPTION,OPTION..; each is added as FAMILY=OPTION. */
static int add_choices(struct record_args *a, const char *arg)
{
	size_t len = strcspn(arg, "=");
	char *family = strndup(arg, len), *list = strdup(arg + len + 1), *rest = list, *item;
	int err = family && list ? 0 : -ENOMEM;

	if (err)
		fprintf(stderr, "sonde record: no memory for the option --%s\n", arg);
	while (!err && (item = strsep(&rest, ","))) {
		err = *item ? add_choice(a, family, item) : -EINVAL;
		if (!*item)
			fprintf(stderr, "sonde record: --%s has an empty option\n", arg);
	}
	free(family);
	free(list);
	return err;
}

/* What the library in a process keeps to; another share would have to be passed to it. */
static int add_budget(struct record_args *a, const char *value)
{
	a->has_torch_budget = true;
	if (value && !strcmp(value, "none"))
		return add_option(a, "torch", "every");
	if (value && (!strcmp(value, "2") || !strcmp(value, "2%")))
		return 0;
	fprintf(stderr, "sonde record: --torch-budget is 2%% or none, not '%s'\n", value ? value : "");
	return -EINVAL;
}

int record_options__of_family(struct record_args *a, const char *arg, const char *next)
{
	if (arg && !strncmp(arg, "--torch-budget=", 15))
		return add_budget(a, arg + 15);
	if (arg && !strcmp(arg, "--torch-budget"))
		return add_budget(a, next) ?: 1;
	if (arg && !strncmp(arg, "--", 2) && strchr(arg + 2, '-') && !strchr(arg, '=') && next &&
	    (*next != '-' || isdigit((unsigned char)next[1])) && a->n_options + 1 < ARRAY_LEN(a->options)) {
		int err = add_option(a, arg + 2, next);

		return err ? err : 1;
	}
	/* "--osrt-threshold" without a number is stored too: the check then prints what the option expects. */
	if (!arg || strncmp(arg, "--", 2) || !strpbrk(arg + 2, "=-") || a->n_options + 1 >= ARRAY_LEN(a->options)) {
		fprintf(stderr, "sonde record: unknown option '%s'; see `sonde record --help`\n", arg ? arg : "");
		return -EINVAL;
	}
	/* not --FAMILY-NUMBER=N */
	if (arg[2 + strcspn(arg + 2, "=-")] == '=' && (strchr(arg, ',') || !strcmp(arg, "--torch=functions")))
		return add_choices(a, arg + 2);
	a->options[a->n_options++] = arg + 2;
	return 0;
}
