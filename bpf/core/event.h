/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How an event is defined: once, as a C struct with BTF tags.
 *
 * The BTF of the BPF object is the only table of events: user/schema/schema_btf.c reads it into the schema that every
 * trace carries. `sonde list`, the tables in docs/ and the expected schemas of the tests are made from it, too. See
 * docs/adding-a-family.md.
 *
 *	struct cuda_copy {
 *		struct call call;
 *		u64 bytes UNIT(bytes) DOC("requested");
 *	} EVENT(cuda_copy, 0x0301, "a copy requested through the runtime");
 *
 * Fields are little-endian integers, char[N] (text, NUL-padded), enums, nested structs (flattened; a field's name
 * must be unique in its event) and, as the last one, `char NAME[]`: text that takes the rest of the record.
 */
#pragma once

#include "types.h"

#ifdef __bpf__
#define TAG(s) __attribute__((btf_decl_tag(s)))
/*
 * The pointer keeps the struct in the BTF: clang drops types that nothing refers to. It is weak because several
 * objects include the same header.
 */
#define KEEP_TYPE(type) const struct type *const event_##type __attribute__((weak, section(".rodata.events"))) = 0
#define EVENT(type, id, doc)               \
	TAG("event:" #id) TAG("doc:" doc); \
	KEEP_TYPE(type);                   \
	enum { ID_##type = id }
#else
#define TAG(s)
#define EVENT(type, id, doc) \
	;                    \
	enum { ID_##type = id }
#endif

/*
 * Units in use: ns (a duration), moment (ns on CLOCK_MONOTONIC, 0: none), bytes, hex (an address or handle), string
 * (an id of event meta_string), text (the process's own id of a text, of an event *_text or gpu_name), stack (an id of
 * meta_frame), code (an id of meta_code), task (a pid or tid), signal, errno.
 */
#define UNIT(u) TAG("unit:" #u)
#define DOC(s)	TAG("doc:" s)

/*
 * A family: FAMILY(cuda, 0x03, FAMILY_DEFAULT, "what it traces"), once in the family's header. The id is the high
 * byte of the ids of its events. It is less than FAMILY_MAX, the size of all tables by family.
 */
#define FAMILY_MAX 64
/* A set of families is a u64 with one bit each. A trace of another program may have ids that fit in no set. */
#define FAMILY_BIT(id)	 ((id) < FAMILY_MAX ? 1ULL << (id) : 0)
#define EVENT_FAMILY(id) ((id) >> 8)
/* The index in a table by family. An id of no family, like those of raw records (stack.h), has the index of core. */
#define FAMILY_INDEX(id)  (EVENT_FAMILY(id) < FAMILY_MAX ? EVENT_FAMILY(id) : 0)
#define FAMILY_DEFAULT	  "family-default:1" /* traced if record has no -t */
#define FAMILY_USUAL	  "family-default:2" /* the same, but `-t lean` leaves it out */
#define FAMILY_ON_REQUEST "family-default:0" /* traced only if -t names it */
#ifdef __bpf__
#define FAMILY(name, id, when, doc)                                                                        \
	_Static_assert((id) < FAMILY_MAX, "family " #name ": its id " #id " is not less than FAMILY_MAX"); \
	struct family_##name {                                                                             \
		char unused;                                                                               \
	} TAG("family:" #id) TAG(when) TAG("doc:" doc);                                                    \
	KEEP_TYPE(family_##name)
#else
#define FAMILY(name, id, when, doc) struct family_##name
#endif

/*
 * An option of a family, `--cuda=all`: OPTION(cuda, all, "what it adds") in the family's .bpf.c, read as
 * option_cuda_all. Programs with a section `span+all/` instead of `span/` are loaded only if the option is given.
 */
#define OPTION(family, word, doc) \
	const volatile bool option_##family##_##word TAG("option:" #family "=" #word) TAG("doc:" doc) = false

/*
 * An option with a number, `--syscall-threshold NS`, read as option_syscall_threshold; 0 if it was not given. `unit`
 * is the unit that the usage text shows.
 */
#define OPTION_NUMBER(family, word, unit, doc)                                                           \
	const volatile u64 option_##family##_##word TAG("option:" #family "=" #word) TAG("number:" unit) \
		TAG("doc:" doc) = 0

enum event_flags {
	EVENT_OPEN = 1, /* still running when the trace, the thread or the program ended; time is that moment */
	EVENT_RETURN_NOT_SEEN = 2, /* ended by an exception or longjmp; time is when this was noticed */
	EVENT_NO_DURATION = 4, /* only the entry could be probed: start equals time */
	EVENT_STARTED_BEFORE = 8, /* was already running when tracing began; start is that moment */
	EVENT_UNWOUND = 16, /* left by an exception or a thread's cancellation; time is that moment */
	EVENT_OWN_TID = 0x8000, /* tid is a number of the process's own pid namespace; never in a trace */
};

/* The header of every event: 24 bytes. */
struct event {
	u64 time UNIT(moment) DOC("CLOCK_MONOTONIC; a span's end");
	u32 pid UNIT(task) DOC("process (tgid) as the initial pid namespace numbers it");
	u32 tid UNIT(task) DOC("thread");
	u16 id DOC("id of the kind of event");
	u16 probe DOC("number of the probe (see event meta_probe), 0: none");
	u16 cpu DOC("CPU on which the record was made");
	u16 flags DOC("enum event_flags, or-ed");
};

/* The header of every event with a duration: 32 bytes. */
struct span {
	struct event event;
	u64 start UNIT(moment) DOC("CLOCK_MONOTONIC");
};

/* The header of every span that is a function call: 40 bytes. */
struct call {
	struct span span;
	s64 ret DOC("what the function returned, an int or enum");
};

/* Bytes of the largest record of a call. The record waits for the call's return in the thread's open-call stack. */
#define CALL_MAX 144
/* Calls of one thread that may be open at once; deeper calls are counted as lost. */
#define CALL_DEPTH 16
/* Bytes of the largest record of any kind, with its variable tail. */
#define RECORD_MAX 4096
