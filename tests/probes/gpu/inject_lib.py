# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of `sonde inject`: targets, also in containers, and the state that must not change."""
import glob
import json
import os
import re
import shutil
import subprocess
import time

import proc_files
from shim_lib import BUILD, ROOT, SHIM

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
TARGET = os.path.join(BUILD, "tests", "probes", "gpu", "inject_target")
HOST_PATHS = ("lib", "lib64", "bin", "sbin")
SCRATCH = 512 * 1024  # user/inject/load.c


def make_root(tmp):
    """Creates a root file system with the host's /usr and nothing of sonde."""
    root = os.path.join(tmp, "root")
    for d in ("usr", "proc", "dev", "work"):
        os.makedirs(os.path.join(root, d), exist_ok=True)
    for d in HOST_PATHS:
        if os.path.islink("/" + d) and not os.path.lexists(os.path.join(root, d)):
            os.symlink(os.readlink("/" + d), os.path.join(root, d))
    return root


def unshare(tmp, command, bind):
    root = make_root(tmp)
    for path in bind:
        os.makedirs(os.path.join(root, "bound", os.path.basename(path)), exist_ok=True)
    mounts = "".join(f"mount --bind {path} {root}/bound/{os.path.basename(path)} && " for path in bind)
    script = (f"mount --rbind /usr {root}/usr && {mounts} mount -t proc proc {root}/proc && "
              f"mount --bind {tmp} {root}/work && exec chroot {root} \"$@\"")
    return ["unshare", "--mount", "--user", "--map-root-user", "--pid", "--fork", "sh", "-c", script, "sh", *command]


def bwrap(tmp, command, bind):
    found = ["bwrap", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--unshare-pid", "--unshare-user",
             "--unshare-ipc", "--unshare-uts", "--bind", tmp, "/work"]
    for path in bind:
        found += ["--ro-bind", path, "/bound/" + os.path.basename(path)]
    for d in HOST_PATHS:
        if os.path.islink("/" + d):
            found += ["--symlink", os.readlink("/" + d), "/" + d]
    return found + command


def crun(tmp, command, bind):
    root = make_root(tmp)
    binds = [("/usr", "/usr"), (tmp, "/work")] + [(p, "/bound/" + os.path.basename(p)) for p in bind]
    config = {
        "ociVersion": "1.0.0",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "cwd": "/", "noNewPrivileges": True,
                    "env": [f"{k}={v}" for k, v in os.environ.items() if k.startswith(("FAKE_", "SONDE_TEST_RUN"))],
                    "args": command},
        "root": {"path": root, "readonly": False},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}] +
                  [{"destination": to, "source": source, "type": "bind", "options": ["rbind"]} for source, to in binds],
        "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "uts")]},
    }
    bundle = os.path.join(tmp, "bundle")
    os.makedirs(bundle, exist_ok=True)
    with open(os.path.join(bundle, "config.json"), "w") as f:
        json.dump(config, f)
    crun.number += 1
    run = ["crun", "--cgroup-manager=disabled", "--root", os.path.join(tmp, "state"), "run", "--bundle", bundle,
           f"sonde-inject-{os.getpid()}-{crun.number}"]
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return run
    # runc refuses a machine with both versions of cgroups: hide version 1
    script = "umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec \"$@\""
    return ["unshare", "-m", "sh", "-c", script, "sh", *run]


crun.number = 0
CONTAINERS = {"unshare": unshare, "bwrap": bwrap, "crun": crun}


def parent(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def descendant(root, name):
    """The pid, in this pid namespace, of the descendant of `root` that runs this program"""
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path) as f:
                if f.read().strip() != name[:15]:
                    continue
            pid = p = int(path.split("/")[2])
            while p > 1:
                if p == root:
                    return pid
                p = parent(p)
        except OSError:
            continue
    return None


