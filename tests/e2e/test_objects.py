#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that are created and deleted while sonde records: an inode that is reused, processes that end at once, files
that only have the name of a library."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

CALLS_A_ROUND = 6
THREADS = 3


def path(name):
    return os.path.join(TMP, name)


class Recording:
    def __init__(self, name, *args):
        self.sonde = Sonde(path(name), *args)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.status, self.err = self.sonde.end(signal.SIGTERM), self.sonde.messages
        self.trace = Trace(self.sonde.path)
        self.strings = {e["string"]: e["text"] for e in self.trace.events("meta_string")}

    def objects(self):
        return {self.strings[o["path"]]: o for o in self.trace.events("meta_object") if o["family"] == 3}

    def calls(self):
        pids = {}
        for kind in ("cuda_alloc", "cuda_free", "cuda_copy", "cuda_launch", "cuda_sync"):
            for e in self.trace.events(kind):
                pids[e["pid"]] = pids.get(e["pid"], 0) + 1
        return pids


def run(program, library, rounds):
    p = subprocess.Popen([program, "0", str(rounds)], env={**os.environ, "LD_PRELOAD": library})
    p.wait()
    return p.pid


def same_inode(library, inode):
    """Creates a copy of the library on this inode, if the file system reuses it soon."""
    for i in range(200):
        to = path(f"libcudart.so.{i}")
        shutil.copy(library, to)
        if os.stat(to).st_ino == inode:
            return to
    return None


def reused_inode(program, library):
    plugin = path("plugin.so")
    shutil.copy(glob.glob("/lib/x86_64-linux-gnu/libm.so.6")[0], plugin)
    inode = os.stat(plugin).st_ino
    with Recording("reuse", "-t", "proc,cuda") as r:
        subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": plugin}, check=True)
        r.sonde.wait_trace(lambda trace: any(e["path_text"] == plugin for e in trace.events("proc_map")))
        os.unlink(plugin)
        copy = same_inode(library, inode)
        if copy:
            run(program, copy, 1)
            r.sonde.wait_probed(copy)
            pid = run(program, copy, 20)
    if not copy:
        skip("an inode that is reused", "this file system does not reuse inodes soon")
        return
    ok(copy in r.objects(), "a library on a reused inode is probed", list(r.objects()))
    ok(r.calls().get(pid) == CALLS_A_ROUND * THREADS * 20, "each call of it is recorded", r.calls())


def without_gap(trace, paths):
    """The files of which the trace has no attach gap"""
    strings = {e["string"]: e["text"] for e in trace.events("meta_string")}
    blind = {e["object"] for e in trace.events("meta_loss") if e["reason_name"] == "LOSS_ATTACH_GAP"}
    return sorted(set(paths) - {strings[o["path"]] for o in trace.events("meta_object") if o["object"] in blind})


def gone_at_once(program, library):
    copies = [path(f"gone-{i}/libcudart.so.13") for i in range(12)]
    for c in copies:
        os.mkdir(os.path.dirname(c))
        shutil.copy(library, c)
    with Recording("gone", "-t", "proc,cuda") as r:
        running = [subprocess.Popen([program, "0", "1"], env={**os.environ, "LD_PRELOAD": c}) for c in copies]
        for p in running:
            p.wait()
        r.sonde.wait_trace(lambda trace: not without_gap(trace, copies))
    mapped = {r.strings[m["path"]] for m in r.trace.events("proc_map")}
    unseen = without_gap(r.trace, copies)
    ok(not unseen, "libraries of processes that ended at once are in the trace with their attach gap", unseen)
    ok(not [c for c in copies if c not in mapped], "the mappings of these processes are in the trace", sorted(mapped)[:20])


def impostors(program, library):
    """A file that is not ELF and a truncated one, both named like the library and mapped executable."""
    text, cut = path("text/libcudart.so.13"), path("cut/libcudart.so.13")
    for p in (text, cut):
        os.mkdir(os.path.dirname(p))
    open(text, "w").write("no library\n" * 1000)
    open(cut, "wb").write(open(library, "rb").read(9000))
    mapper = """import mmap, sys
for path in sys.argv[1:]:
    f = open(path, "rb")
    globals()[path] = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
sys.stdin.read()"""
    with Recording("impostors", "-t", "cuda") as r:
        p = subprocess.Popen([sys.executable, "-c", mapper, text, cut], stdin=subprocess.PIPE)
        r.sonde.wait_for("not traced")
        p.communicate()
    ok(r.status == 3 and text in r.err and "not traced" in r.err, "files that only look like a library are named",
       r.err)
    ok(list(r.trace.events("meta_end")), "the recording continues to its end")


