#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=600
"""Attaches to and detaches from a busy program many times: 50 rounds, or ROUNDS (`make stress`: 1,000).

The program checks what its calls return. After each round its code must equal its file, except for probes of
another tracer's existing links, and no link or program of the recording may exist. Each thread numbers its calls:
the recorded numbers must have no gap and no duplicate.
"""
import ctypes
import os
import shutil
import struct
import subprocess
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
import proc_files
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, note, ok, skip
from waiting import wait_for

ROUNDS = int(os.environ.get("ROUNDS", 50))
THREADS = 3
SYS_BPF = 321
PROG_GET_NEXT_ID, OBJ_GET_INFO_BY_FD, LINK_GET_FD_BY_ID, LINK_GET_NEXT_ID = 11, 15, 30, 31  # enum bpf_cmd, include/uapi/linux/bpf.h
LINK_TYPE_PERF_EVENT, LINK_TYPE_UPROBE_MULTI = 7, 12  # enum bpf_link_type
PERF_EVENT_UPROBES = 1, 2  # enum bpf_perf_event_type: entry, return
libc = ctypes.CDLL(None, use_errno=True)


def exists(command, ids):
    """The ids that still exist in the kernel."""
    found = set()
    for i in ids:
        attr = ctypes.create_string_buffer(struct.pack("=III", i - 1, 0, 0))
        if not libc.syscall(SYS_BPF, command, attr, len(attr.raw) - 1):
            if struct.unpack_from("=II", attr.raw)[1] == i:
                found.add(i)
    return found


def held(pid):
    """The ids of the links and programs that a process and its children hold"""
    lines = [line.split() for p in (pid, *proc_files.children(pid)) for line in proc_files.fdinfo(p)]
    return tuple({int(words[1]) for words in lines if words[0] == key} for key in ("link_id:", "prog_id:"))


def gone(links, programs):
    """Those that the kernel does not free, which it does late"""
    wait_for(lambda: not exists(LINK_GET_NEXT_ID, links) and not exists(PROG_GET_NEXT_ID, programs), pause=0.1)
    return exists(LINK_GET_NEXT_ID, links), exists(PROG_GET_NEXT_ID, programs)


def link_info(fd, *pointers):
    """struct bpf_link_info of a link. pointers: (offset, format, values...) of members that are set before the call."""
    info = ctypes.create_string_buffer(256)
    for at, form, *values in pointers:
        struct.pack_into(form, info, at, *values)
    attr = ctypes.create_string_buffer(struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)))
    libc.syscall(SYS_BPF, OBJ_GET_INFO_BY_FD, attr, len(attr.raw) - 1)
    return info


def sites_of(fd):
    """(path, offsets) of a link's probes in a file; not available before Linux 6.6."""
    path, offsets = ctypes.create_string_buffer(4096), (ctypes.c_uint64 * 4096)()
    kind = struct.unpack_from("=I", link_info(fd))[0]
    if kind == LINK_TYPE_UPROBE_MULTI:
        info = link_info(fd, (16, "=QQ", ctypes.addressof(path), ctypes.addressof(offsets)), (48, "=II", len(path), len(offsets)))
        return path.value.decode(), offsets[:struct.unpack_from("=I", info, 52)[0]]
    if kind == LINK_TYPE_PERF_EVENT and struct.unpack_from("=I", link_info(fd), 16)[0] in PERF_EVENT_UPROBES:
        info = link_info(fd, (24, "=QI", ctypes.addressof(path), len(path)))
        return path.value.decode(), [struct.unpack_from("=I", info, 36)[0]]
    return "", []


def probed_by_links(library):
    """The file offsets at which an existing link of any tracer has a probe"""
    found, last = set(), 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("=III", last, 0, 0))
        if libc.syscall(SYS_BPF, LINK_GET_NEXT_ID, attr, len(attr.raw) - 1):
            return found
        last = struct.unpack_from("=II", attr.raw)[1]
        attr = ctypes.create_string_buffer(struct.pack("=III", last, 0, 0))
        fd = libc.syscall(SYS_BPF, LINK_GET_FD_BY_ID, attr, len(attr.raw) - 1)
        if fd >= 0:
            path, offsets = sites_of(fd)
            found.update(offsets if path == library else ())
            os.close(fd)