class Target:
    """A program that has printed "ready", waits for a line and prints its result."""

    def __init__(self, command, container=None, tmp=None, bind=(), env=None):
        self.name = os.path.basename(command[0])
        if container:
            for path in [command[0]] if not bind else ():
                shutil.copy(path, tmp)
                command = ["/work/" + os.path.basename(path), *command[1:]]
            command = CONTAINERS[container](tmp, command, bind)
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=env)
        self.first = self.child.stdout.readline()
        self.ready = self.first.startswith("ready")
        self.pid = descendant(self.child.pid, self.name) if container else self.child.pid
        self.ready = self.ready and bool(self.pid)

    def go(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self, timeout=60):
        self.output, self.errors = self.child.communicate("\n" if self.child.poll() is None else None, timeout=timeout)
        return self.child.returncode

    def kill(self):
        if self.ready:
            os.kill(self.pid, 9)
        self.child.kill()
        self.child.communicate()


def inject(*pids, force=False, prefix=(), sonde=SONDE):
    return subprocess.run([*prefix, sonde, "inject", *(["--force"] if force else []), *map(str, pids)], capture_output=True,
                          text=True, timeout=60)


def has_shim(pid):
    with open(f"/proc/{pid}/maps") as f:
        return "libsonde-cupti.so" in f.read()


class State:
    """The state of a process: descriptors, signal masks of its threads, memory, tracer"""

    def __init__(self, pid):
        self.look(pid)
        # a thread blocks all signals while it starts, and a handler's signal in the handler: the most frequent mask
        # counts
        for _ in range(4):
            time.sleep(0.03)
            masks, self.masks = self.masks, {}
            self.look(pid)
            self.masks = {tid: m | masks.get(tid, set()) for tid, m in self.masks.items()}

    def look(self, pid):
        self.fds, self.masks, self.tracers = proc_files.open_files(pid), {}, set()
        for tid in proc_files.threads(pid):
            status = proc_files.status(pid, tid)
            if not status:
                continue
            # libc uses signals 32 and 33 from the first thread on, which may be the shim's; they may have been ignored
            # when the tests were started
            self.masks[tid] = {(status["SigBlk"], *(int(status[name], 16) & ~(3 << 31) for name in ("SigIgn", "SigCgt")))}
            self.tracers.add(status["TracerPid"])
        with open(f"/proc/{pid}/maps") as f:
            self.maps = [line.split(None, 5) for line in f]

    def scratch(self):
        """The anonymous mappings with exactly the size of the stack on which sonde makes its calls"""
        found = 0
        for m in self.maps:
            start, end = (int(a, 16) for a in m[0].split("-"))
            found += end - start == SCRATCH and m[1] == "rw-p" and len(m) < 6
        return found


def differences(before, after, memfd):
    """The differences between two states, except for those that the shim makes"""
    found = []
    extra = {fd: to for fd, to in after.fds.items() if before.fds.get(fd) != to}
    if memfd:
        extra = {fd: to for fd, to in extra.items() if not (fd >= 200 and to.startswith("/memfd:libsonde-cupti.so"))} or \
            ({} if len(extra) == 1 else extra or {"none": "the shim's own is not there"})
    if extra or set(before.fds) - set(after.fds):
        found.append(("descriptors", extra, before.fds))
    masks = {tid: (m, after.masks[tid]) for tid, m in before.masks.items()
             if tid in after.masks and not m & after.masks[tid] and {blocked for blocked, _, _ in m} != {"fffffffffffbfeff"}}
    if masks:
        found.append(("signal masks", masks))
    if after.tracers != {"0"}:
        found.append(("traced by", after.tracers))
    if after.scratch() > before.scratch():
        found.append("the stack for the calls is still mapped")
    return found


def changed_text(pid, names=("libc.so.6", "inject_target")):
    """The mappings of code that differ from their file"""
    found = []
    with open(f"/proc/{pid}/maps") as f, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in f:
            m = re.match(r"(\w+)-(\w+) r-xp (\w+) \S+ \d+\s+(.*)", line)
            if not m or not any(n in m[4] for n in names):
                continue
            start, end, offset = (int(m[i], 16) for i in (1, 2, 3))
            with open(f"/proc/{pid}/map_files/{m[1]}-{m[2]}", "rb") as file:
                file.seek(offset)
                want = file.read(end - start)
            mem.seek(start)
            if mem.read(len(want)) != want:
                found.append(m[4])
    return found


def shim_thread(pid):
    return any(proc_files.read(f"/proc/{pid}/task/{tid}/comm") == "sonde-cupti\n" for tid in proc_files.threads(pid))


__all__ = [n for n in dir() if not n.startswith("_")] + ["SHIM"]
