#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
# case: right | perf, bpftrace: code of node, Java, .NET that a JIT compiler made |
"""Functions have the names that /tmp/perf-PID.map has when the recording ends; without the file each report says how to get it.
No link and no file of another user is read. Names of C++ are demangled."""
import os
import shutil
import sqlite3

from cards import unwrapped
from case import FOLDER, finish, record, say, script, start
from tap import ok, skip

# a loop at the start of the page and one 256 bytes later: dec %rdi; jnz; ret
JIT = script("jit.py", """import ctypes, mmap, os, sys
kind = sys.argv[1]
page = mmap.mmap(-1, 4096, (mmap.MAP_SHARED if kind == "file" else mmap.MAP_PRIVATE) | mmap.MAP_ANONYMOUS,
                 mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
for at in range(0, 4096, 256):
    page[at:at + 6] = b"\\x48\\xff\\xcf\\x75\\xfb\\xc3"
calls = [ctypes.CFUNCTYPE(None, ctypes.c_uint64)(address + at) for at in range(0, 4096, 256)]
path = f"/tmp/perf-{os.getpid()}.map"
def write(to):
    with open(to, "w") as f:
        f.write(f"junk\\n{address:x} 1000 overwritten\\n")
        for i in range(16):
            f.write(f"{address + 256 * i:x} 10 JS:*hot{i % 2} /srv/a b.js:{i % 2}:1\\n")
if kind == "file":
    write(path)
elif kind == "link":
    write(sys.argv[2])
    os.symlink(sys.argv[2], path)
elif kind == "hard":
    write(path)
    os.link(path, sys.argv[2])
print("ready", flush=True)
def main():
    for _ in range(int(sys.argv[3])):
        for call in calls:
            call(10000)
main()
""")


def maps():
    return {name for name in os.listdir("/tmp") if name.startswith("perf-")}


def recorded(name, kind, *options):
    program = start("/usr/bin/python3", JIT, kind, os.path.join(FOLDER, kind), "1000000000", until="ready")
    trace = record("-d", "1", "-F", "499", "-p", program.pid, *options, name=name)
    program.kill()
    program.wait()
    return trace


before = maps()
try:
    trace = recorded("file", "file")
    said = say("report", trace, "stacks", "--format", "csv")
    ok("hot0" in said and "hot1" in said and "JS:" not in said, "functions have the names of the perf map", said)
    say("export", trace, "--to", "sqlite", "-o", os.path.join(FOLDER, "x.db"))
    with sqlite3.connect(os.path.join(FOLDER, "x.db")) as db:
        frames = set(db.execute("SELECT name, source, line FROM sonde_frames WHERE name LIKE 'hot%'"))
    ok(frames == {("hot0", "/srv/a b.js", None), ("hot1", "/srv/a b.js", 1)}, "and files and lines", frames)
    ok("overwritten" not in said and "without a file" not in said, "of several names of an address the last one counts", said)
    said = say("report", record("-F", "499", "--", "/usr/bin/python3", JIT, "file", "x", "4000", name="ended"), "stacks", "--format", "csv")
    ok("hot0" in said, "of a process that has ended, too", said)
    said = unwrapped(say("report", recorded("none", "none"), "stacks"))
    ok("[code without a file]" in said and "node --perf-basic-prof" in said, "without the file the report says how to get it", said)
    for kind in "link", "hard":
        said = unwrapped(say("report", recorded(kind, kind), "stacks"))
        ok("hot0" not in said and "it is a link, or not a file of the process's user" in said, f"a {kind} link is not read", said)
    if shutil.which("node"):
        node = start("node", "--perf-basic-prof", script("hot.js", """function hotJs(n) {
  let x = n;
  for (let i = 0; i < 1e7; i++) x = (x * 31 + 7 + i) % 1000003;
  return x;
}
function main() { let s = 0; for (;;) s += hotJs(s % 10); }
main();
"""), cwd=FOLDER)
        trace = record("-d", "2", "-F", "199", "-p", node.pid, name="node")
        card = say("report", trace)
        first = card.split("\n")[0]
        ok(" in hotJs (hot.js:1)" in first, "the first line has node's function and where it begins", first)
        ok("\n    hot.js:1: function hotJs(n) {\n" in card, "and the text of that line", card)
        said = say("export", trace, "--to", "folded", "-o", "-")
        ok("node::Start" in said and "_ZN" not in said, "names of C++ are demangled", said[:2000])
    else:
        skip("names of node's functions", "node is not installed")
finally:
    for name in maps() - before:
        os.unlink(os.path.join("/tmp", name))
finish()
