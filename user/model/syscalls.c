// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/syscalls.h"

#include <string.h>

/* arch/x86/entry/syscalls/syscall_64.tbl; on other architectures these numbers have other names, or none. */
enum { NR_URETPROBE = 335, NR_UPROBE = 336 };

bool syscalls__is_of_probe(const struct schema_field *nr, s64 value)
{
	const char *name;

	if (!nr || (value != NR_URETPROBE && value != NR_UPROBE))
		return false;
	name = schema_field__value_name(nr, value);
	return name && (!strcmp(name, "SYS_uretprobe") || !strcmp(name, "SYS_uprobe"));
}
