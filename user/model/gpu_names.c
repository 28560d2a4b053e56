// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* C++ names of kernels: demangled in full, and short. */
#include "model/gpu_private.h"

#include "model/demangle.h"
#include "util/array.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MANGLED_MAX 4000 /* bytes of the longest name that the shim passes on */
#define CACHED_MAX  (64u << 10) /* names */
#define BYTES_MAX   (64u << 20) /* of all names together */

struct gpu_cpp_name {
	char *full; /* NULL: not demangled, print the mangled name */
	char *brief;
};

/* Returns the index of the bracket that opens what text[at] closes; 0: there is none. */
static size_t opening_bracket(const char *text, size_t at)
{
	int depth = 0;

	for (;; at--) {
		if (text[at] == '>' || text[at] == ')' || text[at] == ']' || text[at] == '}')
			depth++;
		else if ((text[at] == '<' || text[at] == '(' || text[at] == '[' || text[at] == '{') && !--depth)
			return at;
		if (!at)
			return 0;
	}
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

/* Returns the length of `text` without a bracketed part at its end. */
static size_t cut_brackets(const char *text, size_t len, char close)
{
	return len && text[len - 1] == close ? opening_bracket(text, len - 1) : len;
}

/* CUTLASS has one function for all kernels; its template argument names the kernel. */
static bool is_generic(const char *name, size_t len)
{
	return (len == 6 && !memcmp(name, "Kernel", 6)) || (len == 7 && !memcmp(name, "Kernel2", 7));
}

/* Returns the first template argument without its namespace and its own arguments. */
static char *first_argument(const char *text, size_t len)
{
	size_t start = 0, n = 0;

	for (; n < len && !strchr(",<>( ", text[n]); n++)
		if (text[n] == ':')
			start = n + 1;
	return n > start ? strndup(text + start, n - start) : NULL;
}

/*
 * Returns where the function is "operator<" or the like, whose brackets have no counterpart; len: it is none. One
 * within brackets is of a parameter.
 */
static size_t operator_in(const char *text, size_t len)
{
	int depth = 0;

	for (size_t i = 0; i + 8 < len; i++) {
		if (!depth && !memcmp(text + i, "operator", 8) && (!i || text[i - 1] == ':' || text[i - 1] == ' ') &&
		    strchr("<>=(", text[i + 8]))
			return i;
		depth += strchr("<([{", text[i]) ? 1 : strchr(">)]}", text[i]) ? -1 : 0;
	}
	return len;
}

/* Returns the short name: "gemm" for "void a::b<int>::gemm<128>(float*) const [clone .x]". */
static char *brief_of(const char *text)
{
	static const char *const tails[] = { " const", " volatile", " &", " &&" };
	size_t len = strlen(text), start, end, i;

	while (len && text[len - 1] == ']')
		for (len = cut_brackets(text, len, ']'); len && text[len - 1] == ' ';)
			len--;
	for (i = 0; i < ARRAY_LEN(tails); i++)
		if (ends_with(text, len, tails[i]))
			len -= strlen(tails[i]);
	len = cut_brackets(text, len, ')');
	start = operator_in(text, len);
	if (start < len)
		return strndup(text + start, len - start);
	end = len;
	len = cut_brackets(text, len, '>');
	for (start = len; start && !strchr(" :>)", text[start - 1]); start--)
		;
	if (is_generic(text + start, len - start) && end > len + 2)
		return first_argument(text + len + 1, end - len - 2);
	return len > start ? strndup(text + start, len - start) : NULL;
}

/* Demangles a name, once with parameters and once without, for the short name. */
static int fill(struct gpu_model *m, struct gpu_cpp_name *n, const char *mangled)
{
	struct demangled *w;
	size_t len = strlen(mangled);

	if (len > MANGLED_MAX || strncmp(mangled, "_Z", 2))
		return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	if (demangle(w, mangled, DMGL_PARAMS | DMGL_ANSI)) {
		n->full = strdup(w->text);
		m->text_bytes += w->len;
		if (demangle(w, mangled, DMGL_NO_OPTS))
			n->brief = brief_of(w->text);
	}
	free(w);
	return 0;
}

static const struct gpu_cpp_name *name_of(struct gpu_model *m, const char *mangled)
{
	XXH128_hash_t hash = XXH3_128bits(mangled, strlen(mangled));
	struct gpu_cpp_name *n;

	if (!m->demangled.key_size)
		map__init(&m->demangled, sizeof(hash), sizeof(*n));
	n = map__find(&m->demangled, &hash);
	if (n || m->demangled.n >= CACHED_MAX || m->text_bytes > BYTES_MAX)
		return n;
	n = map__get(&m->demangled, &hash);
	return n && !fill(m, n, mangled) ? n : NULL;
}

const char *gpu_model__demangled(struct gpu_model *m, const char *mangled)
{
	const struct gpu_cpp_name *n = mangled ? name_of(m, mangled) : NULL;

	return n && n->full ? n->full : mangled;
}

const char *gpu_model__short_name(struct gpu_model *m, const char *mangled)
{
	const struct gpu_cpp_name *n = mangled ? name_of(m, mangled) : NULL;

	return n && n->brief ? n->brief : mangled;
}

void gpu_names__free(struct gpu_model *m)
{
	u32 i;

	for (i = 0; i < m->demangled.n; i++) {
		struct gpu_cpp_name *n = map__value(&m->demangled, i);

		free(n->full);
		free(n->brief);
	}
	map__free(&m->demangled);
}
