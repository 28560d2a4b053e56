/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Examines mapped files in children without privileges (sandbox/sandbox.h): which library a file is, the sites at
 * which families probe it, and the facts that families need. The children belong to sonde-examiner, which is forked
 * before any untrusted input is read. Their answers are records of fixed size, which answer.c checks.
 *
 * Files on one file system that the same owner, or owner and group, may write share a child: a user who could
 * compromise the child could have written the other files, too. A file that all users may write has a child of its
 * own.
 */
#pragma once

#include "elf/dwarf.h"
#include "elf/dwarf_lines.h"
#include "record/examine/file_facts.h"

struct mapping;
struct session;
struct object;
struct examiner;
struct code_answer;

/* A request to a child. The file's descriptor is passed with the message. */
#define FILE_QUESTION 0x46494c45

enum file_op {
	FILE_FIND, /* sites and facts */
	FILE_SYMBOL, /* the function at an offset */
	FILE_CODE, /* the same, and how to unwind its frame; the child caches the file's tables */
	FILE_PERF_MAP, /* as FILE_CODE, of a perf map (perf_map.h), at an address */
};

struct file_question {
	u32 kind; /* FILE_QUESTION */
	u32 op; /* enum file_op */
	u64 offset;
	u64 number; /* FILE_CODE, FILE_PERF_MAP: identifies the file for the child's cache */
	u64 families; /* bit by id: families that need not be asked (again) */
	u64 hints; /* bit by id: is_runtime gets the hint */
	u32 is_preattached; /* 1: no process maps it yet */
	char path[4096];
};

/* The parts of an answer: this, then n records, or text with its NUL. */
enum answer_kind {
	ANSWER_NAME, /* of a function; sites refer to names by their number, from 0 */
	ANSWER_SITES,
	ANSWER_LIBRARY, /* a file that has only the name of a library */
	ANSWER_FAMILY, /* all sites of the family have been sent */
	ANSWER_NOTE, /* text: why there are no more symbols */
	/* a debug file's path; n: 1 in the process's root, 0 in the host's. The reply has its descriptor */
	ANSWER_DEBUG,
	ANSWER_FACTS,
	ANSWER_SYMBOL,
	ANSWER_CODE,
	ANSWER_END,
};

struct answer_head {
	u32 kind; /* enum answer_kind */
	u32 n;
};

/* Limits for one file; what exceeds them is not probed. */
#define FILE_NAMES_MAX	   8192 /* probes that have names */
#define FILE_SITES_MAX	   131072
#define FILE_LIBRARIES_MAX 32
#define FILE_DEBUG_MAX	   16 /* debug files requested */
#define FILE_FACTS_MAX	   2 /* twice for a CPython, whose facts also come first */
#define FILE_PROBES_MAX	   4096 /* names that are new to the recording */
#define FILE_NAME_MAX	   1024 /* bytes of a name with its NUL */

#define SITES_BATCH  1024
#define SITE_NO_NAME 0xffffffffu /* the probe has the program's name */

struct found_site {
	u32 program; /* its number */
	u32 name;
	u64 offset; /* in the file */
	u64 bits; /* of the cookie, above the probe's number */
	u64 counter; /* see struct site */
};

struct found_library {
	u32 program; /* the program whose library name the file has */
	u32 match; /* enum library_match */
};

struct found_family {
	u32 id;
	s32 error;
	u8 hidden; /* 1: its symbols are stripped, so its calls are not recorded */
	u8 hint; /* 1: SITES_HINT */
	u8 has_nothing; /* 1: SITES_NONE */
	char why[256];
};

struct found_symbol {
	char name[256]; /* "": unknown */
	u64 offset; /* file offset of its start */
};

enum interpreter_code {
	NO_INTERPRETER,
	INTERPRETER_LOOP, /* a loop that executes Python bytecode */
	INTERPRETER_PART, /* a bytecode of a build with tail calls, which the function of the loop called */
};

/* struct code_place of record/examine/symbols.h; all zero: there is no code at the offset */
struct found_code {
	char name[320];
	u64 function;
	s32 unwind_error;
	s32 cfa, frame_pointer;
	u8 interpreter; /* enum interpreter_code */
	u8 has_name, has_function, python_call; /* 0 or 1, as the following ones */
	u8 by_frame_pointer, saved, outermost, is_code;
	struct dwarf_place source;
};

