// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shadow stacks (Intel CET, AMD): a second stack that contains only return addresses. A call that the kernel emulates
 * pushes its return address only to the first stack, and the function's return then faults.
 */
#include <stdio.h>
#include <string.h>

#include "site/place.h"

/* GNU property: set by the linker if all inputs have it. */
#define PROPERTY_NOTE	   5
#define PROPERTY_X86_AND   0xc0000002
#define PROPERTY_X86_SHSTK 2

static bool cpu_has_shadow_stack(void)
{
	char line[8192];
	bool has = false;
	FILE *f;

	f = fopen("/proc/cpuinfo", "re");
	while (f && !has && fgets(line, sizeof(line), f))
		has = !strncmp(line, "flags", 5) && strstr(line, " user_shstk");
	if (f)
		fclose(f);
	return has;
}

/* Parses properties: type, size, data, padded to eight bytes. */
static bool property_shstk(const u8 *p, u64 size)
{
	u32 head[2], bits;

	while (size >= sizeof(head)) {
		u64 len;

		memcpy(head, p, sizeof(head));
		len = sizeof(head) + (((u64)head[1] + 7) & ~7ULL);
		if (len > size)
			return false;
		if (head[0] == PROPERTY_X86_AND && head[1] == sizeof(bits)) {
			memcpy(&bits, p + sizeof(head), sizeof(bits));
			return bits & PROPERTY_X86_SHSTK;
		}
		p += len;
		size -= len;
	}
	return false;
}

bool place__marked_shadow_stack(struct elf *elf)
{
	const u8 *note;
	u32 head[3];
	u64 size;

	note = elf__properties(elf, &size);
	if (!note || size < 16)
		return false;
	memcpy(head, note, sizeof(head));
	if (head[0] != 4 || head[2] != PROPERTY_NOTE || memcmp(note + 12, "GNU", 4) || head[1] > size - 16)
		return false;
	return property_shstk(note + 16, head[1]);
}

bool place__shadow_stack(struct elf *elf)
{
	return cpu_has_shadow_stack() && place__marked_shadow_stack(elf);
}
