// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The layouts of CPython's structs. Those of 3.8 to 3.12 are tables by version, from the headers of its releases: all
 * releases of a minor version have one layout. From 3.13 on CPython publishes its layout itself, as _Py_DebugOffsets
 * at the start of _PyRuntime.
 */
#include "python/layouts.h"

#include "python/stripped.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * Include/cpython/unicodeobject.h: sizes of PyASCIIObject and PyCompactUnicodeObject, position of the kind in `state`
 */
#define TEXT_TO_311 .str_ascii = 48, .str_compact = 72, .str_kind_shift = 2, .bytes_data = 32
#define TEXT_312    .str_ascii = 40, .str_compact = 56, .str_kind_shift = 2, .bytes_data = 32
/*
 * Include/cpython/pystate.h, Include/cpython/code.h (3.8: code.h), Include/internal/pycore_pystate.h, pycore_interp.h,
 * pycore_runtime.h
 */
#define BEFORE_311                                                                                           \
	.interpreters = 32, .interp_next = 0, .interp_threads = 8, .state_next = 8, .state_interp = 16,      \
	.state_thread_id = 176, .state_frame = 24, .frame_code = 32, .frame_previous = 24, .code_check = 16, \
	.code_name = 112, .code_file = 104, .code_line = 40, .code_lines = 120, .frame_size = 112, TEXT_TO_311

static const struct python_layout layouts[] = {
	/* Include/frameobject.h; f_lasti counts bytes */
	{ .version = 0x0308, BEFORE_311, .runtime_gil = 1152, .interp_id = 16, .frame_instr = 104, .instr_unit = 1 },
	{ .version = 0x0309, BEFORE_311, .runtime_gil = 352, .interp_id = 24, .frame_instr = 104, .instr_unit = 1 },
	/* Include/cpython/frameobject.h; f_lasti counts instructions of two bytes */
	{ .version = 0x030a,
	  BEFORE_311,
	  .state_cframe = 48,
	  .runtime_gil = 352,
	  .interp_id = 24,
	  .frame_instr = 96,
	  .instr_unit = 2 },
	/* from here on Include/internal/pycore_frame.h */
	{ .version = 0x030b,
	  .interpreters = 40,
	  .runtime_gil = 360,
	  .interp_next = 0,
	  .interp_id = 48,
	  .interp_threads = 16,
	  .state_next = 8,
	  .state_interp = 16,
	  .state_thread_id = 152,
	  .state_frame = 56,
	  .state_cframe = 56,
	  .cframe_frame = 8,
	  .by_cframe = 1,
	  .frame_size = 72,
	  .frame_code = 32,
	  .frame_previous = 48,
	  .frame_instr = 56,
	  .frame_owner = 69,
	  .frame_is_entry = 68,
	  .owner_skipped = 3,
	  .code_check = 56,
	  .code_name = 128,
	  .code_file = 112,
	  .code_line = 72,
	  .code_lines = 136,
	  .code_start = 184,
	  .code_traceable = 168,
	  TEXT_TO_311 },
	{ .version = 0x030c,
	  .state_status = 24,
	  .interpreters = 40,
	  .interp_next = 0,
	  .interp_id = 8,
	  .interp_threads = 72,
	  .interp_gil = 384,
	  .state_next = 8,
	  .state_interp = 16,
	  .state_thread_id = 136,
	  .state_frame = 56,
	  .state_cframe = 56,
	  .cframe_frame = 0,
	  .by_cframe = 1,
	  .frame_size = 72,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_instr = 56,
	  .frame_owner = 70,
	  .owner_skipped = 3,
	  .code_check = 48,
	  .code_version = 92,
	  .code_name = 128,
	  .code_file = 112,
	  .code_line = 68,
	  .code_lines = 136,
	  .code_start = 192,
	  .code_traceable = 176,
	  TEXT_312 },
};

/*
 * The index of each offset in _Py_DebugOffsets, an array of 8-byte numbers; the order is that of
 * Include/internal/pycore_runtime.h (3.13) and pycore_debug_offsets.h (later).
 */
struct offset_indices {
	u8 interpreters, interp_id, interp_next, interp_threads, interp_gil, interp_epoch;
	u8 state_prev, state_next, state_interp, state_frame, state_thread_id, state_status;
	u8 frame_size, frame_previous, frame_code, frame_instr, frame_owner, frame_copy;
	u8 code_file, code_name, code_lines, code_line, code_names, code_start, code_copies;
	u8 type, bytes_data, str_state, str_length, str_ascii;
};

