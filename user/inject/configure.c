// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Passes the names of functions to the shim: they are written into a buffer of its own data. The process may contain
 * any library of that name, so the buffer is known by its first bytes. A process that lies about them gets a text,
 * which names what root asked for, at another place of its own memory.
 */
#include "inject/load.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/shim_functions.h"

#define LIBRARY "libsonde-cupti.so"
#define SYMBOL	"sonde_cupti_functions_configuration"

/* The address of the buffer in the process; 0: there is none. */
static u64 find_buffer(struct space *s)
{
	struct code *shim = space__library(s, LIBRARY);
	const char *name = SYMBOL;
	struct shim_configuration c;
	struct elf_symbol symbol;
	u64 at;

	if (!shim || !code__open(s, shim) || foreign_file__find_symbols(&shim->file, &name, 1, &symbol) ||
	    !symbol.name || symbol.size < sizeof(struct shim_configuration))
		return 0;
	at = symbol.addr + shim->bias;
	if (!space__copy(s, at, &c, offsetof(struct shim_configuration, text)) ||
	    memcmp(c.magic, SHIM_CONFIGURATION, sizeof(c.magic)))
		return 0;
	return at;
}

bool configure__functions(u32 pid, int memory, const char *functions, char *why, size_t len)
{
	struct space s = SPACE_NONE;
	u32 size = (u32)strlen(functions), none = 0;
	u64 at, size_at;
	bool done;

	at = size < SHIM_CONFIGURATION_BYTES && !space__read(&s, pid) ? find_buffer(&s) : 0;
	size_at = at + offsetof(struct shim_configuration, size);
	s.memory = memory;
	/* the size last: the shim may read meanwhile for another tracer */
	done = at && space__write(&s, size_at, &none, sizeof(none)) &&
	       space__write(&s, at + offsetof(struct shim_configuration, text), functions, size) &&
	       space__write(&s, size_at, &size, sizeof(size));
	if (!done)
		snprintf(why, len, "%s",
			 at ? "the names of the functions can't be written into its memory" :
			      "its library of sonde is too old to trace functions: restart the process");
	/* the caller's */
	s.memory = -1;
	space__free(&s);
	return done;
}
