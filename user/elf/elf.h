/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An ELF file, untrusted: what the attacher and the families' host code need from it. Addresses are those in the file
 * (before relocation), offsets are offsets in the file.
 */
#pragma once

#include <stddef.h>

#include "core/types.h"

struct elf;

struct elf_symbol {
	const char *name; /* valid as long as the elf */
	u64 addr;
	u64 size;
	u64 offset; /* of its first byte in the file */
	bool dynamic; /* from .dynsym */
	bool default_version; /* name@@VERSION or without a version, not name@VERSION */
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
};

/*
 * fd stays the caller's and must stay open. Returns 0, -ENOEXEC (not an ELF file for x86-64, or damaged) or
 * negative errno.
 */
int elf__open(struct elf **out, int fd);
void elf__close(struct elf *elf);
/*
 * Was a limit exceeded? Contents are read on demand and cached: at most 256 MiB of one file and 448 MiB of all open
 * files. Contents beyond these limits are treated as missing.
 */
bool elf__over_budget(const struct elf *elf);
/* Cached bytes of the file, and of all files. */
u64 elf__held(const struct elf *elf);
u64 elf__all_held(void);

/*
 * Calls fn for the defined symbols: of .dynsym, then of .symtab, then those that elf__add_debugdata and
 * elf__add_debug have added. A symbol may occur several times. A non-zero result of fn ends the iteration and is
 * returned.
 */
int elf__each_symbol(struct elf *elf, int (*fn)(const struct elf_symbol *sym, void *arg), void *arg);
/* The first symbol in that order whose version is the default. Returns 0 or -ENOENT. */
int elf__find_symbol(struct elf *elf, const char *name, struct elf_symbol *out);
/*
 * The same for n names, sorted by strcmp, in one pass. out[i].name is NULL for a name that is not found; returns the
 * number of these.
 */
u32 elf__find_symbols(struct elf *elf, const char *const *names, u32 n, struct elf_symbol *out);
/* Is this a dynamic symbol of the default version that the file defines? Mostly needs only .gnu.hash. */
bool elf__exports(struct elf *elf, const char *name);
/*
 * The same for a library (a file with a DT_SONAME); any other file may define it as in elf__find_symbol(). The name
 * must outlive the elf.
 */
bool elf__provides(struct elf *elf, const char *name);

/* A function of a symbol table: its name is not read. */
struct elf_function {
	u64 addr;
	u32 size;
	u32 table : 2, name : 30;
};
#define ELF_NAME_MAX ((1u << 30) - 1)
/*
 * Calls fn for the functions of the tables of elf__each_symbol(), reading them in portions that are not cached. A
 * non-zero result of fn ends the iteration and is returned.
 */
int elf__each_function(struct elf *elf, int (*fn)(const struct elf_function *f, void *arg), void *arg);
/* The name's first len - 1 bytes; false: it has none. */
bool elf__function_name(struct elf *elf, const struct elf_function *f, char *name, size_t len);
/* Does the file lack a .symtab of its own? */
bool elf__stripped(struct elf *elf);
/* Does a name of a non-dynamic symbol contain this text? Cheaper than iterating over the symbols. */
bool elf__names_hold(struct elf *elf, const char *text);

/*
 * Adds the symbols of .gnu_debugdata (a compressed ELF file inside the file). Returns 0, -ENOENT (none) or negative
 * errno.
 */
int elf__add_debugdata(struct elf *elf);
/*
 * Adds the symbols of a separate debug file; always takes ownership of fd. The file must have the same build id, or,
 * if there is none, this checksum (of .gnu_debuglink; NULL: unknown). Returns 0, -ESTALE (it belongs to another file)
 * or negative errno.
 */
int elf__add_debug(struct elf *elf, int fd, const u32 *crc);
/* .gnu_debuglink: the debug file's name (a plain file name) and checksum. Returns 0 or -ENOENT. */
int elf__debuglink(struct elf *elf, char *name, size_t len, u32 *crc);
/*
 * Does a section of this name contain this text in its first 256 MiB? text "": is there such a section with contents?
 */
