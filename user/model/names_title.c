// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an interpreter runs says more than its own name. docs/reading-a-trace.md has the rules. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/names_private.h"
#include "util/array.h"
#include "util/path.h"
#include "util/utf8.h"

/* Programs that run the file named by their first argument that is not an option. */
static bool is_interpreter(const char *name, size_t len)
{
	static const char *const list[] = { "python", "pypy", "sh", "bash", "dash", "perl", "ruby", "node", "java" };

	/* "python3.13", "python3.13t" */
	if (len > 1 && name[len - 1] == 't' && isdigit((unsigned char)name[len - 2]))
		len--;
	while (len && (isdigit((unsigned char)name[len - 1]) || name[len - 1] == '.'))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (strlen(list[i]) == len && !strncmp(name, list[i], len))
			return true;
	return false;
}

/* The part of a path after its last slash; the path ends at `end`. */
static const char *base_of(const char *text, const char *end)
{
	const char *base = text;

	for (; text < end; text++)
		if (*text == '/' && text + 1 < end)
			base = text + 1;
	return base;
}

/*
 * Sets [*from, *to) to the next argument of a command line, after the one that ends at *to. An argument with blanks is
 * in quotes. false: there is none.
 */
static bool next_argument(const char **from, const char **to)
{
	*from = *to + strspn(*to, "' ");
	*to = *from + strcspn(*from, *from > *to && (*from)[-1] == '\'' ? "'" : " ");
	return *from < *to;
}

/* Options of Python and of shells that have no value, and may be written as one, such as -um */
#define PLAIN_OPTIONS "abBdeEhiIkOPqRstuvx"

/* What a command line runs: a program, or the script or module of an interpreter */
struct command {
	const char *program; /* name of the program without folders, in the command line; NULL: not known */
	const char *from, *to; /* name of what is run, likewise */
	bool is_script, is_module;
};

static bool is_word(const char *from, const char *to, const char *words)
{
	for (size_t n; *words; words += n + !!words[n]) {
		n = strcspn(words, " ");
		if (n == (size_t)(to - from) && !memcmp(words, from, n))
			return true;
	}
	return false;
}

/* The same as find_script() for Perl, Ruby, node and Java */
static bool find_other_script(const char **from, const char **to)
{
	while (next_argument(from, to)) {
		const char *letter = *from + 1 + strspn(*from + 1, "acilnpstTuUwWX0");

		if (**from != '-')
			return true;
		/* a text that is run */
		if ((letter < *to && strchr("eE", *letter)) || is_word(*from, *to, "--eval --print -p"))
			return false;
		if (is_word(*from, *to, "-r --require --import --loader -cp -classpath --class-path") &&
		    !next_argument(from, to))
			return false;
	}
	return false;
}

/* Sets [*from, *to) to the script or module of an interpreter whose name ends at *to. false: there is none. */
static bool find_script(const char **from, const char **to, bool *is_module)
{
	while (next_argument(from, to)) {
		const char *option = *from + 1 + strspn(*from + 1, PLAIN_OPTIONS);
		bool is_last = option + 1 == *to; /* its value is the next argument */

		*is_module = **from == '-' && *option == 'm' && option < *to;
		if (**from != '-' || (*is_module && !is_last)) {
			*from = *is_module ? option + 1 : *from;
			return true;
		}
		if (*from + 1 == *to || (option < *to && *option == 'c'))
			return false;
		if (*is_module)
			return next_argument(from, to);
		if (((is_last && strchr("WX", *option)) || is_word(*from, *to, "--check-hash-based-pycs")) &&
		    !next_argument(from, to))
			return false;
	}
	return false;
}

static struct command command_of(const struct names *n, const struct named_task *t)
{
	const char *exe = path__file_name(names__string(n, t->task.exe));
	const char *from, *to = names__string(n, t->task.command);
	struct command c = { 0 };

	if (!next_argument(&from, &to))
		return c;
	c.program = c.from = base_of(from, to);
	c.to = to;
	if (!is_interpreter(c.from, (size_t)(c.to - c.from)) && !is_interpreter(exe, strcspn(exe, " ")))
		return c;
	c.is_script = is_word(c.from, c.to, "perl ruby node java") ? find_other_script(&from, &to) :
								     find_script(&from, &to, &c.is_module);
	if (c.is_script) {
		c.from = c.is_module ? from : base_of(from, to);
		c.to = to;
	}
	return c;
}

static const struct named_task *imaged(const struct names *n, u32 pid)
{
	return names__imaged(n, names__find(n, pid, 0));
}

bool names__script(const struct names *n, u32 pid, char *buf, size_t size)
{
	const struct named_task *t = imaged(n, pid);
	struct command c = t ? command_of(n, t) : (struct command){ 0 };

	if (c.is_script)
		snprintf(buf, size, "%.*s", (int)(c.to - c.from), c.from);
	else
		utf8__copy(buf, size, t ? path__file_name(names__string(n, t->task.script)) : "");
	return *buf;
}

/* Is it the name of the file, which ends with a NUL, a blank or a quote? The kernel has its first 15 bytes. */
static bool is_file_name(const char *comm, const char *file)
{
	size_t len = strlen(comm);

	return len && path__begins_with(file, comm) &&
	       (len == sizeof(((struct task *)NULL)->comm) - 1 || strchr("' ", file[len]));
}

