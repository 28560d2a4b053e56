// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The user who runs a container, which may be any user, chooses the names of cgroups. So only characters that occur
 * in ids are accepted, and all lengths are limited.
 */
#include "process/container.h"

#include "util/array.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ID_LEN	64 /* of docker, containerd, CRI-O, podman */
#define ID_SHOW 12
#define UID_LEN 36 /* of a pod: 8-4-4-4-12 */

/* Prefixes of the id in the last component of a path, as in "docker-ID.scope" or "libpod_ID". */
static const struct {
	const char *prefix;
	const char *runtime;
} runtimes[] = {
	{ "docker", "docker" },	     { "cri-containerd", "containerd" },
	{ "nerdctl", "containerd" }, { "crio", "crio" },
	{ "libpod", "podman" },	     { "podman", "podman" },
	{ "cri-dockerd", "docker" },
};

static bool is_id(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)p[i]) && (p[i] < 'a' || p[i] > 'f'))
			return false;
	return n == ID_LEN;
}

/* The length of a name that a person chose: the usual characters only. */
static size_t name_length(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && i < 32 && (isalnum((unsigned char)p[i]) || p[i] == '-' || p[i] == '_' || p[i] == '.'))
		i++;
	return i;
}

static const char *runtime_of(const char *p, size_t n)
{
	for (u32 i = 0; i < ARRAY_LEN(runtimes); i++)
		if (strlen(runtimes[i].prefix) == n && !memcmp(runtimes[i].prefix, p, n))
			return runtimes[i].runtime;
	return NULL;
}

static void set_name(struct container *out, const char *runtime, const char *id, size_t n)
{
	snprintf(out->name, sizeof(out->name), "%s%s%.*s", runtime, *runtime ? "-" : "", (int)n, id);
}

/* "pod0123-..", "kubepods-besteffort-pod0123_..slice": systemd's names have '_' for '-' */
static void parse_pod(struct container *out, const char *part, size_t n)
{
	const char *p = part;
	char uid[UID_LEN + 1];

	if (n > 9 && !memcmp(part, "kubepods-", 9))
		while (p + 4 <= part + n && memcmp(p, "-pod", 4))
			p++;
	p += *p == '-';
	if (p + 3 + UID_LEN > part + n || memcmp(p, "pod", 3))
		return;
	p += 3;
	for (u32 i = 0; i < UID_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? p[i] != '-' && p[i] != '_' : !isxdigit((unsigned char)p[i]))
			return;
		uid[i] = dash ? '-' : tolower((unsigned char)p[i]);
	}
	uid[UID_LEN] = '\0';
	snprintf(out->pod, sizeof(out->pod), "%s", uid);
}

/* The last 64 characters before ".scope", and the prefix before them; parent: the component above. */
static bool parse_id(struct container *out, const char *part, size_t n, const char *parent, size_t parent_n)
{
	const char *runtime = NULL;

	if (n > 6 && !memcmp(part + n - 6, ".scope", 6))
		n -= 6;
	if (n < ID_LEN || !is_id(part + n - ID_LEN, ID_LEN))
		return false;
	if (n == ID_LEN)
		runtime = runtime_of(parent, parent_n);
	else if (part[n - ID_LEN - 1] == '-' || part[n - ID_LEN - 1] == '_' || part[n - ID_LEN - 1] == ':')
		runtime = runtime_of(part, n - ID_LEN - 1);
	else
		return false;
	/* "kubepods-..slice:cri-containerd:ID": runc's name of a systemd unit, used as a path */
	if (!runtime && n > ID_LEN + 15 && !memcmp(part + n - ID_LEN - 15, "cri-containerd:", 15))
		runtime = "containerd";
	if (!runtime && n > ID_LEN + 5 && !memcmp(part + n - ID_LEN - 5, "crio:", 5))
		runtime = "crio";
	set_name(out, runtime ? runtime : "", part + n - ID_LEN, ID_SHOW);
	return true;
}

/* Containers that have names and no ids. */
static void parse_named(struct container *out, const char *part, size_t n, const char *parent, size_t parent_n)
{
	static const char payload[] = "lxc.payload.", machine[] = "machine-";
	size_t len;

	if (n > sizeof(payload) - 1 && !memcmp(part, payload, sizeof(payload) - 1)) {
		len = name_length(part + sizeof(payload) - 1, n - (sizeof(payload) - 1));
		set_name(out, "lxc", part + sizeof(payload) - 1, len);
	} else if (parent_n == 3 && !memcmp(parent, "lxc", 3)) {
		len = name_length(part, n);
		if (len)
			set_name(out, "lxc", part, len);
	} else if (parent_n == 13 && !memcmp(parent, "machine.slice", 13) && n > sizeof(machine) - 1 + 6 &&
		   !memcmp(part, machine, sizeof(machine) - 1) && !memcmp(part + n - 6, ".scope", 6)) {
		len = name_length(part + sizeof(machine) - 1, n - (sizeof(machine) - 1) - 6);
		set_name(out, "machine", part + sizeof(machine) - 1, len);
	}
}

void container__parse(struct container *out, const char *path)
{
	const char *parent = "", *part;
	size_t parent_n = 0, n;
	bool by_id = false;

	memset(out, 0, sizeof(*out));
	/* the innermost container wins, and an id wins over a name */
	for (part = path; *part; part += n) {
		part += strspn(part, "/");
		n = strcspn(part, "/");
		parse_pod(out, part, n);
		if (parse_id(out, part, n, parent, parent_n))
			by_id = true;
		else if (!by_id)
			parse_named(out, part, n, parent, parent_n);
		parent = part;
		parent_n = n;
	}
}

/* The preference for a line "NUMBER:CONTROLLERS:PATH" among lines that name no container. */
static u32 weight_of(const char *line, const char *path)
{
	if (!strcmp(path, "/"))
		return 1;
	if (!strncmp(line, "0::", 3))
		return 4;
	return strstr(line, ":name=systemd:") ? 3 : 2;
}

void container__read(struct container *out, const char *text, char *buf, size_t size)
{
	u32 best = 0, weight;

	memset(out, 0, sizeof(*out));
	buf[0] = '\0';
	while (*text) {
		struct container c;
		size_t n = strcspn(text, "\n");
		char line[4352];
		char *path;

		snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line) - 1), text);
		text += n + (text[n] == '\n');
		path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (!path)
			continue;
		path++;
		container__parse(&c, path);
		weight = weight_of(line, path) + (*c.name || *c.pod ? 8 : 0);
		if (weight <= best)
			continue;
		best = weight;
		*out = c;
		snprintf(buf, size, "%s", path);
	}
}
