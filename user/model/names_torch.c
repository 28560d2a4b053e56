// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of PyTorch's operators, backward nodes and ranges as torch.profiler prints them: operators without the
 * overload, nodes by their class.
 */
#include <stdio.h>
#include <string.h>

#include "model/demangle.h"
#include "model/names_private.h"

int names__feed_torch(struct names *n, const struct view *v)
{
	bool is_class = !strcmp(v->event->name, "torch_class");
	struct kernel_key key = { (u64)view__get(v, is_class ? "vtable" : "handle"), (u64)view__get(v, "pid") };
	char mangled[128], name[256];
	const char *text;
	u32 len;

	text = view__text(v, schema_event__field(v->event, "name"), &len);
	if (!is_class)
		return recent_texts__set(&n->torch, &key, text, len);
	/* a type's name is mangled without the prefix of a symbol */
	snprintf(mangled, sizeof(mangled), "_Z%.*s", (int)len, text);
	demangle__short(mangled, name, sizeof(name));
	if (!strncmp(name, "_Z", 2))
		memmove(name, name + 2, strlen(name) - 1);
	return recent_texts__set(&n->torch, &key, name, (u32)strlen(name));
}

/* Returns the name of an operator or class by the field that holds its address; NULL: not known. */
static const char *by_address(const struct names *n, const struct view *v, const char *field)
{
	struct kernel_key key = { (u64)view__get(v, field), names__number(n, (u32)view__get(v, "pid")) };

	/* each name is sent once, so its use is marked; callers do not see this */
	return key.number ? recent_texts__use((struct recent_texts *)&n->torch, &key) : NULL;
}

/* "aten::add.Tensor" is "aten::add" */
static const char *operator_name(const struct names *n, const struct view *v, char *buf, size_t size)
{
	bool is_boxed = view__get(v, "handle");
	const char *name = is_boxed ? by_address(n, v, "handle") : names__probe(n, (u16)view__get(v, "probe"));
	const char *scope = name ? strstr(name, "::") : NULL;

	if (!name)
		return NULL;
	/* the name of a library of operators may have a dot */
	snprintf(buf, size, "%.*s", (int)(strcspn(scope ? scope : name, ".") + (size_t)(scope ? scope - name : 0)),
		 name);
	return buf;
}

/*
 * "torch::autograd::generated::AddmmBackward0" is "AddmmBackward0", as these classes name themselves; others have their
 * namespaces.
 */
static const char *class_name(const struct names *n, const struct view *v, char *buf, size_t size)
{
	static const char generated[] = "torch::autograd::generated::";
	const char *name = by_address(n, v, "vtable");

	if (!name || !*name)
		return NULL;
	snprintf(buf, size, "%s", name + (strncmp(name, generated, sizeof(generated) - 1) ? 0 : sizeof(generated) - 1));
	return buf;
}

const char *names__torch(const struct names *n, const struct view *v, char *buf, size_t size)
{
	const char *kind = v->event->name, *text;
	u32 len;

	if (!strcmp(kind, "torch_op"))
		return operator_name(n, v, buf, size);
	if (!strcmp(kind, "torch_node") || !strcmp(kind, "torch_class"))
		return class_name(n, v, buf, size);
	if (!strcmp(kind, "torch_collective")) {
		text = names__probe(n, (u16)view__get(v, "probe"));
		snprintf(buf, size, "%s", text ?: "");
		return text ? buf : NULL;
	}
	/* as torch.profiler names them */
	if (!strcmp(kind, "torch_step")) {
		snprintf(buf, size, "ProfilerStep#%llu", (u64)view__get(v, "step"));
		return buf;
	}
	if (strcmp(kind, "torch_range") != 0)
		return NULL;
	text = view__text(v, schema_event__field(v->event, "name"), &len);
	snprintf(buf, size, "%.*s", (int)len, text);
	return *buf ? buf : NULL;
}