bool elf__section_holds(struct elf *elf, const char *section, const char *text);
/* The address of the first such text there. 0 or -ENOENT. */
int elf__find_text(struct elf *elf, const char *section, const char *text, u64 *addr);
/* The address and size of a section with contents; false: there is none. */
bool elf__section_range(struct elf *elf, const char *name, u64 *addr, u64 *size);
/* Calls fn for each place in read-only memory with this text and its NUL, until it returns false. */
void elf__each_constant(struct elf *elf, const char *text, bool (*fn)(u64 addr, void *arg), void *arg);
/* Calls fn for each place in writable memory that points to the address, until it returns false. */
void elf__each_pointer(struct elf *elf, u64 addr, bool (*fn)(u64 at, void *arg), void *arg);
/* Does the file need a library whose name begins like this (DT_NEEDED)? */
bool elf__needs(struct elf *elf, const char *library);
/* DT_SONAME, "" if there is none; valid as long as the elf. */
const char *elf__soname(struct elf *elf);
/* Does the file name a dynamic linker, as programs do? */
bool elf__is_program(const struct elf *elf);
/* Does the file define this symbol version, as glibc defines "GLIBC_2.34"? */
bool elf__defines_version(struct elf *elf, const char *name);
/*
 * Calls fn for each symbol version that the file needs from other objects. A non-zero result of fn ends the iteration
 * and is returned.
 */
int elf__each_needed_version(struct elf *elf, int (*fn)(const char *version, void *arg), void *arg);

/* GNU build id in hexadecimal, "" if there is none. */
const char *elf__build_id(struct elf *elf);
/* The note of GNU properties (CET marks and the like), which may be damaged. NULL: none. */
const u8 *elf__properties(struct elf *elf, u64 *size);
/* File offset of an address in a loaded segment; 0 or -ENOENT. */
int elf__offset(struct elf *elf, u64 addr, u64 *offset);
/* The address of code at an offset in the file; false: there is no code. */
bool elf__address_of(struct elf *elf, u64 offset, u64 *addr);
/* Bytes at an address of a loaded segment: *len is reduced to what the file has there. NULL: none. */
const u8 *elf__bytes(struct elf *elf, u64 addr, u64 *len);
/* The executable PT_LOAD segments; i from 0. false: i is beyond the last one. */
bool elf__text(struct elf *elf, u32 i, u64 *addr, u64 *size);
/* The start and size of the function around addr by .eh_frame_hdr and .eh_frame; 0 or -ENOENT. */
int elf__function_at(struct elf *elf, u64 addr, u64 *start, u64 *size);
/*
 * How to unwind from an address in a function to its caller, by .eh_frame: the canonical frame address (CFA) is a
 * register plus a number, and the return address is directly below it (x86-64).
 */
struct elf_unwind {
	bool by_frame_pointer; /* CFA is rbp + cfa, else rsp + cfa */
	bool saved; /* the caller's rbp was saved at CFA + frame_pointer; else rbp still has it */
	bool outermost; /* there is no caller */
	s32 cfa, frame_pointer;
};
/* Returns 0, -ENOENT (no table covers addr) or -ENOTSUP (the rule is more complex than a register plus a number). */
int elf__unwind(struct elf *elf, u64 addr, struct elf_unwind *out);
/*
 * The calls in the function around addr through which an exception may pass, from its language-specific data (LSDA).
 * fn gets the range [start, start + size) of the call and the landing pad, 0 if the exception continues to the
 * caller. *has: the function has such data. Returns 0, or -ENOENT if the data is invalid.
 */
int elf__each_call_site(struct elf *elf, u64 addr, void (*fn)(u64 start, u64 size, u64 pad, void *arg), void *arg,
			bool *has);
/*
 * Addresses of the PLT stubs (in .plt, .plt.sec, .plt.got) that jump to an imported function. Returns their number,
 * at most max.
 */
u32 elf__plt_stubs(struct elf *elf, const char *name, u64 *addrs, u32 max);
/* Calls fn for each PLT stub, with the GOT entry through which it jumps. */
void elf__each_stub(struct elf *elf, void (*fn)(u64 stub, u64 slot, void *arg), void *arg);
/* Calls fn for each GOT entry of an imported function or variable, until it returns false. */
void elf__each_slot(struct elf *elf, bool (*fn)(const char *name, u64 slot, void *arg), void *arg);
/* Addresses of the GOT entries of an imported function: `call *slot(%rip)` (-fno-plt) uses them. Returns as above. */
u32 elf__got_slots(struct elf *elf, const char *name, u64 *addrs, u32 max);