static const struct offset_indices indices[] = {
	[13] = { .interpreters = 5,
		 .interp_id = 7,
		 .interp_next = 8,
		 .interp_threads = 9,
		 .interp_gil = 14,
		 .state_prev = 20,
		 .state_next = 21,
		 .state_interp = 22,
		 .state_frame = 23,
		 .state_thread_id = 24,
		 .state_status = 27,
		 .frame_size = 28,
		 .frame_previous = 29,
		 .frame_code = 30,
		 .frame_instr = 31,
		 .frame_owner = 33,
		 .code_file = 35,
		 .code_name = 37,
		 .code_lines = 38,
		 .code_line = 39,
		 .code_names = 41,
		 .code_start = 43,
		 .type = 45,
		 .bytes_data = 66,
		 .str_state = 68,
		 .str_length = 69,
		 .str_ascii = 70 },
	[14] = { .interpreters = 5,
		 .interp_id = 7,
		 .interp_next = 8,
		 .interp_threads = 9,
		 .interp_gil = 15,
		 .interp_epoch = 20,
		 .state_prev = 23,
		 .state_next = 24,
		 .state_interp = 25,
		 .state_frame = 26,
		 .state_thread_id = 27,
		 .state_status = 30,
		 .frame_size = 31,
		 .frame_previous = 32,
		 .frame_code = 33,
		 .frame_instr = 34,
		 .frame_owner = 36,
		 .frame_copy = 38,
		 .code_file = 40,
		 .code_name = 42,
		 .code_lines = 43,
		 .code_line = 44,
		 .code_names = 46,
		 .code_start = 48,
		 .code_copies = 49,
		 .type = 51,
		 .bytes_data = 76,
		 .str_state = 78,
		 .str_length = 79,
		 .str_ascii = 80 },
	[15] = { .interpreters = 5,
		 .interp_id = 7,
		 .interp_next = 8,
		 .interp_threads = 9,
		 .interp_gil = 15,
		 .interp_epoch = 20,
		 .state_prev = 23,
		 .state_next = 24,
		 .state_interp = 25,
		 .state_frame = 26,
		 .state_thread_id = 30,
		 .state_status = 33,
		 .frame_size = 39,
		 .frame_previous = 40,
		 .frame_code = 41,
		 .frame_instr = 42,
		 .frame_owner = 44,
		 .frame_copy = 46,
		 .code_file = 48,
		 .code_name = 50,
		 .code_lines = 51,
		 .code_line = 52,
		 .code_names = 54,
		 .code_start = 56,
		 .code_copies = 57,
		 .type = 59,
		 .bytes_data = 88,
		 .str_state = 90,
		 .str_length = 91,
		 .str_ascii = 92 },
};

#define COOKIE "xdebugpy"
/* sizeof(PyObject), Include/object.h */
#define HEAD		   16
#define HEAD_FREE_THREADED 32
/*
 * _Py_DebugOffsets of 3.13 lacks the offset of func_state.next_version (python_layout.interp_epoch). It is EPOCH_313 if
 * PyInterpreterState has the size SIZE_313, as in Include/internal/pycore_interp.h of 3.13.0.
 */
#define SIZE_313  194968
#define EPOCH_313 17000
/* Bytes of a thread state that the walker reads. */
#define STATE_MAX 184
/* The most bytes that the walker reads of a frame and of a code object. */
#define FRAME_MAX 128
#define CODE_MAX  160

/*
 * The walker relies on some properties of the layout, and reads only the first bytes of each struct. The offsets come
 * from an untrusted file, so they are used only if they fit that.
 */
