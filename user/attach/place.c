// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An instruction that the kernel emulates costs a trap (0.7 us where this was
 * measured); any other is copied out of line and single-stepped, more than ten
 * times that in a virtual machine. Source: arch/x86/kernel/uprobes.c,
 * branch_setup_xol_ops() and push_setup_xol_ops(), Linux 6.1 to 6.18.
 */
#include "attach/place.h"

#include <string.h>

bool place__emulated(const u8 *code, u64 len)
{
	if (len < 2)
		return false;
	if (code[0] >= 0x50 && code[0] <= 0x57) /* push %reg */
		return true;
	if (code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57) /* push %r8..%r15 */
		return true;
	if (code[0] == 0x90) /* nop */
		return true;
	if (code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb) /* call, jmp */
		return true;
	if (code[0] >= 0x70 && code[0] <= 0x7f) /* jcc rel8 */
		return true;
	return code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f; /* jcc rel32 */
}

u32 place__entry(const u8 *code, u64 len)
{
	static const u8 endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (len < sizeof(endbr64) || memcmp(code, endbr64, sizeof(endbr64)))
		return 0;
	return place__emulated(code + 4, len - 4) ? 4 : 0;
}