# Two builds of a library: at the address of the first's function, the second has the middle of a constant that it
# checks.
BUILDS = ("""
    .globl cudaMalloc, cudaFree
    .type cudaMalloc, @function; .type cudaFree, @function
    .p2align 6
cudaMalloc: xor %eax, %eax; ret
    .size cudaMalloc, . - cudaMalloc
    .p2align 4
cudaFree:   xor %eax, %eax; ret
    .size cudaFree, . - cudaFree
    .skip 256
""", """
    .globl cudaMalloc, cudaFree
    .type cudaMalloc, @function; .type cudaFree, @function
    .p2align 6
cudaMalloc: .rept 13; nop; .endr
    movabs $0x1122334455667788, %rax
    movabs $0x1122334455667788, %rcx
    sub %rcx, %rax
    setne %al
    movzbl %al, %eax
    ret
    .size cudaMalloc, . - cudaMalloc
    .p2align 6
cudaFree:   xor %eax, %eax; ret
    .size cudaFree, . - cudaFree
    .skip 192
""")
CALLER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *lib = dlopen(argv[1], RTLD_NOW), *p;
    int (*get)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(lib, "cudaMalloc"), wrong = 0;

    for (int i = 0; i < 500; i++)
        wrong += get(&p, i) != 0;
    printf("%d\\n", wrong);
    fflush(stdout);
    getchar();
    return wrong != 0;
}
"""


def sites_of(trace, file):
    """How many objects of this path have probes"""
    return len({o["object"] for o in trace.events("meta_object") if o["path_text"] == file and o["sites"]})


def overwritten():
    """Copies over a probed library: stale breakpoints would be within constants of the new contents."""
    library, caller = path("libcudart.so.77"), path("caller")
    subprocess.run(["cc", "-x", "c", "-", "-o", caller, "-ldl"], input=CALLER.encode(), check=True)
    for i, text in enumerate(BUILDS):
        subprocess.run(["cc", "-shared", "-nostdlib", "-Wl,--build-id", "-x", "assembler", "-", "-o", path(f"build-{i}")],
                       input=text.encode(), check=True)
    shutil.copyfile(path("build-0"), library)

    def call():
        return subprocess.Popen([caller, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    first = call()
    wrong = [first.stdout.readline()]
    with Recording("overwritten", "-t", "cuda") as r:
        first.communicate("\n")
        shutil.copyfile(path("build-1"), library)
        r.sonde.wait_for("overwritten in place")
        began = {}  # the start of each program, ns
        for _ in range(4):
            now = time.monotonic_ns()
            p = call()
            began[p.pid] = now
            wrong.append(p.stdout.readline())
            # the file is probed again while a process maps it
            r.sonde.wait_trace(lambda trace: sites_of(trace, library) == 2)
            p.communicate("\n")
    ok(wrong == ["0\n"] * 5, "a library that is overwritten while it is probed computes correct results", wrong)
    ok("can't notice writes" not in r.err, "writes to it are noticed", r.err)
    ok(r.status == 3, "the exit status says that something was not recorded", r.err)
    objects = [o for o in r.trace.events("meta_object") if r.strings[o["path"]] == library and o["sites"]]
    ok(len({o["object"] for o in objects}) == 2, "the overwritten library is a new object", objects)
    probed = {e["object"] for e in r.trace.events("meta_object")}
    counted = [e for e in r.trace.events("meta_table") if r.strings[e["table"]] == "files with probes"][-1]
    ok(counted["entries"] + counted["evicted"] == len(probed) - 1, "the change is counted once", (counted, probed))
    if objects:
        live, pids = max(o["live"] for o in objects), r.calls()
        later = [pid for pid, at in began.items() if at > live]
        ok(later and all(pids.get(pid) == 500 for pid in later), "each call of programs that start after it is live is recorded", (pids, began, live))
    blind = {e["object"] for e in r.trace.events("meta_loss") if e["reason_name"] == "LOSS_ATTACH_GAP"}
    ok({o["object"] for o in objects} <= blind, "the time between is an attach gap", blind)


def unreadable():
    """sonde's account can't watch a file that it may not read for writes, and reports this once."""
    caller, names = path("caller"), [path("libcudart.so.78"), path("libcudart.so.79")]
    with Recording("unreadable", "-t", "cuda") as r:
        for i, name in enumerate(names):
            shutil.copyfile(path(f"build-{i}"), name)
            os.chmod(name, 0o711)
            p = subprocess.Popen([caller, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            p.stdout.readline()
            if name not in r.sonde.messages and not i:
                r.sonde.wait_for(name)
            p.communicate("\n")
    said = [line for line in r.err.splitlines() if "can't notice writes" in line]
    ok(len(said) == 1 and names[0] in said[0], "a probed file that sonde can't watch is named once", r.err)


def main():
    if os.uname().machine == "x86_64":
        overwritten()
        unreadable()
    else:
        skip("an overwritten library", "the test's library is made of x86 instructions")
    programs = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-13")))
    if not programs:
        skip("files that are created and deleted", "no CUDA runtime library is available")
        done()
    library = glob.glob(os.path.join(os.environ["CUDA"], "13/lib/libcudart.so.13"))[0]
    reused_inode(programs[0], library)
    gone_at_once(programs[0], library)
    impostors(programs[0], library)


main()
done()
