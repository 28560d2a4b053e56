#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | py-spy, austin: stripped builds, no section headers; 3.10 to 3.13 |
"""
CPythons that hide: linked into a program without any symbol left, and a file without section headers. Samples, waits for
the GIL and `sonde dump` must be as of any other.
"""
import collections
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "sample"), os.path.join(HERE, "..", "gil")]
import gil_lib
from sample_lib import Stacks, python_of
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import done, ok, skip

WORK = """
import os, threading
def hot():
    while True:
        sum(range(1000))
threading.Thread(target=hot, daemon=True).start()
print(os.getpid(), flush=True)
hot()
"""
EMBED = "#include <Python.h>\nint main(int argc, char **argv) { return Py_BytesMain(argc, argv); }\n"


def check(name, program, home, folder):
    work = subprocess.Popen([program, "-S", "-c", WORK], stdout=subprocess.PIPE, text=True, env={"PYTHONHOME": home, "PATH": "/usr/bin"})
    out = os.path.join(folder, "trace.sonde")
    try:
        work.stdout.readline()
        sonde = Sonde(out, "-t", "sample,gil", "-F", "499", "-p", str(work.pid), "-d", "2")
        status = sonde.end(None)
        dumped = tables("dump", str(work.pid))
    finally:
        work.kill()
        work.wait()
    ok(status == 0, f"recorded, {name}", sonde.messages)
    trace = Trace(out)
    stacks, found = Stacks(trace), collections.Counter()
    for e in trace.events("sample_cpu"):
        found["hot" in {f.name for f in python_of(stacks.stack(e.get("stack", 0)))}] += 1
    ok(found[True] > 100 and found[False] <= 2 + found[True] // 100, f"samples, {name}", dict(found))
    waits = list(trace.events("gil_wait"))
    named = [w for w in waits if "hot" in {f.name for f in python_of(stacks.stack(w["stack"]))}]
    ok(len(waits) > 50 and len(named) >= 0.99 * len(waits), f"waits for the GIL, {name}", f"{len(named)} of {len(waits)} with their stack")
    tids = {f["tid"] for f in dumped["frames"] if f["function"] == "hot"}
    torn = [t for t in dumped["threads"] if t["stack"] == "torn"]
    ok(len(tids) + len(torn) == 2, f"dump, {name}", dumped)


def embed(python, folder):
    """A program with this CPython in it, stripped; None: there is no static library to make it of."""
    version = python.name.split()[0]
    prefix = "/usr" if python.name.endswith("debian") else os.path.dirname(os.path.dirname(python.exe))
    library = glob.glob(f"{prefix}/lib/python{version}/config-{version}-x86_64-linux-gnu/libpython{version}.a")
    if not library or not os.path.exists(f"{prefix}/include/python{version}/Python.h"):
        return None
    source, program = os.path.join(folder, "embed.c"), os.path.join(folder, "embed" + version)
    with open(source, "w", encoding="utf-8") as f:
        f.write(EMBED)
    made = subprocess.run(["cc", "-O2", "-no-pie" if prefix == "/usr" else "-pie", "-s", source, f"-I{prefix}/include/python{version}", library[0],
                           "-o", program, *(["-lexpat", "-lz"] if prefix == "/usr" else []), "-lm", "-ldl", "-lutil", "-lpthread"],
                          capture_output=True, text=True)
    return program if made.returncode == 0 else None


def without_sections(python, folder):
    program = os.path.join(folder, "program")
    with open(python.exe, "rb") as f:
        data = bytearray(f.read())
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    with open(program, "wb") as f:
        f.write(data)
    os.chmod(program, 0o755)
    return program


def main():
    pythons = gil_lib.pythons()[0]
    with tempfile.TemporaryDirectory(prefix="sonde-stripped-") as folder:
        debian = pythons["3.11 debian"]
        check("without section headers, 3.11 debian", without_sections(debian, folder), "/usr", folder)
        for name in ("3.10 pyenv", "3.11 debian", "3.11 pyenv", "3.12 pyenv", "3.13 pyenv"):
            program = embed(pythons[name], folder) if name in pythons else None
            if program:
                home = "/usr" if name == "3.11 debian" else os.path.dirname(os.path.dirname(pythons[name].exe))
                check(f"without symbols, {name}", program, home, folder)
            else:
                skip(f"without symbols, {name}", "no static library, or one that can't be linked here")
    done()


main()
