/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The input of the Python stack walker, which the worker writes: the address of a process's CPython runtime, and the
 * layout of its structs.
 */
#pragma once

#include "types.h"

/* The number of layouts that can be known at once, one for each CPython build that differs. */
#define PYTHON_LAYOUTS 64

/* The number of files that can be known at once. */
#define PYTHON_FILES 1024

/*
 * Offsets in bytes. user/python/layouts.c lists the sources by version. 0: this version has no such member.
 */
struct python_layout {
	u16 version; /* 0x030b: CPython 3.11 */
	u16 frame_size; /* bytes of a frame that are read, at most 128 */
	u16 head; /* of an object: sizeof(PyObject), which ends with ob_type; larger in a free-threaded build */
	u16 is_free_threaded;
	u32 interpreters; /* _PyRuntimeState.interpreters.head */
	u32 interp_next, interp_threads; /* PyInterpreterState */
	u32 interp_gil; /* .ceval.gil, a pointer from 3.12 on */
	u32 runtime_gil; /* before 3.12: _PyRuntimeState.ceval.gil, the struct itself */
	u32 interp_id; /* unique among all interpreters of the process's life */
	/*
	 * A number that changes when code objects are created (3.12, 3.13: func_state.next_version) or freed (3.14 on:
	 * _code_object_generation); 0: there is none.
	 */
	u32 interp_epoch;
	u16 state_next, state_interp, state_thread_id; /* PyThreadState; `prev` is the member before `next` */
	u16 state_status; /* ._status, from 3.12 on */
	u16 state_frame; /* .frame, .current_frame; 3.11, 3.12: .cframe */
	u16 state_cframe; /* 3.10 to 3.12: .cframe, which points to the C stack while Python code runs */
	u16 cframe_frame; /* _PyCFrame.current_frame */
	u16 by_cframe; /* 1: state_frame points to a _PyCFrame */
	u16 frame_code, frame_previous;
	u16 frame_instr; /* f_lasti (3.8 to 3.10, an int), prev_instr, instr_ptr */
	u16 frame_owner;
	u16 frame_copy; /* tlbc_index; see code_copies */
	u16 frame_is_entry; /* 3.11: .is_entry; before, each frame is one; later, a frame that is skipped precedes one */
	u16 instr_unit; /* unit of f_lasti in bytes; 0: frame_instr is a pointer */
	u16 owner_skipped; /* frames with this owner or a higher one are not Python frames */
	u16 code_check; /* offset of 6 numbers of 8 bytes that never change and together identify a code object */
	u16 code_version; /* co_version, unique in its interpreter; 0: this version has none */
	u16 code_name, code_file, code_line, code_lines;
	u16 code_start; /* co_code_adaptive; 0: the bytecode is outside of the code object */
	u16 code_copies; /* co_tlbc: in a free-threaded build from 3.14 on each thread has its own copy of the bytecode */
	u16 code_traceable; /* _co_firsttraceable */
	u16 str_ascii, str_compact; /* offset of the characters */
	u16 str_kind_shift; /* in PyASCIIObject.state */
	u16 bytes_data;
};

/* A CPython in a process. */
struct python_at {
	u64 runtime; /* address of _PyRuntime */
	u64 code_type; /* address of PyCode_Type */
	u32 layout; /* number of its layout */
	u32 pad;
};

/* A process may have two: a program that contains one, and a libpython that a library loads. A power of two. */
#define PYTHON_RUNTIMES 2

/* A value of map python_processes (key: tgid). */
struct python_process {
	struct python_at at[PYTHON_RUNTIMES];
	u32 n;
	u32 id; /* unique among all processes of this recording */
	u32 has_foreign; /* a thread was seen that uses a thread state of another thread, as uWSGI's do; BPF sets it */
	u32 pad;
};

/* A file that contains CPython, identified by its backing inode. */
struct python_file_key {
	u64 dev, ino;
	u32 generation; /* of that inode number */
	u32 pad;
};

/*
 * Offsets in bytes from the load address: the address at which a mapping of the file's code puts, or would put, the
 * file's first byte.
 */
struct python_file {
	u64 runtime; /* _PyRuntime */
	u64 code_type; /* PyCode_Type */
	u32 layout; /* number of its layout */
	u32 pad;
};
