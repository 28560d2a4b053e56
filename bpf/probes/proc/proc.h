/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of processes and threads: their identity, start and end. Sources: include/linux/sched.h, kernel/exit.c. */
#pragma once

#include "core/event.h"

FAMILY(proc, 0x01, FAMILY_DEFAULT, "processes and threads: names, programs, starts and ends");

/* Threads choose their own names, of any bytes except NUL. */

struct proc_task {
	struct event event;
	u64 start_time UNIT(moment) DOC("when the thread was created");
	u32 ppid UNIT(task) DOC("parent process");
	u32 ns_pid DOC("process as its own pid namespace numbers it");
	u32 ns_tid DOC("thread, likewise");
	char comm[16] DOC("the thread's name");
} EVENT(proc_task, 0x0101, "a thread that existed when tracing began");

struct proc_fork {
	struct event event;
	u32 child_pid UNIT(task) DOC("process of the new thread; a new one unless it equals pid");
	u32 child_tid UNIT(task) DOC("the new thread");
	u32 child_ns_pid DOC("child_pid as its own pid namespace numbers it");
	u32 child_ns_tid DOC("child_tid, likewise");
	char comm[16] DOC("its name at the start");
} EVENT(proc_fork, 0x0102, "a thread created a thread or a process");

struct proc_exec {
	struct event event;
	char comm[16] DOC("the thread's name from this time on");
	u32 old_tid UNIT(task) DOC("the thread's former tid if it was not the first thread of its process, else 0");
	char path[] DOC("file, as the caller named it; with --no-args the name of the file alone");
} EVENT(proc_exec, 0x0103, "a process executed another program, which ended its other threads");

struct proc_exit {
	struct event event;
	u32 code DOC("exit status, 0 to 255");
	u32 signal UNIT(signal) DOC("signal that killed it, 0: none");
	u8 core DOC("1: a core was dumped");
	u8 group_dead DOC("1: it was the last thread of its process");
} EVENT(proc_exit, 0x0104, "a thread ended");

struct proc_rename {
	struct event event;
	char comm[16] DOC("the thread's new name");
} EVENT(proc_rename, 0x0105, "a thread's name changed, also by exec");

struct proc_map {
	struct event event;
	u64 address UNIT(hex) DOC("first address");
	u64 address_end UNIT(hex) DOC("address after the last");
	u64 offset UNIT(bytes) DOC("of the first address, in the file");
	u64 dev UNIT(hex) DOC("device of the backing inode, kernel encoding (major << 20 | minor)");
	u64 ino DOC("backing inode");
	u32 path UNIT(string) DOC("as the process sees it");
} EVENT(proc_map, 0x0106, "a file is mapped for execution, or was when tracing began");

struct proc_image {
	struct event event;
	u32 exe UNIT(string) DOC("the executable file, empty for a kernel thread");
	u32 command UNIT(string) DOC("command line, arguments separated by blanks; empty with --no-args");
	u32 cgroup UNIT(string) DOC("its cgroup's path; empty with --no-args");
	u32 container UNIT(string) DOC("container runtime and start of the id, by the cgroup's path; empty: in none");
	u32 pod UNIT(string) DOC("uid of its Kubernetes pod, likewise");
	u32 uid DOC("its effective user at that time; 4294967295: not known");
} EVENT(proc_image, 0x0107, "what a process runs: at the start of the trace and after each exec");

struct proc_rank {
	struct event event;
	u32 rank DOC("its number among the processes of the training, from 0");
	u32 world_size DOC("number of these processes");
	s32 local_rank DOC("its number among the ranks of its machine; -1: not known");
	u32 host UNIT(string) DOC("name of the machine");
} EVENT(proc_rank, 0x0108,
	"the rank of a process in distributed training, from its environment (RANK and WORLD_SIZE, or the variables of MPI or Slurm)");

/* The kernel has the first 15 bytes of such names from Python 3.14 on, and none before. */
struct proc_name {
	struct event event;
	u32 name UNIT(string) DOC("at most 127 bytes, of any value");
} EVENT(proc_name, 0x0109,
	"Python's name of a thread, threading.Thread.name, when it was read from the process's memory");

struct proc_python {
	struct event event;
	u32 library UNIT(string)
		DOC("folder of its standard library, as the process sees it; empty: not known, or --no-args");
	u32 script UNIT(string)
		DOC("file of module __main__ if the process was started to run it; empty with -m and -c");
} EVENT(proc_python, 0x010a, "what a CPython runs, when it was read from the process's memory");