static bool is_plausible(const u64 *w, const struct offset_indices *p, u64 head)
{
	const u8 pointers[] = { p->code_file, p->code_name, p->code_lines, p->code_line };

	for (u32 i = 0; i < sizeof(pointers); i++)
		if (w[pointers[i]] > CODE_MAX - 8 || w[pointers[i]] % 4)
			return false;
	/* all members lie within the bytes that are read; prev, next and interp are adjacent */
	return w[p->frame_size] <= FRAME_MAX && w[p->frame_owner] < w[p->frame_size] &&
	       w[p->frame_code] < w[p->frame_owner] && w[p->frame_previous] < w[p->frame_owner] &&
	       w[p->frame_instr] < w[p->frame_owner] && w[p->state_prev] + 8 == w[p->state_next] &&
	       w[p->state_next] + 8 == w[p->state_interp] && w[p->state_interp] == 16 &&
	       w[p->state_frame] <= STATE_MAX - 8 && w[p->state_thread_id] <= STATE_MAX - 8 &&
	       w[p->state_status] <= STATE_MAX - 8 && w[p->interpreters] < 1 << 20 && w[p->interp_next] < 1 << 20 &&
	       w[p->interp_threads] < 1 << 20 && w[p->interp_gil] < 1 << 20 && w[p->interp_id] < 1 << 20 &&
	       (!p->interp_epoch || w[p->interp_epoch] < 1 << 20) && w[p->code_names] >= 48 + 16 &&
	       w[p->code_names] <= CODE_MAX && w[p->code_start] > w[p->code_lines] + 16 && w[p->code_start] < 4096 &&
	       w[p->type] == head - 8 && w[p->bytes_data] == head + 16 && w[p->str_state] == head + 16 &&
	       w[p->str_length] == head && w[p->str_ascii] == head + 24;
}

/* Include/cpython/code.h, pycore_interpframe_structs.h */
static bool are_copies_plausible(const u64 *w, const struct offset_indices *p)
{
	return w[p->frame_copy] < w[p->frame_owner] && w[p->frame_copy] % 4 == 0 &&
	       w[p->code_copies] + 8 == w[p->code_start];
}

int python__layout_of_offsets(const u64 *words, u32 n, struct python_layout *out, char *why, size_t len)
{
	u32 version = n > 2 ? words[1] >> 16 & 0xffff : 0, minor = version & 0xff;
	const struct offset_indices *p;
	bool has_copies;
	u16 head;

	if (n < PYTHON_OFFSET_WORDS || memcmp(words, COOKIE, 8)) {
		snprintf(why, len, "it has no _Py_DebugOffsets at the start of _PyRuntime");
		return -ENOTSUP;
	}
	if (version >> 8 != 3 || minor < 13 || minor >= ARRAY_LEN(indices)) {
		snprintf(why, len, "sonde does not know the layout of CPython %u.%u", version >> 8, minor);
		return -ENOTSUP;
	}
	p = &indices[minor];
	head = words[2] ? HEAD_FREE_THREADED : HEAD;
	has_copies = words[2] && p->code_copies;
	if (!is_plausible(words, p, head) || (has_copies && !are_copies_plausible(words, p))) {
		snprintf(why, len, "its _Py_DebugOffsets are not those of a CPython %u.%u", version >> 8, minor);
		return -ENOTSUP;
	}
	*out = (struct python_layout){
		.version = version,
		.frame_size = (words[p->frame_owner] + 8) & ~7,
		.interpreters = words[p->interpreters],
		.interp_next = words[p->interp_next],
		.interp_threads = words[p->interp_threads],
		.head = head,
		.is_free_threaded = words[2] != 0,
		/* a free-threaded CPython has one that it does not use by default */
		.interp_gil = words[2] ? 0 : words[p->interp_gil],
		.interp_id = words[p->interp_id],
		.interp_epoch = p->interp_epoch	     ? words[p->interp_epoch] :
				words[6] == SIZE_313 ? EPOCH_313 :
						       0,
		.state_next = words[p->state_next],
		.state_interp = words[p->state_interp],
		.state_thread_id = words[p->state_thread_id],
		.state_status = words[p->state_status],
		.state_frame = words[p->state_frame],
		.frame_code = words[p->frame_code],
		.frame_previous = words[p->frame_previous],
		.frame_instr = words[p->frame_instr],
		.frame_owner = words[p->frame_owner],
		/*
		 * Owners from 3 on are FRAME_OWNED_BY_CSTACK in 3.13, this and FRAME_OWNED_BY_INTERPRETER in 3.14, and
		 * only the latter in 3.15.
		 */
		.owner_skipped = 3,
		.code_name = words[p->code_name],
		.code_file = words[p->code_file],
		.code_line = words[p->code_line],
		.code_lines = words[p->code_lines],
		.code_start = words[p->code_start],
		/* Include/cpython/code.h: the members from co_flags to co_version precede co_localsplusnames */
		.code_version = words[p->code_names] - 4,
		.code_check = words[p->code_names] - 48,
		.frame_copy = has_copies ? words[p->frame_copy] : 0,
		.code_copies = has_copies ? words[p->code_copies] : 0,
		/* _co_firsttraceable, co_extra and, in a build with copies, co_tlbc precede co_code_adaptive */
		.code_traceable = words[p->code_start] - (has_copies ? 24 : 16),
		.str_ascii = words[p->str_ascii],
		.str_compact = words[p->str_ascii] + 16,
		/* in a build with copies `interned` is a byte of its own */
		.str_kind_shift = has_copies ? 8 : 2,
		.bytes_data = words[p->bytes_data],
	};
	return 0;
}

