/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An ELF file, untrusted: what the attacher and the families' host code need of
 * it. Addresses are the file's own (before relocation), offsets are in the file.
 */
#ifndef SONDE_ELF_ELF_H
#define SONDE_ELF_ELF_H

#include <stddef.h>

#include "core/types.h"

struct elf;

struct elf_symbol {
	const char *name; /* lives as long as the elf */
	u64 addr;
	u64 size;
	u64 offset; /* of its first byte in the file */
	bool dynamic; /* from .dynsym */
	bool default_version; /* not hidden behind name@VERSION */
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
};

/* fd stays the caller's and must stay open. 0, -ENOEXEC (not an ELF file of this machine, or damaged) or negative errno. */
int elf__open(struct elf **out, int fd);
/* As elf__open, of any machine: for looking at files alone. */
int elf__open_any(struct elf **out, int fd);
void elf__close(struct elf *elf);
/*
 * Contents are read as they are asked for and kept: 256 MiB of a file and 384 MiB of all that are open at most. What is
 * over that is not there, and the file is marked.
 */
bool elf__over_budget(const struct elf *elf);
/* Bytes held of the file, and of all. */
u64 elf__held(const struct elf *elf);
u64 elf__all_held(void);
/* Gives them back: names and bytes that were handed out are gone, and so is what was added. 0, or it can't be read any more. */
int elf__trim(struct elf *elf);
/* Is it for this machine? */
bool elf__is_native(const struct elf *elf);
/* EM_... */
u16 elf__machine(const struct elf *elf);

/*
 * Defined symbols: of .dynsym, then of .symtab, then those that elf__add_debugdata
 * and elf__add_debug have added, where a symbol may come again. fn returning
 * non-zero ends it and is returned.
 */
int elf__each_symbol(struct elf *elf, int (*fn)(const struct elf_symbol *sym, void *arg), void *arg);
/* The first in that order whose version is the default. 0 or -ENOENT. */
int elf__find_symbol(struct elf *elf, const char *name, struct elf_symbol *out);
/* The same for n names, sorted by strcmp, in one pass. out[i].name is NULL where there is none; returns how many are missing. */
u32 elf__find_symbols(struct elf *elf, const char *const *names, u32 n, struct elf_symbol *out);
/* Has the file no .symtab of its own? */
bool elf__stripped(struct elf *elf);
/* Do the names of symbols that are not dynamic hold this text? Cheaper than looking at each. */
bool elf__names_hold(struct elf *elf, const char *text);

/* Adds the symbols that .gnu_debugdata (a compressed ELF file inside the file) has. 0, -ENOENT: none, or negative errno. */
int elf__add_debugdata(struct elf *elf);
/*
 * Adds the symbols of a separate debug file; takes fd in any case. It must have
 * the same build id, or, for a file without one, this checksum (of .gnu_debuglink;
 * NULL: none is known). 0, -ESTALE: another file's, or negative errno.
 */
int elf__add_debug(struct elf *elf, int fd, const u32 *crc);
/* .gnu_debuglink: the debug file's name (a plain file name) and checksum. 0 or -ENOENT. */
int elf__debuglink(struct elf *elf, char *name, size_t len, u32 *crc);
/* Does a section of this name hold this text, in its first 256 MiB? text "": is there such a section with bytes? */
bool elf__section_holds(struct elf *elf, const char *section, const char *text);
/* Does the file want the library, whose name begins like this, at run time (DT_NEEDED)? */
bool elf__needs(struct elf *elf, const char *library);
/* DT_SONAME, "" if there is none; lives as long as the elf. */
const char *elf__soname(struct elf *elf);
/* Does it ask for a dynamic linker, as programs do? */
bool elf__is_program(const struct elf *elf);
/* Does the file define this version of symbols, as glibc does "GLIBC_2.34"? */
bool elf__defines_version(struct elf *elf, const char *name);
/* The versions that it needs of others' symbols. fn returning non-zero ends it and is returned. */
int elf__each_needed_version(struct elf *elf, int (*fn)(const char *version, void *arg), void *arg);

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
 * How to get from a place in a function to its caller, by .eh_frame: the canonical frame address (CFA) is a register
 * plus a number, and the return address stands right below it (x86-64).
 */
struct elf_unwind {
	bool by_frame_pointer; /* CFA is rbp + cfa, else rsp + cfa */
	bool saved; /* the caller's rbp stands at CFA + frame_pointer; else it is still in rbp */
	bool outermost; /* there is no caller */
	s32 cfa, frame_pointer;
};
/* 0, -ENOENT: no table says, or -ENOTSUP: it takes more than such a number */
int elf__unwind(struct elf *elf, u64 addr, struct elf_unwind *out);
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