def text_differs(pid, library):
    """The file offsets of the bytes that differ in a process's mapping"""
    for line in open(f"/proc/{pid}/maps"):
        words = line.split()
        if len(words) < 6 or words[5] != library or "x" not in words[1]:
            continue
        start, end = (int(x, 16) for x in words[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as mem, open(library, "rb") as file:
            mem.seek(start)
            memory = mem.read(end - start)
            file.seek(int(words[2], 16))
            disk = file.read(end - start)
        return {int(words[2], 16) + i for i, (a, b) in enumerate(zip(memory, disk)) if a != b} if memory[:len(disk)] != disk else set()
    return {-1}


def wait_clean(pid, library):
    """The bytes that keep differing, without those at which another tracer has probes."""
    wait_for(lambda: not text_differs(pid, library) - probed_by_links(library), pause=0.1)
    return text_differs(pid, library) - probed_by_links(library)


def numbered(path, pid):
    """(faults in the numbers of the recorded calls, number of calls)"""
    trace, threads, wrong = Trace(path), {}, []
    for e in trace.events("cuda_copy"):
        if e["pid"] == pid and not e["flags"] & 1:  # without calls that were open at the end
            threads.setdefault(e["tid"], []).append(e["bytes"])
    for tid, sizes in threads.items():
        sizes.sort()
        if sizes != list(range(sizes[0], sizes[0] + len(sizes))):
            wrong.append(f"thread {tid}: {len(sizes)} calls from {sizes[0]} to {sizes[-1]}")
    if len(threads) != THREADS:
        wrong.append(f"{len(threads)} threads of {THREADS}")
    return wrong, sum(map(len, threads.values()))


def one(i, target, library):
    path = os.path.join(TMP, "round.sonde")
    args = ["-p", str(target.pid)] if i % 2 else []
    sonde = Sonde(path, "-t", "cuda", *args).process
    probed = text_differs(target.pid, library)
    try:
        links, programs = held(sonde.pid)
        time.sleep(0.1)
    finally:  # ends sonde also after an error: it has this test's output open, whose reader would wait for its end
        sonde.send_signal(2)
    _, err = sonde.communicate(timeout=120)
    problems = []
    if sonde.returncode:
        problems.append(f"exit {sonde.returncode}: {err.strip()}")
    if not probed - {-1} or not links or not programs:
        problems.append(f"{len(probed)} bytes probed, {len(links)} links, {len(programs)} programs: nothing was tried")
    left = gone(links, programs)
    if any(left):
        problems.append(f"left: links {left[0]}, programs {left[1]}")
    differing = wait_clean(target.pid, library)
    if differing:
        problems.append(f"{len(differing)} bytes of its text differ")
    wrong, calls = numbered(path, target.pid)
    return problems, wrong, calls


def main():
    library = os.path.join(TMP, "libcudart.so.12")
    shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    target = subprocess.Popen([os.path.join(B, "tests/workloads/busy_calls"), library, str(THREADS)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    try:
        rounds(target, library)
    finally:
        target.stdin.close()
        target.wait(60)


def rounds(target, library):
    problems, wrong, calls, ended = [], [], 0, 0
    while ended < ROUNDS and target.poll() is None and len(problems) < 10:
        p, w, n = one(ended, target, library)
        problems += [f"round {ended}: {x}" for x in p]
        wrong += [f"round {ended}: {x}" for x in w]
        calls += n
        ended += 1
        if ended % 100 == 0:
            print(f"# {ended} rounds, {calls} calls recorded", flush=True)
    ok(ended == ROUNDS, f"{ROUNDS} rounds", f"{ended} rounds")
    ok(target.poll() is None, "the target's calls returned correct values", target.returncode)
    ok(not problems, "no round leaves a probe, link or program", "; ".join(problems[:5]))
    ok(not wrong, "every call between a recording's first and last is recorded once", "; ".join(wrong[:5]))
    note(f"{calls} calls recorded")


if os.geteuid():
    skip("rounds", "not root")
else:
    main()
done()
