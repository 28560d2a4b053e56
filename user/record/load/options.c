// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Chooses the families of a recording, and sets their options, as the command line says. */
#include "record/family.h"
#include "record/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a family by its name, or by the name that Nsight Systems uses. */
static const struct schema_family *family_named(const struct schema *schema, const char *name)
{
	return schema__family(schema, strcmp(name, "osrt") ? name : "syscall");
}

static void list_families(const struct schema *schema, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (u32 i = 0; i < schema->n_families && used < len; i++)
		if (schema->families[i].id)
			used += snprintf(buf + used, len - used, "%s%s", used ? ", " : "", schema->families[i].name);
}

#define LEAN "lean"

static void add_defaults(struct session *s, bool lean)
{
	for (u32 i = 0; i < s->embedded.schema->n_families; i++) {
		const struct schema_family *f = &s->embedded.schema->families[i];

		s->load.family_on[f->id] |= s->load.everything || (lean ? f->lean : f->by_default);
	}
}

/* -t A,B replaces the default set, -t +A adds to it; "lean" is the smaller default set. */
static int choose_families(struct session *s, char *err, size_t len)
{
	const char *list = s->args->families, *p = list;
	char name[64], known[256];

	s->load.family_on[0] = true;
	if (!list || *list == '+')
		add_defaults(s, false);
	if (!list)
		return 0;
	if (!list[strspn(list, "+,")]) {
		snprintf(err, len, "-t '%s' names no family", list);
		return -EINVAL;
	}
	while (section__next_function(&p, name, sizeof(name))) {
		const char *n = name + (*name == '+');
		const struct schema_family *f = family_named(s->embedded.schema, n);

		if (!strcmp(n, LEAN)) {
			add_defaults(s, true);
			continue;
		}
		if (!f || !f->id) {
			list_families(s->embedded.schema, known, sizeof(known));
			snprintf(err, len,
				 "unknown family '%s' in -t; there are: %s; and lean, the smaller default set", n,
				 known);
			return -EINVAL;
		}
		s->load.family_on[f->id] = true;
	}
	/* only proc has the names of the threads that sched reports */
	if (family_named(s->embedded.schema, "sched") &&
	    s->load.family_on[family_named(s->embedded.schema, "sched")->id] &&
	    family_named(s->embedded.schema, "proc"))
		s->load.family_on[family_named(s->embedded.schema, "proc")->id] = true;
	return 0;
}

/* Translates an option of Nsight Systems to that of sonde: "osrt-threshold=1000" to "syscall-threshold=1000". */
static const char *sonde_name(const char *option, char *buf, size_t len)
{
	if (strncmp(option, "osrt", 4) || (option[4] != '=' && option[4] != '-'))
		return option;
	snprintf(buf, len, "syscall%s", option + 4);
	return buf;
}

/* Returns the text after "FAMILY", the separator, the name and, if there is more, '='; NULL: it is another option. */
static const char *option_value(const char *option, const char *family, char separator, const char *name)
{
	size_t len = strlen(family), more = strlen(name);

	if (strncmp(option, family, len) || option[len] != separator || strncmp(option + len + 1, name, more))
		return NULL;
	option += len + 1 + more;
	return !*option ? option : *option == '=' ? option + 1 : NULL;
}

bool session__option(struct session *s, const char *family, const char *option)
{
	char buf[128];

	for (const char *const *o = s->args->options; o && *o; o++) {
		const char *value = option_value(sonde_name(*o, buf, sizeof(buf)), family, '=', option);

		if (value && !*value)
			return true;
	}
	return false;
}

u64 session__number(struct session *s, const char *family, const char *option)
{
	u64 number = 0;
	char buf[128];

	for (const char *const *o = s->args->options; o && *o; o++) {
		const char *value = option_value(sonde_name(*o, buf, sizeof(buf)), family, '-', option);

		if (value)
			number = strtoull(value, NULL, 10);
	}
	return number;
}

/* Returns the option that an argument of the command line names, and its value; NULL: none. */
static const struct schema_option *find_option(const struct schema *schema, const char *given, const char **value)
{
	for (u32 i = 0; i < schema->n_options; i++) {
		const struct schema_option *o = &schema->options[i];
		bool number = *o->number;

		*value = option_value(given, o->family, number ? '-' : '=', o->name);
		if (*value && (number || !**value))
			return o;
	}
	return NULL;
}

/* Parses the number of an option, which must be in the range that the family's host code states. */
static int read_number(const struct schema_option *o, const char *option, const char *value, u64 *number, char *err,
		       size_t len)
{
	const struct family_host *h = family_host__find(o->family);
	bool is_limited = h && h->range.name && !strcmp(h->range.name, o->name), is_number;
	char range[64] = "", *end;

	if (!*value) {
		snprintf(err, len, "option --%s needs a number of %s after it", option, o->number);
		return -EINVAL;
	}
	errno = 0;
	*number = strtoull(value, &end, 10);
	is_number = *value >= '0' && *value <= '9' && !*end && !errno;
	if (is_number && (!is_limited || (*number >= h->range.min && *number <= h->range.max)))
		return 0;
	if (is_limited)
		snprintf(range, sizeof(range), " from %llu to %llu", h->range.min, h->range.max);
	snprintf(err, len, "option --%s needs a number of %s%s, not '%s'", option, o->number, range, value);
	return -EINVAL;
}

static int set_option(struct session *s, const char *option, char *err, size_t len)
{
	char buf[128], var[128];
	const char *value, *given = sonde_name(option, buf, sizeof(buf));
	const struct schema_option *known = find_option(s->embedded.schema, given, &value);
	bool on = true;
	u64 number;
	int ret;

	if (!known) {
		snprintf(err, len, "unknown option --%s; see `sonde record --help` and `sonde list options`", option);
		return -EINVAL;
	}
	/* an option of a family turns the family on */
	s->load.family_on[schema__family(s->embedded.schema, known->family)->id] = true;
	snprintf(var, sizeof(var), "option_%s_%s", known->family, known->name);
	if (*known->number) {
		ret = read_number(known, option, value, &number, err, len);
		if (ret)
			return ret;
		ret = session__set_variable(s, var, &number, sizeof(number));
	} else {
		ret = session__set_variable(s, var, &on, sizeof(on));
	}
	if (ret)
		snprintf(err, len, "option --%s: the BPF object has no variable %s", option, var);
	return ret ? -EINVAL : 0;
}

static int set_options(struct session *s, char *err, size_t len)
{
	int ret = 0;

	for (const char *const *o = s->args->options; !ret && o && *o; o++)
		ret = set_option(s, *o, err, len);
	return ret;
}

int options__apply(struct session *s, char *err, size_t len)
{
	int ret = choose_families(s, err, len);

	return ret ? ret : set_options(s, err, len);
}
