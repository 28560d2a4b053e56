/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The examination of mapped files by children without privileges (sandbox/sandbox.h): which library a file is, where families
 * probe it, what they need to know of it. The children are sonde-examiner's, which is forked before anything foreign is
 * read. Their answers are records of fixed size, which examine_answer.c checks.
 *
 * Files on one file system that the same owner, or owner and group, may write share a child: a user who could take the child
 * over could have written the other files too. A file that all users may write has a child of its own.
 */
#ifndef SONDE_RECORD_EXAMINE_H
#define SONDE_RECORD_EXAMINE_H

#include "elf/dwarf.h"
#include "record/file_facts.h"

struct mapping;
struct session;
struct object;
struct examiner;
struct code_answer;

/* What is asked of a child. The file's descriptor comes beside it. */
#define FILE_QUESTION 0x46494c45

enum file_op {
	FILE_FIND, /* sites and facts */
	FILE_SYMBOL, /* the function at an offset */
	FILE_CODE, /* the same, and how its frame is left; the child keeps the file's tables */
};

struct file_question {
	u32 kind; /* FILE_QUESTION */
	u32 op; /* enum file_op */
	u64 offset;
	u64 number; /* FILE_CODE: of the file, by which the child knows it again */
	u32 families; /* bit by id: those that have the file already */
	u32 hints; /* bit by id: the family's host has its hint set */
	u32 is_preattached; /* 1: no process maps it yet */
	char path[4096];
};

/* What comes back: this, then n records, or text with its NUL. */
enum answer_kind {
	ANSWER_NAME, /* of a function, as later places count them from 0 */
	ANSWER_PLACES,
	ANSWER_LIBRARY, /* a file that goes only by a library's name */
	ANSWER_FAMILY, /* the family's places are complete */
	ANSWER_NOTE, /* text: why there are no more symbols */
	ANSWER_DEBUG, /* a debug file's path; n: 1 in the process's root, 0 in the host's: answered with it */
	ANSWER_SERVER, /* a build id: answered with the debug file from a server */
	ANSWER_FACTS,
	ANSWER_SYMBOL,
	ANSWER_CODE,
	ANSWER_END,
};

struct answer_head {
	u32 kind; /* enum answer_kind */
	u32 n;
};

/* Of a file; what is over that is not probed. */
#define FILE_NAMES_MAX	   8192 /* as many probes have names */
#define FILE_PLACES_MAX	   131072
#define FILE_LIBRARIES_MAX 32
#define FILE_DEBUG_MAX	   16 /* debug files requested */
#define FILE_FACTS_MAX	   2 /* of a CPython they come first as well */
#define FILE_PROBES_MAX	   2048 /* names that the recording does not know yet */
#define FILE_NAME_MAX	   1024 /* bytes of a name with its NUL */

#define PLACES_BATCH  1024
#define PLACE_NO_NAME 0xffffffffu /* it is the program's */

struct found_place {
	u32 program; /* its number */
	u32 name;
	u64 offset; /* in the file */
	u64 bits; /* of the cookie, above the probe's number */
	u64 counter; /* see struct site */
};

struct found_library {
	u32 program; /* whose library it goes by */
	u32 match; /* enum library_match */
};

struct found_family {
	u32 id;
	s32 error;
	u8 hidden; /* 1: its symbols are stripped: its calls are not seen */
	char why[256];
};

struct found_symbol {
	char name[256]; /* "": the file does not say */
	u64 offset; /* of its beginning in the file */
};

/* struct code_place of record/symbols.h; all zero: there is no code */
struct found_code {
	char name[320];
	u64 function;
	s32 unwind_error;
	s32 cfa, frame_pointer;
	u8 has_name, has_function, interpreter, python_call; /* 0 or 1, as those below */
	u8 by_frame_pointer, saved, outermost, is_code;
};

struct found_end {
	s32 result;
	u8 over_budget; /* 1: the file takes too much memory */
	u8 last; /* 1: the child takes no more questions */
};

#define ANSWER_TEXT_MAX 4096

struct answer {
	struct answer_head head;
	union {
		char text[ANSWER_TEXT_MAX];
		struct found_place places[PLACES_BATCH];
		struct found_library library;
		struct found_family family;
		struct found_symbol symbol;
		struct found_code code;
		struct found_end end;
		struct file_facts facts;
	};
};

#define ANSWER_HEAD sizeof(struct answer_head)

/* The answer to ANSWER_DEBUG and ANSWER_SERVER, with the descriptor beside it. */
struct debug_reply {
	s32 result;
};

/* examine_child.c: the child's side. */
void examine__serve(int sock, void *session);
/* A part of the answer. 0 or -EPIPE. */
int answer__send(int sock, u32 kind, u32 n, const void *data, size_t len);

/* find.c, in the child: what FILE_FIND asks for; facts is filled. 0 or negative errno. */
struct elf;
int find__file(struct session *s, struct elf *elf, int sock, const struct file_question *q, struct file_facts *facts);

/* What is known of a file then. */
struct examination {
	u32 op; /* enum file_op: what was asked */
	struct file_facts facts;
	struct examined_family {
		struct found_family found;
		u32 first, n; /* of places */
	} families[FILE_FAMILIES_MAX];
	u32 n_families;
	struct found_place *places;
	u32 n_places;
	char **names;
	u32 n_names;
	u32 n_libraries, n_debug, n_facts, n_notes, n_answers; /* of what has come */
	char note[512];
	struct found_symbol symbol;
	struct found_code code;
	struct found_end end;
};

/* examine_code.c, in the child: answers FILE_CODE. fd stays the caller's. 0 or negative errno. */
int examine__code(int sock, const struct file_question *q, int fd, bool *over_budget);

/* examine_answer.c: takes one part of an answer of n bytes; 0, 1: it was the last one, or -EPROTO: it makes no sense. */
int examination__take(struct examination *x, struct session *s, const struct object *o, const struct answer *a,
		      size_t n, u64 file_size);
void examination__free(struct examination *x);

/* examine_children.c */
int examiner__start(struct session *s);
void examiner__free(struct examiner *e);
/* Takes what children have answered by now that were not waited for, and charges their users. How many are still busy. */
u32 examiner__tick(struct session *s);

/* examine.c */
/*
 * The object's file, which is open. 0, -ENOEXEC (no ELF file), or negative errno after a line that says why it could not be
 * examined. To be freed in any case.
 */
int examine__object(struct session *s, struct object *o, const struct mapping *m, struct examination *x);
/*
 * FILE_CODE of an open file, by the number that the caller has given it. 0 or negative errno (-EBUSY: not yet, as
 * its tables take long); end says whether they take too much memory.
 */
struct code_question {
	int fd;
	u64 number, offset;
	const char *path;
};
int examine__code_at(struct session *s, const struct code_question *c, struct found_code *out, struct found_end *end);
/* "the process that parsed it crashed": what such an error is about. */
const char *examine__why(int err);

#endif
