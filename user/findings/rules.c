// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads rules and finds the one for a frame. Paths are compared part by part: a table leads from the first part of a
 * rule's file, "queue.py" or "gunicorn", to the rules that begin with it, so more rules take no more time.
 */
#include "findings/rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema_build.h"
#include "util/array.h"
#include "util/map.h"
#include "util/path.h"

#include "library.rules.inc"

#define RULES_MAX 4096u /* of one text */
#define WORDS_MAX 128u /* of a line */
#define PARTS_MAX 64u /* of a path; a target may choose longer ones */

/* The rules of one text */
struct rule_set {
	struct rule_set *next;
	const char *name;
	char *text; /* the rules point into it */
	struct rule *list;
	u32 n;
	struct map by_part; /* u64 hash of the first part of `file` -> u32 number of its last rule, from 1 */
	char *err;
	size_t err_len;
};

static struct rule_set *added, *own;

/* Writes "NAME:LINE: what is wrong"; -EINVAL. */
#define FAIL(s, line, format, ...) \
	schema__fail((s)->err, (s)->err_len, -EINVAL, "%s:%u: " format, (s)->name, line, ##__VA_ARGS__)

static const char *const roles[RULE_ROLES] = {
	[RULE_CALLED] = "called",
	[RULE_POOL] = "pool",
	[RULE_RUNS] = "runs",
	[RULE_SERVES] = "serves",
	[RULE_LOOPS] = "loops",
	[RULE_TASK] = "task",
	[RULE_SENDS] = "sends",
	[RULE_NATIVE] = "native",
	[RULE_NATIVE_LOOPS] = "native-loops",
	[RULE_NATIVE_RUNS] = "native-runs",
	[RULE_GREENLETS] = "greenlets",
};

/* What a wait in a library can be for */
static const u8 kinds[] = {
	FINDING_IDLE,	   FINDING_PEER,  FINDING_QUEUE,     FINDING_RESULT,   FINDING_CHILD,
	FINDING_CONDITION, FINDING_LOCK,  FINDING_SEMAPHORE, FINDING_BARRIER,  FINDING_LOADER,
	FINDING_RANKS,	   FINDING_SLEEP, FINDING_DISK,	     FINDING_GPU_WAIT, FINDING_BACKWARD,
};

static bool is_pattern(const char *word)
{
	return strchr(word, '*') != NULL;
}

static bool is_of_task(const struct rule *r)
{
	return r->role == RULE_TASK || r->role == RULE_SENDS;
}

/* As fnmatch(), but most texts that do not match are found by the pattern's start and end, which takes less time. */
static bool has_pattern(const char *pattern, const char *text)
{
	size_t start = strcspn(pattern, "*[?\\");
	const char *end = strrchr(pattern, '*') + 1;

	return !strncmp(pattern, text, start) && (strpbrk(end, "[?\\") || path__ends_with(text, end)) &&
	       !fnmatch(pattern + start, text + start, 0);
}

/* "get" matches Queue.get, and get in older Pythons, which have no qualified names. A pattern is for the whole name. */
static bool has_function(const struct rule *r, const char *name)
{
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

	for (u32 i = 0; i < r->n_functions; i++)
		if (is_pattern(r->functions[i]) ? has_pattern(r->functions[i], name) : !strcmp(r->functions[i], last))
			return true;
	return !r->n_functions;
}

/* at: the path from the part on with which the rule's file begins */
static bool has_file(const struct rule *r, const char *path, const char *at)
{
	size_t len = strlen(r->file);

	if (is_pattern(r->file))
		return has_pattern(r->file, path);
	return !strncmp(at, r->file + 1, len - 1) && (r->file[len - 1] == '/' || !at[len - 1]);
}

/* Returns the hash of the path's first part; rules with a pattern are those of part "*". */
static u64 hash_part(const char *path)
{
	return map__hash_bytes(path, strcspn(path, "/"));
}

/* Is the rule for a module at the top of the standard library, and the function in the user's own queue.py? */
static bool is_namesake(const struct rule_set *s, const struct rule *r, const struct stack_frame *f)
{
	return s == own && f->origin >= ORIGIN_SCRIPT && !strchr(r->file + 1, '/') && stack_frame__is_own(f);
}

/* Returns which rule is first in the text: `best`, or one for the frame whose file begins with the part at `at`. */
static const struct rule *first_rule(const struct rule_set *s, const struct rule *best, const struct stack_frame *f,
				     bool of_task, const char *at, u64 part)
{
	const u32 *last = map__find(&s->by_part, &part);
	const struct rule *r;

	for (u32 i = last ? *last : 0; i; i = r->next) {
		r = &s->list[i - 1];
		if ((!best || r < best) && is_of_task(r) == of_task &&
		    (r->role >= RULE_NATIVE) == (f->kind == FRAME_NATIVE) && has_function(r, f->symbol) &&
		    has_file(r, f->file, at) && !is_namesake(s, r, f))
			best = r;
	}
	return best;
}

static const struct rule *find_rule(const struct rule_set *s, const struct stack_frame *f, bool of_task)
{
	const struct rule *best = first_rule(s, NULL, f, of_task, "", hash_part("*"));
	const char *at = f->file;

	for (u32 i = 0; f->kind == FRAME_PYTHON && *at && i < PARTS_MAX; i++) {
		at += *at == '/';
		best = first_rule(s, best, f, of_task, at, hash_part(at));
		at += strcspn(at, "/");
	}
	return best;
}

/* FINDING_KINDS: no wait has such a kind. */
static enum finding_kind kind_of(const char *key)
{
	for (size_t i = 0; i < sizeof(kinds); i++)
		if (!strcmp(key, finding_kind__key(kinds[i])))
			return kinds[i];
	return strcmp(key, "none") ? FINDING_KINDS : FINDING_NONE;
}

static enum rule_role role_of(const char *name)
{
	u32 role = 0;

	while (role < RULE_ROLES && strcmp(name, roles[role]))
		role++;
	return role;
}

/* Each rule has an example, so that none is misspelt or never reached. */
static int check_last(struct rule_set *s)
{
	const struct rule *r = s->n ? &s->list[s->n - 1] : NULL;

	if (!r || r->is_tested)
		return 0;
	return FAIL(s, r->line, "the rule has no test: add a line `test FILE FUNCTION` with a function that it is for");
}

static int push_rule(struct rule_set *s, struct rule *r, char **functions)
{
	u64 part = hash_part(is_pattern(r->file) ? "*" : r->file + 1);
	u32 *last = map__get(&s->by_part, &part);

	r->functions = calloc(r->n_functions + 1, sizeof(*functions));
	if (!last || !r->functions || !array__room(s->list, s->n)) {
		free(r->functions);
		return -ENOMEM;
	}
	memcpy(r->functions, functions, r->n_functions * sizeof(*functions));
	r->next = *last;
	s->list[s->n++] = *r;
	*last = s->n;
	return 0;
}

/* Adds the rule "FILE [FUNCTION..] = KIND [ROLE]". */
static int add_rule(struct rule_set *s, u32 line, char **words, u32 n)
{
	struct rule r = { .file = words[0], .line = line };
	const char *role = roles[RULE_CALLED];
	u32 equals = 0;

	while (equals < n && strcmp(words[equals], "="))
		equals++;
	if (!equals || n - equals < 2 || n - equals > 3)
		return FAIL(s, line, "this is not FILE FUNCTION.. = KIND ROLE, with blanks between the words");
	if (!is_pattern(r.file) && (*r.file != '/' || !r.file[1]))
		return FAIL(s, line, "the file '%s' has neither a / at its start nor a * in it", r.file);
	r.kind = kind_of(words[equals + 1]);
	if (r.kind == FINDING_KINDS)
		return FAIL(s, line, "waits have no kind '%s': docs/adding-a-rule.md lists the kinds",
			    words[equals + 1]);
	role = n - equals == 3 ? words[equals + 2] : role;
	r.role = role_of(role);
	if (r.role == RULE_ROLES)
		return FAIL(s, line, "there is no role '%s': docs/adding-a-rule.md lists the roles", role);
	if (s->n == RULES_MAX)
		return FAIL(s, line, "more than %u rules: make several files of them", RULES_MAX);
	r.n_functions = equals - 1;
	return push_rule(s, &r, words + 1);
}

/* Checks by "test FILE FUNCTION" that the rule before it is the one for this function. */
static int run_test(struct rule_set *s, u32 line, char **words, u32 n)
{
	struct rule *r = s->n ? &s->list[s->n - 1] : NULL;
	const struct rule *found;

	if (!r || n != 3)
		return FAIL(s, line, "a test is `test FILE FUNCTION` after its rule");
	found = find_rule(s,
			  &(struct stack_frame){ .kind = r->role >= RULE_NATIVE ? FRAME_NATIVE : FRAME_PYTHON,
						 .file = words[1],
						 .symbol = words[2] },
			  is_of_task(r));
	r->is_tested = true;
	if (!found)
		return FAIL(s, line, "the test fails: the rule in line %u is not for this function", r->line);
	return found == r ?
		       0 :
		       FAIL(s, line, "the test fails: the rule in line %u is for this function, too, and precedes it",
			    found->line);
}

/* Sets what the last rule's function does, or what a wait in it is for: the rest of a line "words TEXT". */
static int add_words(struct rule_set *s, u32 line, char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	if (!s->n || s->list[s->n - 1].words || !len)
		return FAIL(s, line, "words are a line `words TEXT` after a rule that has none");
	if (len > RULE_WORDS_MAX)
		return FAIL(s, line, "words of more than %u bytes", RULE_WORDS_MAX);
	s->list[s->n - 1].words = text;
	return 0;
}

static int parse_line(struct rule_set *s, u32 line, char *text)
{
	char *words[WORDS_MAX], *rest = NULL;
	char *at;
	u32 n = 0;
	int err;

	text[strcspn(text, "#")] = '\0';
	at = text + strspn(text, " \t");
	if (!strncmp(at, "words ", 6))
		return add_words(s, line, at + 6);
	for (at = strtok_r(text, " \t\r", &rest); at; at = strtok_r(NULL, " \t\r", &rest)) {
		if (n == WORDS_MAX)
			return FAIL(s, line, "more than %u words: make two rules of it", WORDS_MAX);
		words[n++] = at;
	}
	if (!n)
		return 0;
	if (!strcmp(words[0], "test"))
		return run_test(s, line, words, n);
	err = check_last(s);
	return err ? err : add_rule(s, line, words, n);
}

static void free_set(struct rule_set *s)
{
	for (u32 i = 0; i < s->n; i++)
		free(s->list[i].functions);
	free(s->list);
	free(s->text);
	map__free(&s->by_part);
	free(s);
}

/* Reads a text, and adds it at the end of a list. */
static int add(struct rule_set **to, const char *name, const char *text, char *err, size_t len)
{
	struct rule_set *s = calloc(1, sizeof(*s));
	char *at = s ? s->text = strdup(text) : NULL;
	int ret = at ? 0 : -ENOMEM;

	if (!s)
		return ret;
	s->name = name;
	s->err = err;
	s->err_len = len;
	map__init(&s->by_part, sizeof(u64), sizeof(u32));
	for (u32 line = 1; !ret && at; line++)
		ret = parse_line(s, line, strsep(&at, "\n"));
	if (!ret)
		ret = check_last(s);
	if (ret) {
		free_set(s);
		return ret;
	}
	while (*to)
		to = &(*to)->next;
	*to = s;
	return 0;
}

int rules__add(const char *name, const char *text, char *err, size_t len)
{
	return add(&added, name, text, err, len);
}

int rules__add_own(char *err, size_t len)
{
	return own ? 0 : add(&own, "library.rules", page, err, len);
}

static const struct rule *find(const struct stack_frame *f, bool of_task)
{
	const struct rule *r = NULL;

	for (const struct rule_set *s = added; s && !r; s = s->next)
		r = find_rule(s, f, of_task);
	return r || rules__add_own(NULL, 0) ? r : find_rule(own, f, of_task);
}

const struct rule *rule__of(const struct stack_frame *f)
{
	return find(f, false);
}

const struct rule *rule__of_task(const struct stack_frame *f)
{
	return find(f, true);
}
