// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The causes of gaps as keys and texts. */
#include <stdio.h>

#include "model/gpu_gaps.h"

static const struct phrase {
	const char *key;
	const char *text; /* what the thread did */
	const char *text_with_object; /* the same with the name of the call, file or holder */
} phrases[GAP_CAUSES] = {
	[GAP_GIL] = { "gil", "waited for the GIL", "waited for the GIL, held by %s" },
	[GAP_SYNC] = { "sync", "waited for a device", "waited in %s" },
	[GAP_CUDA] = { "cuda", "was in a CUDA call", "was in %s" },
	[GAP_NCCL] = { "nccl", "was in NCCL", "was in %s of NCCL" },
	[GAP_LIBRARY] = { "library", "was in a library", "was in %s" },
	[GAP_READ] = { "read", "waited for data", "waited for data: %s" },
	[GAP_CALL] = { "syscall", "was in a system call", "was in system call %s" },
	[GAP_LOCK] = { "lock", "waited for a lock", "waited for %s" },
	[GAP_DISK] = { "disk", "waited for the disk", "waited for the disk: %s" },
	[GAP_SLEEP] = { "sleep", "slept", "slept in %s" },
	[GAP_CPU] = { "cpu", "waited for a CPU", "waited for a CPU: %s" },
	[GAP_OFF] = { "off-cpu", "was off the CPU for a reason that was not recorded", "was off the CPU in %s" },
	[GAP_PYTHON] = { "python", "ran Python", "ran Python: %s" },
	[GAP_RUN] = { "on-cpu", "ran on a CPU", "ran on a CPU: %s" },
	[GAP_GC] = { "gc", "collected Python's garbage", "collected Python's garbage: %s" },
	[GAP_QUEUE] = { "queue", "had launched the work already: the device had not begun it",
			"had launched %s already" },
	[GAP_EVENT] = { "event", "had launched the work already: its stream waited for an event",
			"had launched the work already: its stream waited for %s" },
	[GAP_UNKNOWN] = { "unknown", "did something that was not recorded", "did something that was not recorded: %s" },
	[GAP_SHORT] = { "short", "was not examined, as the gaps are too many and too short", "was not examined: %s" },
};

const char *gap_cause__key(enum gap_cause cause)
{
	return phrases[cause].key;
}

char *gap_cause__text(enum gap_cause cause, const char *object, char *buf, size_t size)
{
	const char *with = phrases[cause].text_with_object, *at;

	for (at = with; *at != '%'; at++)
		;
	if (object)
		snprintf(buf, size, "%.*s%s%s", (int)(at - with), with, object, at + 2);
	else
		snprintf(buf, size, "%s", phrases[cause].text);
	return buf;
}
