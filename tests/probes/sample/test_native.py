#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""A C program: shares of its functions, exact native stacks, its total sleep, and no programs or links left afterwards."""
import collections
import glob
import os
import platform
import re
import shutil
import signal
import subprocess

import proc_files
from bounds import distribution
from recording import Recording, workdir
from sample_lib import CUT, HERE, Stacks, cpu_time, off_cpu
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip
from waiting import wait_for

SONDE = os.environ.get("SONDE", "build/test/sonde")
OFF_PREEMPTED, OFF_SLEEP = 1, 4
LOSS_UNKNOWN = 14 # bpf/core/meta.h


def built(*flags):
    program = os.path.join(workdir(), "native_work" + "".join(flags))
    subprocess.run(["cc", "-O2", "-g", *flags, "-D_GNU_SOURCE", os.path.join(HERE, "native_work.c"), "-o", program],
                   check=True)
    return program


PROGRAM = built("-fno-omit-frame-pointer")
KINDS = ("seventy", "twenty", "ten")


def plain(name):
    """A name without the suffix that the compiler adds to parts of a function"""
    return name.split(".")[0]


def cut_stacks(rec, stacks, samples):
    """A line per sample with a cut stack: its time, its frames, and the module of the innermost frame"""
    first, lines = samples[0]["time"] if samples else 0, []
    for e in samples:
        frames = stacks.stack(e["stack"])
        if frames and frames[0].kind == CUT:
            inner = stacks.frames[e["stack"]]
            lines.append(f"{(e['time'] - first) / 1e6:.3f} ms of {(samples[-1]['time'] - first) / 1e6:.0f}, thread {e['tid']} of {e['pid']}, "
                         f"{'kernel' if e['kernel'] else 'user'}, at +0x{inner.get('offset', 0):x}: "
                         f"{';'.join(f'{f.name} ({os.path.basename(f.file)})' for f in frames)}")
    return "\n".join(lines)


def on_cpu():
    rec = Recording([PROGRAM, "cpu", "8"], "sample", ["-F", "499"], limit=100, stop_at="ten")
    truth = {k: int(v) for k, v in (line.split() for line in rec.output)}
    stacks, seen, odd, deep = Stacks(rec.trace), collections.Counter(), collections.Counter(), 0
    samples = rec.of("sample_cpu")
    working = 0
    for n, e in enumerate(samples, 1):
        stack = [plain(f.name) for f in stacks.stack(e["stack"]) if f.kind != CUT]
        kind = next((k for k in KINDS if k in stack), None)
        if kind:
            seen[kind] += 1
        if stack[-1:] != ["burn"]:
            continue
        working = n
        deep += "deep" in stack
        expected = {"seventy": ["main", "seventy", "burn"], "twenty": ["main", "twenty", "burn"],
                  "ten": ["main", "ten"] + ["deep"] * 101 + ["burn"]}.get(kind)
        if stack != expected:
            odd[";".join(stack)[:200]] += 1
    distribution("shares of functions", seen, truth)
    ok(not odd and deep, f"every native stack is exact, {deep} samples of 104 frames", odd)
    # printf(), at the end, takes more of the stack than is copied, and libc has no frame pointers
    cut = cut_stacks(rec, stacks, samples[:working])
    ok(not cut, "no stack is cut", cut)
    cpu_time("the sampled CPU time is the program's", rec, sum(seen.values()), sum(truth.values()))


def popped():
    """The caller's frame pointer has been popped, and the unwind table still refers to its slot, now below the stack pointer."""
    name = "samples between the end of a frame and the return have their callers"
    if platform.machine() != "x86_64":
        skip(name, "the test's function is x86-64 assembly")
        return
    rec = Recording([PROGRAM, "popped", "1"], "sample", ["-F", "499"])
    stacks = Stacks(rec.trace)
    found = collections.Counter(";".join(plain(f.name) for f in stacks.stack(e["stack"])) for e in rec.of("sample_cpu"))
    inside = {stack: n for stack, n in found.items() if stack.split(";")[-1] == "popped"}
    ok(set(inside) == {"main;calls_popped;popped"}, name, found)


def without_frame_pointers():
    """Stacks by unwind tables alone are right as far as the copied part of the stack goes."""
    rec = Recording([built("-fomit-frame-pointer"), "cpu", "3"], "sample", ["-F", "499"], stop_at="ten")
    stacks, odd, short = Stacks(rec.trace), collections.Counter(), 0
    whole = {"seventy": ["main", "seventy", "burn"], "twenty": ["main", "twenty", "burn"],
             "deep": ["main", "ten"] + ["deep"] * 101 + ["burn"]}
    for e in rec.of("sample_cpu"):
        frames = stacks.stack(e["stack"])
        stack = [plain(f.name) for f in frames if f.kind != CUT]
        expected = next((whole[k] for k in whole if k in stack), None)
        if not expected or stack[-1] != "burn":
            continue
        cut = frames[0].kind == CUT
        if stack != (expected[-len(stack):] if cut else expected):
            odd[";".join(stack)[:200]] += 1
        short += cut and len(stack) < 10
    ok(not odd and not short, "without frame pointers a stack is exact, or marked as cut", odd)


