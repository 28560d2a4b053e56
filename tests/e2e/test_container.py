#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""sonde in a privileged container with the host's pids. Its root has sonde's libraries, /proc and /sys and nothing
else. The traced programs run outside, from files that have no path in the container."""
import os
import re
import shutil
import subprocess

from puppet import LIBRARY, SONDE, TMP, Puppet, allocs, numbered
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok

INSIDE = os.path.join(TMP, "root")
# a mount and cgroup namespace as container runtimes make them; no tracefs, no bpffs, no /etc
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
# a library that is mapped while sonde records
c = Puppet(library=library)
c.do("name puppet")
c.do("calls 300 7")
for p in (a, b, c, stranger):
    p.end()
status = sonde.end()
trace = Trace(os.path.join(INSIDE, "tmp/t"))
want = numbered(a.pid, 0, 7) + numbered(b.pid, 100, 7) + numbered(c.pid, 300, 7)
ok(status == 0, "sonde records from within a container", sonde.messages)
ok(allocs(trace) == sorted(want), "each call of processes outside is recorded once, with the host's pids", allocs(trace))
paths = {str(e["path_text"]) for e in trace.events("meta_object")}
# paths are from the kernel's root, which differs from this test's root in a chroot
ok(all(any(p.removesuffix(" (deleted)").endswith(f) for p in paths) for f in (library, deleted)),
   "files outside the container and deleted files have their names", paths)
images = {e["pid"]: str(e["command_text"]) for e in trace.events("proc_image")}
ok(a.pid in images and "python3" in images[a.pid], "processes have their programs", images)
shutil.rmtree(INSIDE)
done()
