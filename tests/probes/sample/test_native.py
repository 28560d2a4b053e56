#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""A C program: shares of its functions, exact native stacks, its total sleep, and no programs or links left afterwards."""
import collections
import glob
import os
import platform
import re
import subprocess
import time

import proc_files
from recording import Recording, workdir
from sample_lib import CUT, HERE, Stacks, allowed, cpu_time, shares, worst
from sonde_trace import Trace
from tap import done, ok, skip

SONDE = os.environ.get("SONDE", "build/sonde")
OFF_SLEEP = 4
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
    rec = Recording([PROGRAM, "cpu", "8"], "sample", ["-F", "499"])
    truth = {k: int(v) for k, v in (line.split() for line in rec.output)}
    stacks, seen, odd, deep = Stacks(rec.trace), collections.Counter(), collections.Counter(), 0
    samples = rec.of("sample_cpu")
    for e in samples:
        stack = [plain(f.name) for f in stacks.stack(e["stack"]) if f.kind != CUT]
        kind = next((k for k in KINDS if k in stack), None)
        if kind:
            seen[kind] += 1
        if stack[-1:] != ["burn"]:
            continue
        deep += "deep" in stack
        expected = {"seventy": ["main", "seventy", "burn"], "twenty": ["main", "twenty", "burn"],
                  "ten": ["main", "ten"] + ["deep"] * 101 + ["burn"]}.get(kind)
        if stack != expected:
            odd[";".join(stack)[:200]] += 1
    off, what = worst(shares(truth), shares(seen))
    most = allowed(3, shares(truth).get(what, 0), len(samples))
    ok(off < most, "shares of functions are right within 3 points, or four standard deviations",
       f"{off:.2f} of {most:.2f} at {what} of {len(samples)}: {shares(truth)} {shares(seen)}")
    ok(not odd and deep, f"every native stack is exact, {deep} samples of 104 frames", odd)
    cut = cut_stacks(rec, stacks, samples)
    ok(not cut, "no stack is cut", cut)
    ratio, fits = cpu_time(samples, sum(truth.values()))
    ok(fits, "the sampled CPU time is the program's", f"{ratio:.3f} with {len(samples)} samples")


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
    rec = Recording([built("-fomit-frame-pointer"), "cpu", "3"], "sample", ["-F", "499"])
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


def off_cpu():
    rec = Recording([PROGRAM, "sleep", "5"], "sample", ["--off-cpu"])
    # without the CPU time of falling asleep and waking up
    truth = {k: int(ns) - int(cpu) for k, ns, cpu in (line.split() for line in rec.output)}
    stacks, seen, reasons = Stacks(rec.trace), collections.Counter(), collections.Counter()
    for e in rec.of("sample_off"):
        names = [plain(f.name) for f in stacks.stack(e.get("stack", 0))]
        kind = next((k for k in truth if k in names), None)
        if kind:
            seen[kind] += e["time"] - e["start"]
            reasons[e["reason"]] += e["time"] - e["start"]
    if any(abs(seen[k] - ns) > 0.01 * ns for k, ns in truth.items()):
        print("# losses:", list(rec.trace.events("meta_loss")))
        for e in rec.of("sample_off"):
            print("#", e["start"], e["time"] - e["start"], e["reason"], [f.name for f in stacks.stack(e.get("stack", 0))])
    for k, ns in truth.items():
        ok(abs(seen[k] - ns) < 0.01 * ns, f"{k}: {ns / 1e9:.3f} s asleep, within 1%", f"{seen[k] / 1e9:.4f} s")
    ok(reasons[OFF_SLEEP] > 0.98 * sum(reasons.values()), "the reason is sleep", reasons)
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
    for _ in range(60):
        own = loaded()
        if not own:
            break
        time.sleep(0.5)
    # another recording may run
    if recordings():
        skip("no BPF program is left", "another recording runs")
    else:
        ok(not own, "no BPF program is left", own)


def ended():
    """Programs that end, and whose files are removed, before their functions are named: each such stack is counted."""
    program, trace = os.path.join(workdir(), "short"), os.path.join(workdir(), "ended.sonde")
    source = "#include <unistd.h>\nint main(void) { usleep(400000); for (volatile long i = 0; i < 40000000; i++); }"
    subprocess.run(["cc", "-O0", "-x", "c", "-", "-o", program], check=True, text=True, input=source)
    # sonde knows the mappings of the first two before they compute, but is stopped until their files are removed
    script = """for i in 1 2 3 4; do
        cp $0 $0.gone$i
        $0.gone$i &
        sleep 0.2
        [ $i -gt 2 ] || kill -STOP $PPID
        wait
        # those of the last two are looked up ten times a second
        [ $i -le 2 ] || sleep 0.5
        rm $0.gone$i
        kill -CONT $PPID
    done"""
    p = subprocess.run([SONDE, "record", "-f", "-o", trace, "-t", "sample", "-F", "499", "--", "sh", "-c", script, program],
                       stderr=subprocess.PIPE, text=True)
    trace = Trace(trace)
    stacks, found = Stacks(trace), collections.Counter()
    for e in trace.events("sample_cpu"):
        names = [f.name for f in stacks.stack(e["stack"]) if "short.gone" in f.file]
        found[any(name.startswith("short.gone") for name in names)] += bool(names)
    lost = sum(e["count"] for e in trace.events("meta_loss") if e["reason"] == LOSS_UNKNOWN)
    ok(p.returncode == 0 and found[True] == lost and sum(found.values()) > 10,
       f"stacks without names of programs that ended are counted as losses: {found[True]} of {sum(found.values())}", lost, p.stderr)
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
off_cpu()
with_filter()
ended()
nothing_left()
wrong_usage()
done()
