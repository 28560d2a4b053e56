// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "torch_args.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/path.h"

#define TYPE_MAX    160 /* bytes of a type's text */
#define SUBST_MAX   48
#define NESTING_MAX 12

/* Parses the mangled types of operators' parameters. It fails at a form that they are not known to have. */
struct parser {
	const char *cursor;
	char substitutions[SUBST_MAX][TYPE_MAX]; /* earlier types and prefixes, which S_, S0_, S1_ ... refer to */
	u32 n;
	u32 depth;
	bool failed;
};

static void remember(struct parser *p, const char *text)
{
	if (p->n == SUBST_MAX)
		p->failed = true;
	else
		snprintf(p->substitutions[p->n++], TYPE_MAX, "%s", text);
}

static bool take(struct parser *p, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(p->cursor, text, len))
		return false;
	p->cursor += len;
	return true;
}

static void append(struct parser *p, char *to, const char *text, size_t len)
{
	size_t used = strlen(to);

	if (used + len >= TYPE_MAX) {
		p->failed = true;
		return;
	}
	memcpy(to + used, text, len);
	to[used + len] = '\0';
}

const char *torch_args__name(const char *mangled, const char **name, u32 *len)
{
	char *end;
	unsigned long n = isdigit((unsigned char)*mangled) ? strtoul(mangled, &end, 10) : 0;

	if (!n || n > strlen(end))
		return NULL;
	*name = end;
	*len = (u32)n;
	return end + n;
}

static bool parse_name(struct parser *p, char *out)
{
	const char *name, *rest;
	u32 len;

	rest = torch_args__name(p->cursor, &name, &len);
	if (!rest)
		return false;
	append(p, out, name, len);
	p->cursor = rest;
	return true;
}

static void parse_type(struct parser *p, char *out);

/* Parses the arguments of a template, after their `I` and up to their `E`. */
static void parse_arguments(struct parser *p, char *out)
{
	char type[TYPE_MAX];
	bool first = true;

	append(p, out, "<", 1);
	while (!p->failed && !take(p, "E")) {
		*type = '\0';
		if (take(p, "L")) {
			/* a number, such as Lm3E, is skipped: std::array<bool, 3> becomes "std::array<b, >" */
			const char *end = strchr(p->cursor, 'E');

			if (!end)
				p->failed = true;
			else
				p->cursor = end + 1;
		} else {
			parse_type(p, type);
		}
		if (!first)
			append(p, out, ", ", 2);
		first = false;
		append(p, out, type, strlen(type));
	}
	append(p, out, ">", 1);
}

/* Parses a substitution after its `S`: S_ refers to the first remembered text, S0_ to the second, in base 36. */
static void parse_substitution(struct parser *p, char *out)
{
	u32 i = 0;

	if (*p->cursor != '_') {
		for (; *p->cursor && *p->cursor != '_'; p->cursor++)
			i = i * 36 + (isdigit((unsigned char)*p->cursor) ? *p->cursor - '0' : *p->cursor - 'A' + 10);
		i++;
	}
	if (*p->cursor++ != '_' || i >= p->n) {
		p->failed = true;
		p->cursor--;
		return;
	}
	append(p, out, p->substitutions[i], strlen(p->substitutions[i]));
}

/*
 * Parses a nested name after its `N` and up to its `E`. Later substitutions may refer to each of its prefixes, except
 * `std` and a prefix that is a substitution itself.
 */
static void parse_nested(struct parser *p, char *out)
{
	bool first = true;

	while (!p->failed && !take(p, "E")) {
		if (take(p, "I")) {
			parse_arguments(p, out);
		} else if (first && take(p, "St")) {
			append(p, out, "std", 3);
			first = false;
			continue;
		} else if (first && take(p, "S")) {
			parse_substitution(p, out);
			first = false;
			continue;
		} else {
			if (!first)
				append(p, out, "::", 2);
			if (!parse_name(p, out))
				p->failed = true;
		}
		first = false;
		if (!p->failed)
			remember(p, out);
	}
}

static void parse_type(struct parser *p, char *out)
{
	static const char builtin[] = "bcahstijlmfdvx";
	char inner[TYPE_MAX] = "";

	if (p->failed || ++p->depth > NESTING_MAX) {
		p->failed = true;
		return;
	}
	if (*p->cursor && strchr(builtin, *p->cursor)) {
		append(p, out, p->cursor++, 1);
	} else if (*p->cursor == 'R' || *p->cursor == 'P' || *p->cursor == 'K' || *p->cursor == 'O') {
		char mark = *p->cursor++;

		parse_type(p, inner);
		append(p, out, inner, strlen(inner));
		append(p, out, mark == 'K' ? " const" : mark == 'P' ? "*" : "&", mark == 'K' ? 6 : 1);
		if (!p->failed)
			remember(p, out);
	} else if (take(p, "N")) {
		parse_nested(p, out);
	} else if (take(p, "St")) {
		append(p, out, "std::", 5);
		if (!parse_name(p, out))
			p->failed = true;
		else
			remember(p, out);
		if (!p->failed && take(p, "I")) {
			parse_arguments(p, out);
			remember(p, out);
		}
	} else if (take(p, "S")) {
		parse_substitution(p, out);
		/* the substitution may be a template's name */
		if (!p->failed && take(p, "I")) {
			parse_arguments(p, out);
			remember(p, out);
		}
	} else {
		p->failed = true;
	}
	p->depth--;
}

