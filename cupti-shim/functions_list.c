// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What to trace, and which of it is found. Everything here runs in one thread, with the GIL held. */
#define _GNU_SOURCE
#include "functions.h"
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What to trace: sonde writes here (user/inject/), before it requests the family. */
SHIM_EXPORT struct shim_configuration sonde_cupti_functions_configuration = { .magic = SHIM_CONFIGURATION };

static struct function *functions; /* FUNCTIONS_MAX; NULL: none yet */
static uint32_t n_functions;
static char *configuration; /* as it was read; NULL: none is in use */
static bool traces_torch;

static uint64_t label_of(const struct function *f)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s%s%s", f->module ? f->module : "", f->module ? ":" : "", f->name);
	return functions__text(text);
}

/* An entry for a function; one of an earlier recording if it is the same. */
static struct function *entry(const char *module, const char *name, const char *domain, uint32_t colour)
{
	struct function *f;

	for (f = functions; f < functions + n_functions; f++)
		if (!f->module == !module && (!module || !strcmp(f->module, module)) && !strcmp(f->name, name) &&
		    !strcmp(f->domain, domain) && f->colour == colour)
			return f;
	if (!functions)
		functions = f = calloc(FUNCTIONS_MAX, sizeof(*functions));
	if (!f || n_functions == FUNCTIONS_MAX)
		return NULL;
	*f = (struct function){ .module = module ? strdup(module) : NULL, .colour = colour };
	f->name = strdup(name);
	f->domain = strdup(domain);
	if ((module && !f->module) || !f->name || !f->domain)
		return NULL;
	f->label = label_of(f);
	f->domain_id = functions__text(domain);
	n_functions++;
	return f;
}

/* Cuts a text at the first of its separators. Returns what follows. */
static char *cut(char *text, char separator)
{
	char *end = strchr(text, separator);

	if (!end)
		return text + strlen(text);
	*end = '\0';
	return end + 1;
}

/* Lines `torch`, or MODULE, QUALNAME, DOMAIN and COLOUR with tabs between them. */
static void parse(char *text)
{
	char *line, *next, *name, *domain, *colour;
	struct function *f;

	for (line = text; *line; line = next) {
		next = cut(line, '\n');
		if (!strcmp(line, "torch")) {
			traces_torch = true;
			continue;
		}
		name = cut(line, '\t');
		domain = cut(name, '\t');
		colour = cut(domain, '\t');
		f = *line && *name ? entry(line, name, domain, (uint32_t)strtoul(colour, NULL, 16)) : NULL;
		if (f)
			f->is_named = true;
	}
}

void functions__unset_codes(const char *why)
{
	for (struct function *f = functions; f < functions + n_functions; f++) {
		if (!f->code_set)
			continue;
		functions__unset(f);
		f->why = why;
		f->reported = false;
	}
}

void functions__unset_all(void)
{
	functions__end_watch();
	for (struct function *f = functions; f < functions + n_functions; f++) {
		functions__unset(f);
		f->is_named = f->reported = false;
		f->why = NULL;
	}
	/* the next recording begins anew, also with the same functions */
	free(configuration);
	configuration = NULL;
}

/* What sonde has written counts before the environment, which is older. The last of several tracers counts. */
static char *read_configuration(void)
{
	struct shim_configuration *c = &sonde_cupti_functions_configuration;
	const char *from = getenv("SONDE_FUNCTIONS");
	size_t len = from ? strlen(from) : 0;
	char *text;

	if (c->size && c->size < sizeof(c->text)) {
		from = c->text;
		len = c->size;
	}
	text = malloc(len + 1);
	if (text) {
		memcpy(text, from ? from : "", len);
		text[len] = '\0';
	}
	return text;
}

static void configure(void)
{
	char *text = read_configuration();

	if (!text || (configuration && !strcmp(text, configuration))) {
		free(text);
		return;
	}
	functions__unset_all();
	configuration = strdup(text);
	traces_torch = false;
	parse(text);
	free(text);
}

static bool is_other_name(PyObject *object)
{
	for (struct function *f = functions; f < functions + n_functions; f++)
		if (f->object == object)
			return true;
	return false;
}

static void set(struct function *f, PyObject *object)
{
	if (is_other_name(object)) {
		f->why = "another name for a function that is traced already";
		python.Py_DecRef(object);
		return;
	}
	functions__set(f, object);
}

static void add_torch(PyObject *object, const char *name, bool has_shapes)
{
	struct function *f;

	if (is_other_name(object))
		return;
	for (f = functions; f < functions + n_functions; f++)
		if (!f->module && !f->object && !strcmp(f->name, name))
			break;
	if (f == functions + n_functions)
		f = entry(NULL, name, "torch", 0);
	if (!f || f->object)
		return;
	f->colour = 0;
	f->has_shapes = has_shapes;
	f->is_named = true;
	f->reported = false;
	python.Py_IncRef(object);
	functions__set(f, object);
}

static void report(struct function *f, bool all)
{
	if (!f->is_named || (f->reported && !all))
		return;
	functions__report(f, f->object ? FUNCTION_TRACED : f->why ? FUNCTION_REFUSED : FUNCTION_MISSING, f->why);
	f->reported = true;
}

/* Returns whether it is missing. */
static bool search(struct function *f)
{
	PyObject *object;

	if (!f->is_named || !f->module || f->why)
		return false;
	object = functions__find(f);
	if (object && object != f->object) {
		functions__unset(f);
		set(f, object);
		f->reported = false;
	} else if (object) {
		python.Py_DecRef(object);
	} else if (f->why) {
		f->reported = false;
	}
	return !f->object && !f->why;
}

bool functions__search(bool report_all)
{
	bool missing = false;

	configure();
	functions__watch_compiler();
	for (struct function *f = functions; f < functions + n_functions; f++)
		missing |= search(f);
	if (traces_torch)
		functions__find_torch(add_torch);
	for (struct function *f = functions; f < functions + n_functions; f++)
		report(f, report_all);
	/* a code object has to be as it was soon after torch is imported */
	for (struct function *f = functions; f < functions + n_functions; f++)
		missing |= !!f->code_set;
	return missing;
}
