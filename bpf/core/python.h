/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walker of Python stacks gets from the loader: the address of a process's CPython and the layout of its structs. */
#ifndef SONDE_PYTHON_H
#define SONDE_PYTHON_H

#include "types.h"

/* Layouts known at once, one for each build of CPython that differs. */
#define PYTHON_LAYOUTS 64

/* Files known at once. */
#define PYTHON_FILES 1024

/*
 * Offsets in bytes. Sources by version: user/python/layouts.c. Where a version does
 * not have a member, 0.
 */
struct python_layout {
	u16 version; /* 0x030b: CPython 3.11 */
	u16 frame_size; /* of a frame, as much as is read: 128 at most */
	u32 interpreters; /* _PyRuntimeState.interpreters.head */
	u32 interp_next, interp_threads; /* PyInterpreterState */
	u32 interp_gil; /* .ceval.gil, a pointer from 3.12 on */
	u32 runtime_gil; /* before: _PyRuntimeState.ceval.gil, the struct itself */
	u32 interp_id; /* never another's */
	/*
	 * A number that changes when code objects are made (3.12, 3.13: func_state.next_version) or freed (3.14 on:
	 * _code_object_generation); 0: there is none.
	 */
	u32 interp_epoch;
	u16 state_next, state_interp, state_thread_id; /* PyThreadState; `prev` is the member before `next` */
	u16 state_status; /* ._status, from 3.12 on */
	u16 state_frame; /* .frame, .current_frame; 3.11, 3.12: .cframe */
	u16 cframe_frame; /* _PyCFrame.current_frame */
	u16 by_cframe; /* 1: state_frame leads to a _PyCFrame */
	u16 frame_code, frame_previous;
	u16 frame_instr; /* f_lasti (3.8 to 3.10, an int), prev_instr, instr_ptr */
	u16 frame_owner;
	u16 instr_unit; /* bytes that f_lasti counts in; 0: frame_instr is a pointer */
	u16 owner_skipped; /* owners from here on are not Python's */
	u16 code_check; /* these 6 words never change, and identify a code object */
	u16 code_version; /* co_version, unique in its interpreter; 0: there is none */
	u16 code_name, code_file, code_line, code_lines;
	u16 code_start; /* co_code_adaptive; 0: not in the code object */
	u16 code_traceable; /* _co_firsttraceable */
	u16 str_ascii, str_compact; /* where the characters are */
	u16 str_kind_shift; /* in PyASCIIObject.state */
	u16 bytes_data;
};

/* Key: tgid. */
struct python_process {
	u64 runtime; /* address of _PyRuntime */
	u64 code_type; /* address of PyCode_Type */
	u32 layout; /* number of its layout */
	u32 id; /* never that of another process in this recording */
};

/* A file that is a CPython, by its backing inode. */
struct python_file_key {
	u64 dev, ino;
	u32 generation; /* of that inode number */
	u32 pad;
};

/* Both in bytes from the address at which a mapping of the file's code puts, or would put, the file's first byte. */
struct python_file {
	u64 runtime; /* _PyRuntime */
	u64 code_type; /* PyCode_Type */
	u32 layout; /* number of its layout */
	u32 pad;
};

#endif