#define WORDS_MAX 40 /* bytes of a name with words of its command line */

/*
 * Appends what a command such as celery or uwsgi runs: the arguments from `at` on that are words or paths, and no
 * options, numbers, addresses or URLs. What follows an option may be its value, and a secret, so of that only files of
 * Python count.
 */
static void append_words(char *buf, size_t size, const char *at)
{
	size_t len = strlen(buf), room = size < WORDS_MAX ? size : WORDS_MAX;
	bool is_value = false;

	for (const char *from, *to = at; next_argument(&from, &to);) {
		bool is_option = *from == '-', is_file = to - from > 3 && !memcmp(to - 3, ".py", 3);
		bool is_word = !is_option && (!is_value || is_file) && !memmem(from, (size_t)(to - from), "://", 3);
		const char *letter = from;

		is_value = is_option;
		while (letter < to && !isalpha((unsigned char)*letter))
			letter++;
		if (!is_word || letter == to)
			continue;
		from = base_of(from, to);
		if (len + 1 + (size_t)(to - from) >= room)
			return;
		len += (size_t)snprintf(buf + len, size - len, " %.*s", (int)(to - from), from);
	}
}

/* Writes what a process runs that has the name of its file. false: it has another name, or this one is the best. */
static bool command_title(const struct names *n, u32 pid, const char *comm, char *buf, size_t size)
{
	const struct named_task *t = imaged(n, pid);
	const char *exe = t ? path__file_name(names__string(n, t->task.exe)) : "";
	struct command c = t ? command_of(n, t) : (struct command){ 0 };
	bool has_words;

	if (!is_interpreter(comm, strlen(comm)) && !path__begins_with(comm, "python") && !is_file_name(comm, exe) &&
	    (!c.program || (!is_file_name(comm, c.program) && !is_file_name(comm, c.from))))
		return false;
	if (names__script(n, pid, buf, size)) {
		has_words = c.is_script && !c.is_module && !memchr(c.from, '.', (size_t)(c.to - c.from));
	} else {
		/* a program with a Python in it */
		has_words = c.program && t->python_named && !path__is_interpreter(exe);
		utf8__copy(buf, size, comm);
	}
	if (has_words)
		append_words(buf, size, c.to);
	return true;
}

const char *names__cgroup(const struct names *n, u32 pid)
{
	const struct named_task *t = imaged(n, pid);

	return t ? names__string(n, t->task.cgroup) : "";
}

/* Services of the system; a user's session and what it runs are in its slice. */
#define SYSTEM_SLICE "/system.slice/"

char *names__service(const struct names *n, char *buf, size_t size, u32 pid)
{
	const char *container, *pod, *path = names__cgroup(n, pid), *name;

	names__container(n, pid, &container, &pod);
	snprintf(buf, size, "%s", container);
	name = strstr(path, SYSTEM_SLICE);
	if (*container || !name)
		return buf;
	name += strlen(SYSTEM_SLICE);
	snprintf(buf, size, "%.*s", (int)strcspn(name, "/"), name);
	if (!strstr(buf, ".service"))
		*buf = '\0';
	return buf;
}

/*
 * Writes the whole of a title that a process gave itself (setproctitle), such as "gunicorn: master [app:app]": the
 * kernel's name has its first 15 bytes, and its command line begins with it. Names of files seldom have a blank.
 */
static bool own_title(const struct names *n, u32 pid, const char *comm, char *buf, size_t size)
{
	const struct named_task *t = names__find(n, pid, 0);
	const char *command = t ? names__string(n, t->task.command) : "";

	if (strlen(comm) < sizeof(t->task.comm) - 1 || !strchr(comm, ' ') || !path__begins_with(command, comm))
		return false;
	utf8__copy(buf, size, command);
	return true;
}

const char *names__peer_title(const struct names *n, u32 pid)
{
	return recent_texts__find(&n->titles, &(u32){ names__number(n, pid) });
}

const char *names__title(const struct names *n, char *buf, size_t size, u32 pid, u32 tid)
{
	const char *comm = names__comm(n, pid, tid);

	if (!comm)
		return NULL;
	if (!own_title(n, pid, comm, buf, size) && !command_title(n, pid, comm, buf, size))
		utf8__copy(buf, size, comm);
	return buf;
}

const char *names__rank_title(const struct names *n, char *buf, size_t size, u32 pid)
{
	const struct task *t = names__task(n, pid, 0);
	char room[256];
	const char *title = names__title(n, room, sizeof(room), pid, 0);

	if (!t || !t->world_size)
		return NULL;
	snprintf(buf, size, "rank %u: %s", t->rank, title ?: "?");
	return buf;
}

/* Ranks are below it (user/process/rank.h); those of a foreign trace may not be. */
#define RANKS (1 << 24)

s64 names__rank_order(const struct names *n, u32 pid)
{
	const struct task *t = names__task(n, pid, 0);

	return t && t->world_size && t->rank < RANKS ? (s64)t->rank - RANKS : 0;
}
