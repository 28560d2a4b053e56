#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""sonde finds take_gil's call of pthread_cond_timedwait in every CPython, with and without symbols, and no other call."""
import glob
import json
import os
import re
import subprocess
import tempfile

import gil_lib
import tap

TOP, HERE = gil_lib.TOP, gil_lib.HERE


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, universal_newlines=True, timeout=100).stdout


def build_dumper(tmp):
    out = os.path.join(tmp, "dump")
    sources = [TOP + "/user/site/place_shadow.c", TOP + "/user/util/array.c", TOP + "/user/python/stripped.c",
               *glob.glob(TOP + "/user/elf/elf*.c"), *glob.glob(TOP + "/bpf/probes/gil/gil_find*.c")]
    run("gcc", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-g", "-Wall", "-fsanitize=address,undefined",
        "-I" + TOP + "/user", "-I" + TOP + "/bpf", "-I" + TOP + "/bpf/probes", HERE + "/built/gil_find_dump.c", *sources,
        "-lelf", "-lcapstone", "-llzma", "-o", out)
    return lambda path: json.loads(run(out, path))


def calls_by_objdump(path):
    """The calls of pthread_cond_timedwait that are followed by a comparison with 110, according to objdump"""
    found, last = [], None
    p = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, universal_newlines=True)
    for line in p.stdout:
        m = re.match(r"\s+([0-9a-f]+):\s+(.*)", line)
        if m and last is not None and re.match(r"cmp +\$0x6e,%eax", m[2]):
            found.append(last)
        last = int(m[1], 16) if m and "call" in m[2] and "pthread_cond_timedwait" in m[2] else None
    p.wait()
    return found


def symbols(path, name):
    """[(start, end)] of the functions with this name and of their clones"""
    out = []
    for line in run("readelf", "-sW", path).splitlines():
        w = line.split()
        if len(w) >= 8 and w[3] == "FUNC" and (w[7] == name or w[7].startswith(name + ".")):
            out.append((int(w[1], 16), int(w[1], 16) + int(w[2], 0)))
    return out


def check_python(python):
    d = dump(python.binary)
    calls = [w[0] for w in d["waits"]]
    name = "in take_gil alone, " + python.name
    tap.ok(d["cpython"] and not d["free_threaded"], "taken for a CPython, " + python.name, d)
    functions = symbols(python.binary, "take_gil")
    if functions:
        good = len(calls) == len(functions) and all(any(a <= c < b for c in calls) for a, b in functions)
        tap.ok(good, name, "%s %s" % (functions, d))
        stripped = os.path.join(tmp, "stripped")
        run("strip", "-o", stripped, python.binary)
        tap.ok(dump(stripped)["waits"] == d["waits"], "the same without symbols, " + python.name)
    else:
        tap.ok(calls and calls == calls_by_objdump(python.binary), name + " (stripped)", d)


def targets_by_objdump(path, function):
    """The addresses of the calls of an imported function"""
    out = []
    p = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, universal_newlines=True)
    for line in p.stdout:
        m = re.match(r"\s+([0-9a-f]+):\s+call\s.*<%s(@plt)?>" % function, line)
        if m:
            out.append(int(m[1], 16))
    p.wait()
    return sorted(out)


def check_full(python):
    """--gil=full: each call of the two functions is found, and with symbols it is in the expected functions."""
    d = dump(python.binary)
    signals = targets_by_objdump(python.binary, "pthread_cond_signal")
    tap.ok(d["takes"] and d["drops"] and not d["unknown"] and sorted(d["takes"] + d["drops"]) == signals,
           "takes and drops, %s" % python.name, "%s %s" % (d, signals))
    tap.ok(sorted(w[0] for w in d["switches"]) == targets_by_objdump(python.binary, "pthread_cond_wait"),
           "waits for a switch, %s" % python.name, d)
    functions = symbols(python.binary, "take_gil")
    if functions:
        inside = [any(a <= t < b for a, b in functions) for t in d["takes"] + d["drops"]]
        tap.ok(inside == [True] * len(d["takes"]) + [False] * len(d["drops"]),
               "takes lie in take_gil and drops do not, %s" % python.name, d)
        stripped = os.path.join(tmp, "stripped")
        run("strip", "-o", stripped, python.binary)
        again = dump(stripped)
        tap.ok(all(again[k] == d[k] for k in ("takes", "drops", "switches")), "the same without symbols, " + python.name)


def check_shapes():
    """The shapes of gil_shapes.c: through the PLT, without it, with a long jump, and bytes that only look like the pattern."""
    for what, flags in [("PLT", []), ("clang", ["clang"]), ("no PLT", ["-fno-plt"]), ("long jump", ["-DFAR_JUMP"]),
                        ("lazy binding with CET", ["-fcf-protection=full", "-Wl,-z,lazy,-z,ibtplt"]),
                        ("optimized for size", ["-Os"])]:
        lib = os.path.join(tmp, "shape.so")
        cc = "clang" if flags == ["clang"] else "gcc"
        run(cc, "-O2", "-fPIC", "-shared", *[f for f in flags if f != cc], HERE + "/built/gil_shapes.c", "-o", lib)
        d = dump(lib)
        functions = symbols(lib, "take_gil")
        good = len(d["waits"]) == 1 and functions[0][0] <= d["waits"][0][0] < functions[0][1]
        tap.ok(good, "one wait and not its lookalikes: " + what, "%s %s" % (d, functions))
    run("gcc", "-O2", "-fPIC", "-shared", "-fcf-protection=full", "-Wl,-z,shstk", HERE + "/built/gil_shapes.c", "-nostartfiles",
        "-o", lib)
    tap.ok(dump(lib)["shstk"], "a call through a PLT with shadow stacks (endbr64) is found")


def check_libc(path, name):
    d = dump(path)["libc"]
    returns = []
    start, end = next((a, b) for a, b in symbols(path, "pthread_cond_timedwait@@GLIBC_2.3.2"))
    for line in run("objdump", "-d", "--no-show-raw-insn", "--start-address=%d" % start, "--stop-address=%d" % end,
                    path).splitlines():
        m = re.match(r"\s+([0-9a-f]+):\s+ret", line)
        if m:
            returns.append(int(m[1], 16))
    tap.ok(not d["why"] and d["leave"] == returns and start <= d["enter"] <= start + 4, "libc's exits, " + name, d)


with tempfile.TemporaryDirectory(prefix="sonde-gil-") as tmp:
    dump = build_dumper(tmp)
    gil_lib.each_python("take_gil is found", check_python)
    gil_lib.each_python("takes and drops", check_full)
    tap.ok(len(dump(gil_lib.pythons()[0]["3.8 pyenv"].binary)["waits"]) == 2, "3.8 has two such calls") \
        if "3.8 pyenv" in gil_lib.pythons()[0] else tap.skip("3.8 has two such calls", "there is no Python 3.8")
    check_shapes()
    check_libc(os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6"), "Debian 12")
    sid = glob.glob(gil_lib.sid_root() + "/usr/lib/x86_64-linux-gnu/libc.so.6") if gil_lib.sid_root() else []
    if sid:
        check_libc(sid[0], "sid")
    for path in ["/bin/true", "/etc/passwd", "/lib/x86_64-linux-gnu/libc.so.6"]:
        d = dump(path)
        tap.ok(d["error"] or not (d["cpython"] or d["waits"]), path + " is no CPython", d)
tap.done()
