// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The file is that of Nsight Systems' --python-functions-trace: a list of objects with "module", "functions" and, if
 * given, "domain" and "color". A function is a name, or an object with a name ("function" or "name") and what differs.
 */
#include "cmd/functions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "core/shim_functions.h"
#include "util/array.h"
#include "util/file.h"
#include "util/json.h"

#define FILE_MAX  (1u << 20)
#define OPAQUE	  0xff000000u
#define FIELD_MAX 512
#define EXAMPLE	  "such as --function train:Model.forward"

static int add_text(struct functions *f, const char *text)
{
	size_t n = strlen(text);
	char *more;

	if (f->len + n + 1 >= SHIM_CONFIGURATION_BYTES) {
		cmd__error("the names of all functions together are longer than %d bytes", SHIM_CONFIGURATION_BYTES);
		return -E2BIG;
	}
	more = realloc(f->text, f->len + n + 1);
	if (!more)
		return -ENOMEM;
	memcpy(more + f->len, text, n + 1);
	f->text = more;
	f->len += (u32)n;
	return 0;
}

int functions__add_torch(struct functions *f)
{
	return add_text(f, "torch\n");
}

static bool is_plain(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return strlen(text) < FIELD_MAX;
}

static int add_function(struct functions *f, const char *module, const char *name, const char *domain, u32 color)
{
	char line[3 * FIELD_MAX + 16];

	if (!*module || !*name || !is_plain(module) || !is_plain(name) || !is_plain(domain)) {
		cmd__error("'%.100s:%.100s' is no name of a function: MODULE:QUALNAME, " EXAMPLE, module, name);
		return -EINVAL;
	}
	snprintf(line, sizeof(line), "%s\t%s\t%s\t%x\n", module, name, domain, color);
	return add_text(f, line);
}

int functions__add(struct functions *f, const char *name)
{
	size_t len = strcspn(name, ":");
	char *module = strndup(name, len);
	int err = module ? add_function(f, module, name[len] ? name + len + 1 : "", "", 0) : -ENOMEM;

	free(module);
	return err;
}

/* The names that Nsight's examples use; matplotlib's values, as NVTX's Python package has them. */
static const struct {
	const char *name;
	u32 color;
} colors[] = {
	{ "black", 0x000000 },	{ "white", 0xffffff },	 { "red", 0xff0000 },	 { "green", 0x008000 },
	{ "blue", 0x0000ff },	{ "yellow", 0xffff00 },	 { "orange", 0xffa500 }, { "purple", 0x800080 },
	{ "cyan", 0x00ffff },	{ "magenta", 0xff00ff }, { "gray", 0x808080 },	 { "grey", 0x808080 },
	{ "rapids", 0x7400ff }, { "pink", 0xffc0cb },	 { "brown", 0xa52a2a },	 { "lime", 0x00ff00 },
};

/* "red", "0xFF0000", "#FF0000", "FF0000" or a number; 0: none of these */
static u32 color_of(const cJSON *object)
{
	const cJSON *c = cJSON_GetObjectItemCaseSensitive(object, "color");
	const char *text = cJSON_IsString(c) ? c->valuestring : "";
	unsigned long value;
	char *end;

	if (cJSON_IsNumber(c) && c->valuedouble >= 0 && c->valuedouble <= UINT32_MAX)
		return OPAQUE | (u32)c->valuedouble;
	for (u32 i = 0; i < ARRAY_LEN(colors); i++)
		if (!strcasecmp(colors[i].name, text))
			return OPAQUE | colors[i].color;
	text += *text == '#';
	value = strtoul(text, &end, 16);
	return *text && !*end && value <= UINT32_MAX ? OPAQUE | (u32)value : 0;
}

static const char *text_of(const cJSON *object, const char *name, const char *otherwise)
{
	const char *text = json__text(object, name);

	return text ? text : otherwise;
}

/* One object of the file. */
static int add_entry(struct functions *f, const cJSON *entry)
{
	const char *module = text_of(entry, "module", ""), *domain = text_of(entry, "domain", "");
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(entry, "functions"), *item;
	u32 color = color_of(entry);
	int err = 0;

	if (!*module || !cJSON_IsArray(list)) {
		cmd__error("an entry lacks \"module\" or the list \"functions\"");
		return -EINVAL;
	}
	cJSON_ArrayForEach(item, list)
	{
		const char *name = cJSON_IsString(item) ? item->valuestring :
							  text_of(item, "function", text_of(item, "name", ""));
		u32 own = cJSON_IsObject(item) ? color_of(item) : 0;

		err = add_function(f, module, name, text_of(item, "domain", domain), own ? own : color);
		if (err)
			break;
	}
	return err;
}

static int add_json(struct functions *f, const char *text)
{
	cJSON *all = cJSON_Parse(text);
	const cJSON *entry;
	int err = 0;

	if (!cJSON_IsArray(all)) {
		cmd__error("it is no JSON list of objects with \"module\" and \"functions\"");
		err = -EINVAL;
	}
	cJSON_ArrayForEach(entry, all)
	{
		err = err ? err : add_entry(f, entry);
	}
	cJSON_Delete(all);
	return err;
}

int functions__add_file(struct functions *f, const char *path)
{
	char *text = calloc(1, FILE_MAX + 1);
	int fd = file__open_regular(path), err = fd < 0 ? fd : text ? 0 : -ENOMEM;
	ssize_t n = 0;

	if (fd >= 0 && text)
		n = read(fd, text, FILE_MAX);
	if (n < 0)
		err = -errno;
	else if (n == FILE_MAX)
		err = -EFBIG;
	if (err)
		cmd__error("--functions-trace: %s: %s", path, cmd__reason(err));
	else
		err = add_json(f, text);
	if (err == -EINVAL)
		cmd__error("--functions-trace: %s is not used", path);
	if (fd >= 0)
		close(fd);
	free(text);
	return err;
}