static bool has_symbol(struct elf *elf, const char *name)
{
	struct elf_symbol sym;

	return !elf__find_symbol(elf, name, &sym) && sym.dynamic;
}

/*
 * The minor version: 3.11 and later export it, older ones are recognized by functions that they were the first to
 * export.
 */
static u32 version_of(struct elf *elf)
{
	struct elf_symbol sym;
	const u8 *bytes;
	u64 len = 8, hex;

	if (!elf__find_symbol(elf, "Py_Version", &sym)) {
		bytes = elf__bytes(elf, sym.addr, &len);
		if (!bytes || len < sizeof(hex))
			return 0;
		memcpy(&hex, bytes, sizeof(hex));
		return hex >> 16 & 0xffff;
	}
	if (has_symbol(elf, "PyIter_Send"))
		return 0x030a;
	if (has_symbol(elf, "PyFrame_GetCode"))
		return 0x0309;
	if (has_symbol(elf, "PyConfig_InitPythonConfig"))
		return 0x0308;
	return has_symbol(elf, "PyInterpreterState_GetID") ? 0x0307 : 0;
}

/* version 0: that of _Py_DebugOffsets */
static int layout_of(struct elf *elf, u32 version, u64 runtime, struct python_layout *out, char *why, size_t len)
{
	u64 words[128], size = sizeof(words);
	const u8 *bytes;

	for (u32 i = 0; i < ARRAY_LEN(layouts); i++) {
		if (layouts[i].version != version)
			continue;
		*out = layouts[i];
		out->head = HEAD;
		return 0;
	}
	if (version && version < 0x030d) {
		snprintf(why, len, "sonde does not know the layout of CPython %u.%u", version >> 8, version & 0xff);
		return -ENOTSUP;
	}
	bytes = elf__bytes(elf, runtime, &size);
	if (!bytes)
		size = 0;
	memcpy(words, bytes ?: (const u8 *)"", size);
	return python__layout_of_offsets(words, size / sizeof(u64), out, why, len);
}

/* Before 3.7 there is no _PyRuntime. */
static bool is_old(struct elf *elf)
{
	return elf__provides(elf, "PyCode_Type") && !elf__provides(elf, "_PyRuntime");
}

bool python__is_cpython(struct elf *elf)
{
	return elf__provides(elf, "_PyRuntime") || is_old(elf) || stripped__is_cpython(elf);
}

int python__identify(struct elf *elf, struct python_runtime *out, char *why, size_t len)
{
	struct elf_symbol runtime, code_type;
	struct stripped found;

	if (!elf__find_symbol(elf, "_PyRuntime", &runtime) && !elf__find_symbol(elf, "PyCode_Type", &code_type)) {
		out->runtime = runtime.addr;
		out->code_type = code_type.addr;
		return layout_of(elf, version_of(elf), out->runtime, &out->layout, why, len);
	}
	if (is_old(elf)) {
		snprintf(why, len, "it is a CPython before 3.7, whose layout sonde does not know");
		return -ENOTSUP;
	}
	if (!stripped__is_cpython(elf))
		return -ENOENT;
	if (!stripped__find(elf, &found)) {
		snprintf(why, len, "it has no symbols, and its PyCode_Type can't be found without them");
		return -ENOTSUP;
	}
	out->runtime = found.runtime;
	out->code_type = found.code_type;
	return layout_of(elf, found.version, out->runtime, &out->layout, why, len);
}