#define IS_OPTIONAL(type, of) (!strcmp(type, "std::optional<" of ">") || !strcmp(type, "c10::optional<" of ">"))

static bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/*
 * Returns how many general registers a parameter takes if they are free; 0: it is in a floating-point register; -1: it
 * is on the stack; -2: its type is unknown.
 */
static int registers_of(const char *type, u8 *kind)
{
	static const char *const small[] = {
		"b",
		"l",
		"i",
		"c10::SymInt",
		"c10::ScalarType",
		"c10::Layout",
		"c10::MemoryFormat",
		"c10::Device",
		"c10::Storage",
		"std::array<b, >",
	};

	*kind = TORCH_ARG_NONE;
	if (path__ends_with(type, "&")) {
		if (!strcmp(type, "at::Tensor const&") || !strcmp(type, "at::Tensor&"))
			*kind = TORCH_ARG_TENSOR;
		/* c10::optional, before PyTorch 2.2, is left out: its flag comes before the tensor, not after it */
		else if (!strcmp(type, "std::optional<at::Tensor> const&"))
			*kind = TORCH_ARG_OPTIONAL;
		return 1;
	}
	for (u32 i = 0; i < ARRAY_LEN(small); i++)
		if (!strcmp(type, small[i]))
			return 1;
	if (!strcmp(type, "d"))
		return 0;
	if (begins_with(type, "c10::ArrayRef<")) {
		if (!strcmp(type, "c10::ArrayRef<at::Tensor>"))
			*kind = TORCH_ARG_LIST;
		return 2;
	}
	if (begins_with(type, "std::basic_string_view<") || begins_with(type, "c10::basic_string_view<") ||
	    IS_OPTIONAL(type, "l"))
		return 2;
	if (IS_OPTIONAL(type, "b") || IS_OPTIONAL(type, "c10::ScalarType") || IS_OPTIONAL(type, "c10::Layout") ||
	    IS_OPTIONAL(type, "c10::Device") || IS_OPTIONAL(type, "c10::MemoryFormat") || IS_OPTIONAL(type, "d") ||
	    IS_OPTIONAL(type, "c10::SymInt") || IS_OPTIONAL(type, "at::Generator"))
		return 1;
	if (begins_with(type, "c10::OptionalArrayRef<") || begins_with(type, "std::optional<") ||
	    begins_with(type, "c10::optional<"))
		return -1;
	return -2;
}

/* Returns how many words a parameter takes on the stack; 0: not known. */
static u32 stack_words(const char *type, int registers)
{
	return registers > 0 ? (u32)registers : begins_with(type, "c10::OptionalArrayRef<") ? 3 : 0;
}

void torch_args__find(const char *parameters, bool has_result, struct torch_args *out)
{
	struct parser p = { .cursor = parameters };
	u32 next = has_result, word = 1, words;

	memset(out, 0, sizeof(*out));
	/* substitutions in the parameters' types may refer to the prefixes of the function's own name */
	remember(&p, "at");
	remember(&p, "at::_ops");
	remember(&p, "at::_ops::?");
	for (u8 number = 0; *p.cursor && (next < TORCH_ARGS_REGISTERS || word); number++) {
		char type[TYPE_MAX] = "";
		int n;
		u8 kind;

		parse_type(&p, type);
		if (p.failed)
			return;
		n = registers_of(type, &kind);
		if (n == -2)
			return;
		if (n > 0 && next + (u32)n <= TORCH_ARGS_REGISTERS) {
			out->kind[next] = kind;
			out->number[next] = number < 15 ? number : 15;
			next += (u32)n;
		} else if (n && word) {
			/* passed on the stack: not enough registers are left for it; a later, smaller one may fit */
			if (!strcmp(type, "b") && !out->stack_bool)
				out->stack_bool = word < 16 ? (u8)word : 0;
			words = stack_words(type, n);
			word = words && !out->stack_bool ? word + words : 0;
		}
	}
}

bool torch_args__has_result(const char *type)
{
	static const char *const registers[] = {
		"v", "b", "l", "d", "N3c1010ScalarTypeE", "N3c107QSchemeE", "N2at7QSchemeE"
	};

	if (*type == 'R')
		return false;
	for (u32 i = 0; i < ARRAY_LEN(registers); i++)
		if (begins_with(type, registers[i]))
			return false;
	return true;
}

u32 torch_args__results(const char *type)
{
	static const char tensor[] = "N2at6TensorE", tuple[] = "St5tupleIJ";
	u32 n = 1;

	if (begins_with(type, tensor))
		return 1;
	if (!begins_with(type, tuple) || !begins_with(type + sizeof(tuple) - 1, tensor))
		return 0;
	/* the others are substitutions of the first, all alike: S3_ */
	for (type += sizeof(tuple) - 1 + sizeof(tensor) - 1; *type == 'S' && n < 3; n++) {
		type += strcspn(type, "_");
		type += *type == '_';
	}
	return *type == 'E' ? n : 0;
}