struct found_end {
	s32 result;
	u8 over_budget; /* 1: the file exceeds the memory limit */
	u8 last; /* 1: the child takes no more requests */
};

#define ANSWER_TEXT_MAX 4096

struct answer {
	struct answer_head head;
	union {
		char text[ANSWER_TEXT_MAX];
		struct found_site sites[SITES_BATCH];
		struct found_library library;
		struct found_family family;
		struct found_symbol symbol;
		struct found_code code;
		struct found_end end;
		struct file_facts facts;
	};
};

#define ANSWER_HEAD sizeof(struct answer_head)

/* The reply to ANSWER_DEBUG; the descriptor is passed with it. */
struct debug_reply {
	s32 result;
};

/* In child.c: the child's main function. */
void examine__serve(int sock, void *session);
/* Sends a part of the answer. Returns 0 or -EPIPE. */
int answer__send(int sock, u32 kind, u32 n, const void *data, size_t len);

/* In find.c, runs in the child: answers FILE_FIND and fills facts. Returns 0 or negative errno. */
struct elf;
int find__file(struct session *s, struct elf *elf, int sock, const struct file_question *q, struct file_facts *facts);

/* The result of an examination. */
struct examination {
	u32 op; /* enum file_op of the request */
	struct file_facts facts;
	struct examined_family {
		struct found_family family;
		u32 first, n; /* indexes of its sites */
	} families[FAMILY_MAX];
	u32 n_families;
	struct found_site *sites;
	u32 n_sites;
	char **names;
	u32 n_names;
	u32 n_libraries, n_debug, n_facts, n_notes, n_answers; /* counts of what was received */
	char note[512];
	struct found_symbol symbol;
	struct found_code code;
	struct found_end end;
};

/*
 * In code.c, runs in the child: answers FILE_CODE and FILE_PERF_MAP. fd stays the caller's. Returns 0 or negative
 * errno.
 */
int examine__code(int sock, const struct file_question *q, int fd, bool *over_budget);

/*
 * In answer.c: handles one part of n bytes. Returns 0, 1 if it was the last part, or -EPROTO if it is
 * invalid.
 */
int examination__take(struct examination *x, struct session *s, struct object *o, const struct answer *a, size_t n,
		      u64 file_size);
void examination__free(struct examination *x);

/* In children.c. */
int examiner__start(struct session *s);
/* Tracing is live: children that parse files have the usual priority from now on. */
void examiner__lower(struct examiner *e);
void examiner__free(struct examiner *e);
/*
 * Receives answers that were no longer awaited, and charges the children's time to their users. Returns how many
 * children are still busy.
 */
u32 examiner__tick(struct session *s);

/* In pending.c: files that take long. */
/* Receives what their children have sent, and calls object__examined() for those that are complete or took too long. */
void examiner__resume(struct session *s);
/* Returns whether there are such files. */
bool examiner__is_pending(const struct examiner *e);
/* Ends the examination of an object's file, which was overwritten. */
void examiner__cancel(struct session *s, struct object *o);

/* examine.c */
/*
 * Examines the object's file, which is open. hints: by family id, whose is_runtime gets its hint. Returns 0, -ENOEXEC
 * (not an ELF file), or negative errno after a warning with the reason; free x then. -EINPROGRESS: it takes long, x was
 * taken over, and object__examined() is called later. -EBUSY: it was not begun, as another file of the same account is
 * being examined.
 */
int examine__object(struct session *s, struct object *o, const struct mapping *m, u64 hints, struct examination *x);
/*
 * Requests FILE_CODE or FILE_PERF_MAP for an open file, with a number that the caller assigns. Returns 0 or negative
 * errno (-EBUSY: not yet, because its tables take long); `end` says whether they exceed the memory limit.
 */
struct code_request {
	int fd;
	u64 number, offset;
	const char *path;
	bool is_perf_map;
};
int examine__code_at(struct session *s, const struct code_request *c, struct found_code *out, struct found_end *end);
/* The text of such an error: "the process that parsed it crashed". */
const char *examine__why(int err);
