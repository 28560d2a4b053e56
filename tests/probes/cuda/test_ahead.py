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
    SONDE,
    Program,
    Recording,
    compare,
    directory,
    read_truth,
    versions,
)
from tap import done, ok, skip

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
    truth = os.path.join(tmp, "truth")
    python = Program(sys.executable, "-c", MAPPER, extension)
    with Recording(os.path.join(tmp, "trace")) as r:
        p = Program("env", f"LD_LIBRARY_PATH={folder}", program, truth, "50")
        p.go()
        status = p.wait()
    python.kill()
    ok(status == r.status == 0 and not r.losses(p.pid, python.pid), "no losses, no attach gap, and the file that is no library is skipped",
       status, r.status, r.losses(), r.text)
    mine = [o for path, o in r.objects().items() if path.startswith(tmp)]
    ok(len(mine) == 1 and mine[0]["ahead"] == 1 and mine[0]["first"] == mine[0]["live"], "one object, found on disk", mine)
    want = read_truth(truth, False)
    compare("from its first call", want, r.calls({t[0] for t in want}))
    info = subprocess.run([SONDE, "info", r.path], capture_output=True, text=True).stdout
    line = next((s for s in info.splitlines() if folder in s), "")
    ok("on disk" in line, "`sonde info` says that it was on disk", info)
    shutil.rmtree(tmp)
    done()


main()
