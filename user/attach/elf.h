/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An ELF file, untrusted: what the attacher and the families' host code need of
 * it. Addresses are the file's own (before relocation), offsets are in the file.
 */
#ifndef SONDE_ATTACH_ELF_H
#define SONDE_ATTACH_ELF_H

#include "core/types.h"

struct elf;

struct elf_symbol {
	const char *name; /* lives as long as the elf */
	u64 addr;
	u64 size;
	u64 offset; /* of its first byte in the file */
	bool dynamic; /* from .dynsym, else from .symtab */
	bool default_version; /* not hidden behind name@VERSION */
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
};

/* fd stays the caller's and must stay open. 0, -ENOEXEC (not an ELF file of this machine, or damaged) or negative errno. */
int elf__open(struct elf **out, int fd);
/* As elf__open, of any machine: for looking at files alone. */
int elf__open_any(struct elf **out, int fd);
void elf__close(struct elf *elf);
/* Is it for this machine? */
bool elf__is_native(const struct elf *elf);
/* EM_... */
u16 elf__machine(const struct elf *elf);

/* Defined symbols of .dynsym, then of .symtab; fn returning non-zero ends it and is returned. */
int elf__each_symbol(struct elf *elf, int (*fn)(const struct elf_symbol *sym, void *arg), void *arg);
/* The default version of a dynamic symbol, else one of .symtab. 0 or -ENOENT. */
int elf__find_symbol(struct elf *elf, const char *name, struct elf_symbol *out);
/* GNU build id in hexadecimal, "" if there is none. */
const char *elf__build_id(struct elf *elf);
/* The note of GNU properties (CET marks and the like), which may be damaged. NULL: none. */
const u8 *elf__properties(struct elf *elf, u64 *size);
/* File offset of an address in a loaded segment; 0 or -ENOENT. */
int elf__offset(struct elf *elf, u64 addr, u64 *offset);
/* Bytes at an address of a loaded segment: *len is cut to what the file has there. NULL if nothing. */
const u8 *elf__bytes(struct elf *elf, u64 addr, u64 *len);
/* The executable PT_LOAD segments; i from 0. false: no more. */
bool elf__text(struct elf *elf, u32 i, u64 *addr, u64 *size);
/* The start and size of the function around addr by .eh_frame_hdr and .eh_frame; 0 or -ENOENT. */
int elf__function_at(struct elf *elf, u64 addr, u64 *start, u64 *size);
/*
 * The calls of the function around addr that an exception may come out of, by its language-specific data (LSDA):
 * fn gets where they stand, [start, start + size), and their landing pad, 0 if the exception goes on to the caller.
 * *has: there is such data. 0, or -ENOENT if it makes no sense.
 */
int elf__each_call_site(struct elf *elf, u64 addr, void (*fn)(u64 start, u64 size, u64 pad, void *arg), void *arg,
			bool *has);
/* Addresses of the PLT stubs (of .plt, .plt.sec, .plt.got) that jump to an imported function. Returns how many were found, max at most. */
u32 elf__plt_stubs(struct elf *elf, const char *name, u64 *addrs, u32 max);
/* Addresses of the words that hold an imported function's address: `call *slot(%rip)` (-fno-plt) goes through them. Likewise. */
u32 elf__got_slots(struct elf *elf, const char *name, u64 *addrs, u32 max);

#endif
