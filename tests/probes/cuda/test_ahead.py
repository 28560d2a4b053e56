#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Preattach: a library on disk is probed before a process maps it, so that there is no attach gap."""
import glob
import os
import shutil
import subprocess
import sys

from account import let_pass
from common import (
    CUDA,
    SLOW,
    SONDE,
    Program,
    Recording,
    compare,
    directory,
    read_truth,
    versions,
)
from tap import done, ok, skip

LOSS_MMAP, LOSS_ATTACH_GAP = 7, 8 # bpf/core/meta.h

# a mapped extension module makes sonde search the site-packages folder that it is in
MAPPER = """import mmap, sys
f = open(sys.argv[1], "rb")
m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("ready", flush=True)
sys.stdin.readline()"""


def packages(tmp, version):
    """Creates a site-packages folder. Returns (an extension module in it, the folder of the library)."""
    folder = os.path.join(tmp, "lib/python3.11/site-packages/nvidia/cuda_runtime/lib")
    os.makedirs(folder)
    library = glob.glob(f"{CUDA}/{version}/lib/libcudart.so.{version}")[0]
    shutil.copy(library, folder)
    # two more names of the file, and a file that is no library
    os.symlink(f"libcudart.so.{version}", os.path.join(folder, "libcudart.so"))
    os.link(os.path.join(folder, f"libcudart.so.{version}"), os.path.join(folder, f"libcudart.so.{version}.0"))
    os.mkfifo(os.path.join(folder, "libcudart.so.fifo"))
    open(os.path.join(folder, "libcudart.so.empty"), "w").close()
    extension = os.path.join(tmp, "lib/python3.11/site-packages/extension.so")
    shutil.copy(glob.glob("/lib/*/libm.so.6")[0], extension)
    return extension, folder


def before_the_command(tmp, folder, program):
    truth, path = os.path.join(tmp, "truth"), os.path.join(tmp, "trace")
    command = ["--", "sh", "-c", 'echo | LD_LIBRARY_PATH=$0 "$@"', folder, program, truth, "50"]
    with Recording(path, *command, families="cuda,proc") as r:
        r.child.wait(SLOW * 60)
    want = read_truth(truth, False)
    pids = {t[0] for t in want}
    ok(r.status == 0 and not r.losses(*pids), "no losses, no attach gap, and the file that is no library is skipped",
       r.status, r.losses(), r.text)
    mine = [o for name, o in r.objects().items() if name.startswith(tmp)]
    ok(len(mine) == 1 and mine[0]["ahead"] == 1 and mine[0]["first"] == mine[0]["live"], "one object, found on disk", mine)
    compare("from its first call", want, r.calls(pids))
    info = subprocess.run([SONDE, "info", r.path], capture_output=True, text=True).stdout
    line = next((s for s in info.splitlines() if f"{folder}/lib" in s), "")
    ok("on disk" in line, "`sonde info` says that it was on disk", info)


def while_attaching(tmp, folder, program):
    """A process maps the library after tracing began and before its probes are attached."""
    truth, path = os.path.join(tmp, "truth2"), os.path.join(tmp, "trace2")
    with Recording(path, test="late-preattach") as r:
        p = Program("env", f"LD_LIBRARY_PATH={folder}", program, truth, "50")
        p.go()
        status = p.wait()
    want = read_truth(truth, False)
    pids = {t[0] for t in want}
    gaps = [e for e in r.trace.events("meta_loss") if e["reason"] in (LOSS_ATTACH_GAP, LOSS_MMAP) and e["pid"] in pids]
    found = sum(len(calls) for calls in r.calls(pids).values())
    total = sum(len(calls) for calls in want.values())
    ok(status == r.status == 0 and found < total and gaps, f"{total} calls while probes are attached: {found} recorded, an attach gap is counted",
       status, r.status, gaps, r.text)


def stopped_meanwhile(tmp, folder):
    """The recording ends while libraries are probed, each of which sonde maps for a moment: that is no attach gap."""
    r = subprocess.run([SONDE, "record", "-t", "cuda", "-d", "0.05", "-f", "-o", os.path.join(tmp, "trace3")], capture_output=True, text=True,
                       env={**os.environ, "SONDE_TEST": "late-preattach"})
    ok(not r.returncode and f"{folder}/" not in r.stderr, "a recording that ends while a library is probed reports no attach gap of its own mapping",
       r.returncode, r.stderr)


def main():
    found = versions("cuda_truth")
    if not found:
        skip("libraries on disk", "no CUDA headers and libraries: scripts/cuda.sh 12 13")
        done()
    version, program = found[-1]
    tmp = directory()
    # the search is done without privileges
    let_pass(tmp)
    extension, folder = packages(tmp, version)
    python = Program(sys.executable, "-c", MAPPER, extension)
    before_the_command(tmp, folder, program)
    while_attaching(tmp, folder, program)
    stopped_meanwhile(tmp, folder)
    python.kill()
    shutil.rmtree(tmp)
    done()


main()
