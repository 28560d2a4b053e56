// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code: the meter of NVML, and the names of the processes that use GPUs. */
#include "nvml_read.h"

#include <stdio.h>
#include <string.h>

#include "util/path.h"
#include "util/utf8.h"

#define NAMED_MAX 1024 /* processes; further ones have only numbers */

struct state {
	u32 named[NAMED_MAX];
	u32 n;
};

static const char *const devices[] = { "/dev/nvidia*", "/dev/nvidia-caps/*", NULL };

static const struct meter meter = {
	.family = "nvml",
	.process = "sonde-nvml",
	.source = "NVML",
	.comes_with = "NVIDIA's driver",
	.library = "libnvidia-ml.so.1",
	.devices = devices,
	.period = "period",
	.period_ms = 1000,
	.open = nvml__open,
	.read = nvml__read,
};

static void prepare(struct session *s)
{
	session__start_meter(s, &meter);
}

/* Returns the script that an interpreter runs: its first argument that is no option; "": there is none. */
static const char *script_of(const char *command, char *buf, size_t size)
{
	const char *word = strchr(command, ' ');

	while (word && word[1] == '-')
		word = strchr(word + 1, ' ');
	snprintf(buf, size, "%.*s", word ? (int)strcspn(word + 1, " ") : 0, word ? word + 1 : "");
	return path__file_name(buf);
}

/* "python3.11 serve.py" */
static void write_name(struct session *s, char *buf, size_t size, const struct process_image *image)
{
	char script[256], text[512], first[256] = "";
	const char *exe;

	/* the opener can't read the link of each process */
	if (!*image->exe && !session__no_args(s))
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(image->command, " "), image->command);
	exe = path__file_name(*image->exe ? image->exe : first);

	if (path__is_interpreter(image->exe) && !session__no_args(s))
		snprintf(text, sizeof(text), "%.255s %s", exe, script_of(image->command, script, sizeof(script)));
	else
		snprintf(text, sizeof(text), "%.255s", exe);
	utf8__copy(buf, size, text);
}

/* Of a process that the recording does not follow the trace has no name. */
static void name_process(struct session *s, u32 pid)
{
	struct {
		struct nvml_process process;
		char text[128];
	} r = { .process = { .event = session__event(s, ID_nvml_process), .process = pid } };
	struct process_image image;

	if (!session__may_name(s, pid) || session__image(s, pid, &image))
		return;
	write_name(s, r.text, sizeof(r.text), &image);
	session__emit(s, &r, (u32)(sizeof(r.process) + strlen(r.text) + 1));
}

static void event(struct session *s, const struct event *e, u32 size)
{
	const struct nvml_value *v = (const struct nvml_value *)e;
	struct state *state = session__state(s, EVENT_FAMILY(ID_nvml_value));
	u32 i = 0;

	if (e->id != ID_nvml_value || size < sizeof(*v) || !v->process)
		return;
	while (i < state->n && state->named[i] != v->process)
		i++;
	if (i < state->n || state->n == NAMED_MAX)
		return;
	state->named[state->n++] = v->process;
	name_process(s, v->process);
}

FAMILY_HOST(nvml_host) = {
	.name = "nvml",
	.state = sizeof(struct state),
	.range = { "period", 10, 60000 },
	.prepare = prepare,
	.event = event,
};
