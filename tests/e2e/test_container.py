#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""From a privileged container with the host's pids: a root of its own, with sonde's libraries, /proc and /sys and
nothing else. What is traced runs outside, from files that the container can't name."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from puppet import LIBRARY, SONDE, TMP, Puppet, Sonde, allocs, numbered
from sonde_trace import Trace
from tap import done, ok

INSIDE = os.path.join(TMP, "root")
# its own mounts and cgroup namespace, as container runtimes make them; no tracefs, no bpffs, no /etc
ENTER = ("unshare", "-m", "-C", "sh", "-c",
         f"mount --bind {INSIDE} {INSIDE} && mount -t proc proc {INSIDE}/proc && mount -t sysfs sys {INSIDE}/sys && "
         f'cd {INSIDE} && exec chroot {INSIDE} "$@"', "sh")


def copy(path):
    to = INSIDE + path
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copy(path, to)


def make_root():
    for name in ("proc", "sys", "tmp", "bin"):
        os.makedirs(os.path.join(INSIDE, name))
    listed = subprocess.run(["ldd", SONDE], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", listed):
        copy(path)
    shutil.copy(SONDE, os.path.join(INSIDE, "bin/sonde"))


make_root()
outside = os.path.join(TMP, "outside")
os.mkdir(outside)
library = os.path.join(outside, "libcudart.so.96")
shutil.copy(LIBRARY, library)
deleted = os.path.join(outside, "libcudart.so.95")
shutil.copy(LIBRARY, deleted)
a, b, stranger = Puppet(library=library), Puppet(library=deleted), Puppet(library=library)
os.remove(deleted)
for p in (a, b):
    p.do("name puppet")
sonde = Sonde("/tmp/t", "-t", "cuda,proc,gil", "--comm", "puppet", prefix=ENTER, program="/bin/sonde")
for i, p in enumerate((a, b, stranger)):
    p.do(f"calls {100 * i} 7")
# a library that comes while sonde records
c = Puppet(library=library)
c.do("name puppet")
c.do("calls 300 7")
for p in (a, b, c, stranger):
    p.end()
status = sonde.end()
trace = Trace(os.path.join(INSIDE, "tmp/t"))
want = numbered(a.pid, 0, 7) + numbered(b.pid, 100, 7) + numbered(c.pid, 300, 7)
ok(status == 0, "it records from within", sonde.messages)
ok(allocs(trace) == sorted(want), "the calls of processes outside, each once; pids are the host's", allocs(trace))
paths = {str(e["path_text"]) for e in trace.events("meta_object")}
# from the kernel's own root, which is not this test's where that runs in a chroot
ok(all(any(p.removesuffix(" (deleted)").endswith(f) for p in paths) for f in (library, deleted)),
   "files that it can't name, and deleted ones", paths)
images = {e["pid"]: str(e["command_text"]) for e in trace.events("proc_image")}
ok(a.pid in images and "python3" in images[a.pid], "what they run", images)
shutil.rmtree(INSIDE)
done()
