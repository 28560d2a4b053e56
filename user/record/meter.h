/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Meters: values that no BPF program records, and that a child process reads at intervals, such as those of a vendor's
 * library. A family with a meter describes it in its host code; its events are declared like any other family's.
 *
 * The library may be closed source, talk to a driver, hang or crash, and it parses what the driver was given by
 * programs. So the child has no privilege, its system calls are filtered, it opens only the files that the meter names,
 * and it has no descriptor but a socket, over which it sends records. The worker checks each of them. If the child
 * ends, or a query takes too long, the recording continues, and the readings that are missing are counted as lost.
 */
#pragma once

#include "core/event.h"

struct session;
struct meter_child;

struct meter {
	const char *family;
	const char *process; /* the child's name: "sonde-nvml" */
	const char *source; /* in messages: "NVML" */
	const char *comes_with; /* in a message, if the library is missing: "NVIDIA's driver" */
	const char *library; /* it is searched for only where the dynamic linker does, and opened without privileges */
	/* Patterns of the files that the child may open for writing and use ioctl() on; ends with NULL */
	const char *const *devices;
	const char *period; /* the option with the period, in ms */
	u32 period_ms; /* without the option */
	/*
	 * In the child. `open` gets the library's handle of dlopen(3), and sets *state. `read` sends one reading. Both
	 * return 0, or negative errno if the child can do no more, which it has reported by meter__report().
	 */
	int (*open)(struct meter_child *c, void *library, void **state);
	int (*read)(struct meter_child *c, void *state);
};

/* In a family's .prepare: starts the child, unless there is no such library. */
void session__start_meter(struct session *s, const struct meter *m);

/* For a meter's code in the child */
enum meter_report {
	METER_ABSENT = 1, /* there is nothing to read; reported only if the family was requested */
	METER_FAILED, /* something that should be there can't be read */
};
/* ns between two readings */
u64 meter__period(const struct meter_child *c);
/* Queues a record, which is sent with the others of its reading. Its time is the child's CLOCK_MONOTONIC. */
void meter__emit(struct meter_child *c, const void *record, u32 size);
/* A query begins; the worker ends the child if it does not return. is_start: it may take longer. */
void meter__begin_query(struct meter_child *c, const char *name, bool is_start);
void meter__end_query(struct meter_child *c);
void meter__report(struct meter_child *c, enum meter_report what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Counts readings that are missing. */
void meter__missed(struct meter_child *c, u32 readings);
