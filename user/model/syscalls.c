// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/syscalls.h"

#include <stdio.h>
#include <string.h>

/* arch/x86/entry/syscalls/syscall_64.tbl; on other architectures these numbers have other names, or none. */
enum { NR_URETPROBE = 335, NR_UPROBE = 336 };

/* Values of bpf/probes/syscall/syscall.h, repeated because traces outlive headers. */
enum { CALL_X32 = 0x4000, CALL_32 = 0x8000 };

bool syscalls__is_of_probe(const struct schema_field *nr, s64 value)
{
	const char *name;

	if (!nr || (value != NR_URETPROBE && value != NR_UPROBE))
		return false;
	name = schema_field__value_name(nr, value);
	return name && (!strcmp(name, "SYS_uretprobe") || !strcmp(name, "SYS_uprobe"));
}

const char *syscalls__known_name(const struct schema_field *nr, s64 value)
{
	const char *name = nr ? schema_field__value_name(nr, value) : NULL;

	return name && !strncmp(name, "SYS_", 4) ? name + 4 : name;
}

const char *syscalls__title(const struct schema_field *nr, u32 value, char *buf, size_t size)
{
	const char *name = syscalls__known_name(nr, value);

	if (name && !strncmp(name, "SYS32_", 6))
		snprintf(buf, size, "ia32 %s", name + 6);
	else if (name)
		snprintf(buf, size, "%s", name);
	else if (value & CALL_32)
		snprintf(buf, size, "ia32 syscall %u", value & (CALL_32 - 1));
	else if (value & CALL_X32)
		snprintf(buf, size, "x32 syscall %u", value & (CALL_X32 - 1));
	else
		snprintf(buf, size, "syscall %u", value);
	return buf;
}