def asleep():
    rec = Recording([PROGRAM, "sleep", "50"], "sample", ["--off-cpu"])
    waits = collections.defaultdict(list)
    for name, *numbers in map(str.split, rec.output):
        waits[name].append(list(map(int, numbers)))
    stacks, by_name = Stacks(rec.trace), collections.defaultdict(list)
    for e in rec.of("sample_off"):
        for name in {plain(f.name) for f in stacks.stack(e.get("stack", 0))} & set(waits):
            by_name[name].append(e)
    for name, mine in waits.items():
        off_cpu(f"{name}: its time asleep", mine, by_name[name], rec.steal)
        reasons = collections.Counter(e["reason"] for e in by_name[name])
        ok(reasons[OFF_SLEEP] == len(mine) and set(reasons) <= {OFF_SLEEP, OFF_PREEMPTED}, f"{name}: {len(mine)} sleeps, which is the reason", reasons)
    ok(not rec.of("sample_cpu"), "no samples of the clock, which was not requested")


def loaded():
    """The names of this family's programs in the kernel"""
    p = subprocess.run(["bpftool", "prog", "show"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return re.findall(r"name (sample_\w+)", p.stdout)


def recordings():
    return sum(proc_files.read(path) == "sonde-attacher\n" for path in glob.glob("/proc/[0-9]*/comm"))


def with_filter():
    """Where a filter selects processes there is nothing for the iterator that finds processes to follow."""
    name, trace = "with a filter no iterator looks for processes", os.path.join(workdir(), "filter.sonde")
    rec = subprocess.Popen([SONDE, "record", "-t", "sample", "--off-cpu", "-p", str(os.getpid()), "-d", "2", "-f", "-o", trace],
                           stderr=subprocess.PIPE, text=True)
    begun, found, others = any("tracing into" in line for line in rec.stderr), loaded(), recordings() - 1
    rec.communicate()
    if others > 0:
        skip(name, "another recording runs")
    else:
        ok(begun and "sample_switch" in found and "sample_waiters" not in found, name, found)


def nothing_left():
    # the kernel frees them with a delay
    wait_for(lambda: not loaded(), 60, 0.5)
    own = loaded()
    # another recording may run
    if recordings():
        skip("no BPF program is left", "another recording runs")
    else:
        ok(not own, "no BPF program is left", own)


LATE = "void late(void) { for (volatile long i = 0; i < 40000000; i++); }"
ENDS = """
#include <dlfcn.h>
#include <poll.h>
static void early(void) { for (volatile long i = 0; i < 1000000; i++); }
int main(int argc, char **argv)
{
	void (*late)(void) = (void (*)(void))dlsym(dlopen(argv[argc - 1], RTLD_NOW), "late");

	while (!poll(&(struct pollfd){ 0, POLLIN, 0 }, 1, 0))
		early();
	late();
}
"""


def ended():
    """Programs that end, and whose libraries are removed, before the functions of these are named: each such stack is counted."""
    program = os.path.join(workdir(), "short")
    for text, flags in ((ENDS, ["-o", program]), (LATE, ["-shared", "-fPIC", "-o", program + ".so"])):
        subprocess.run(["cc", "-O0", "-x", "c", "-", *flags], check=True, text=True, input=text)
    sonde = Sonde(os.path.join(workdir(), "ended.sonde"), "-t", "sample", "-F", "499", "-p", str(os.getpid()))

    def has(function, file):
        return sonde.wait_trace(lambda trace: any((e["name_text"], e["file_text"]) == (function, file) for e in trace.events("meta_code")))

    named = []
    for number in range(4):
        shutil.copy(program, f"{program}{number}")
        library = shutil.copy(program + ".so", f"{program}.gone{number}")
        p = subprocess.Popen([f"{program}{number}", library], stdin=subprocess.PIPE)
        # sonde knows what the program has mapped
        named.append(has("early", f"{program}{number}"))
        # it is stopped until the libraries of the first two are removed, and looks up the function of the others
        if number < 2:
            sonde.process.send_signal(signal.SIGSTOP)
        p.communicate(b"\n")
        named.append(number < 2 or has("late", library))
        os.unlink(library)
        sonde.process.send_signal(signal.SIGCONT)
    ok(all(named), "functions of programs that run, and of libraries that are there, are named", named)
    status = sonde.end()
    trace = Trace(sonde.path)
    stacks, found = Stacks(trace), collections.Counter()
    for e in trace.events("sample_cpu"):
        names = [f.name for f in stacks.stack(e["stack"]) if "short.gone" in f.file]
        found[any(name.startswith("short.gone") for name in names)] += bool(names)
    lost = sum(e["count"] for e in trace.events("meta_loss") if e["reason"] == LOSS_UNKNOWN)
    ok(status == 0 and found[True] == lost, f"stacks without names of programs that ended are counted as losses: {found[True]} of {sum(found.values())}",
       lost, sonde.messages)
    ok(lost > 0 and found[False], "programs that ended before they were looked up have no names, others do", found)


def wrong_usage():
    for args, text in ((["-F", "0"], "samples a second"), (["-F", "x"], "samples a second"), (["-F", "-5"], "samples"),
                       (["-F", "99999999"], "perf_event_max_sample_rate"), (["--off-cpu=0"], "nanoseconds"),
                       (["--off-cpu=1ms"], "nanoseconds")):
        p = subprocess.run([SONDE, "record", *args, "-d", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ok(p.returncode == 2 and text in p.stderr, f"record {' '.join(args)} is wrong usage", p.stderr)


on_cpu()
popped()
without_frame_pointers()
asleep()
with_filter()
ended()
nothing_left()
wrong_usage()
done()
