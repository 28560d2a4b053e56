#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
# case: partly | bpftrace: libraries on overlayfs, copied up later | The process that maps the lower file is refused
"""Each call is recorded exactly once: in containers, through overlays, from files that are deleted, replaced or copied, after exec."""
import collections
import ctypes
import glob
import json
import os
import shutil
import subprocess

from common import (
    CUDA,
    Program,
    Recording,
    directory,
    fake_library,
    read_truth,
    versions,
)
from tap import done, ok, skip

ROUNDS = 60
HOST_PATHS = ("usr", "lib", "lib64", "bin", "sbin")


def library(version):
    return glob.glob(f"{CUDA}/{version}/lib/libcudart.so.{version}")[0]


def exact(name, truth, r, root, live=0):
    """Compares the calls of every thread of the process tree that began after `live` with the trace."""
    want = read_truth(truth, False)
    threads = r.threads(root)
    got = r.calls({pid for pid, _ in threads.values()})
    wrong, total = [], 0
    if not ok(set(want) <= set(threads), f"{name}: the trace has its {len(want)} threads", sorted(want), threads):
        return
    for t, calls in want.items():
        seen = got.pop(threads[t], [])
        calls = [c for c in calls if c[2] > live]
        # the call during which the library went live may be recorded or not
        late = [e for e in seen if e["start"] > live]
        late = late[len(late) - len(calls):] if len(late) == len(calls) + 1 and live else late
        total += len(calls)
        if [(c[0], c[1]) for c in calls] != [(e["function"], e["ret"]) for e in late]:
            wrong.append((t, len(calls), len(late), collections.Counter(e["function"] for e in late)))
        wrong += [(t, c, e) for c, e in zip(calls, late) if not c[2] <= e["start"] <= e["time"] <= c[3]][:3]
    rest = {t: len(calls) for t, calls in got.items() if calls}
    if live and not total and not rest:
        skip(f"{name}: each call once", "the program ended before its library was probed")
        return
    ok(not wrong and not rest and total, f"{name}: {total} calls, each once", *wrong, rest)


def probed(trace, begin):
    """The files whose paths begin so that processes have mapped and in which functions are probed"""
    return [o for o in trace.events("meta_object") if o["family"] == 3 and o["sites"] and o["live"] and not o["ahead"] and
            o["path_text"].startswith(begin)]


def start(program, truth, library_path, *prefix, rounds=ROUNDS):
    """Starts the program. Returns it once the library is mapped."""
    return Program(*prefix, "env", f"LD_LIBRARY_PATH={library_path}", program, truth, str(rounds))


def finish(*programs):
    for p in programs:
        p.go()
    status = [p.wait() for p in programs]
    ok(not any(status), "the programs succeed", status)


def overlay_mount(tmp, name, lower):
    dirs = [os.path.join(tmp, name + d) for d in ("-merged", "-upper", "-work")]
    for d in dirs:
        os.makedirs(d)
    return dirs[0], f"mount -t overlay o -o lowerdir={lower},upperdir={dirs[1]},workdir={dirs[2]} {dirs[0]}"


def two_overlays(program, version, tmp):
    """Overlays in two mount namespaces and the host's path lead to one file."""
    lower = os.path.join(tmp, "lower")
    os.mkdir(lower)
    shutil.copy(library(version), lower)
    truths = [os.path.join(tmp, f"overlay-{i}") for i in range(4)]
    programs = [start(program, truths[0], lower)]
    merged = []
    for name in "ab":
        path, mount = overlay_mount(tmp, name, lower)
        merged.append((path, mount))
        programs.append(start(program, truths[len(programs)], path, "unshare", "-m", "sh", "-c", mount + ' && exec "$@"',
                              "sh"))
    with Recording(os.path.join(tmp, "trace"), families="cuda,proc") as r:
        # another program starts during the recording, in an overlay that no process was in before
        path, mount = overlay_mount(tmp, "c", lower)
        programs.append(start(program, truths[3], path, "unshare", "-m", "sh", "-c", mount + ' && exec "$@"', "sh"))
        finish(*programs)
    ok(r.status == 0 and not r.losses(*(p.pid for p in programs)), "overlays: nothing lost", r.status, r.losses(), r.text)
    mine = [p for p in r.objects() if p.startswith(tmp)]
    ok(len(mine) == 1, "overlays: one object", r.objects())
    for i, (p, name) in enumerate(zip(programs, ("the lower file", "one overlay", "another", "one made meanwhile"))):
        exact(f"overlays: {name}", truths[i], r, p.pid)


def copied_up(program, version, tmp):
    """The file in an overlay is written to, which copies it up: its device and inode numbers stay, but it is another file."""
    lower = os.path.join(tmp, "lower")
    os.mkdir(lower)
    shutil.copy(library(version), lower)
    path, mount = overlay_mount(tmp, "a", lower)
    truths = [os.path.join(tmp, f"up-{i}") for i in range(2)]
    copied = os.path.join(path, f"libcudart.so.{version}")
    in_overlay = "/" + os.path.basename(copied)  # below the root of the overlay
    script = (f"{mount} && env LD_LIBRARY_PATH={path} {program} {truths[0]} {ROUNDS} && printf x >> {copied} && "
              f"LD_LIBRARY_PATH={path} exec {program} {truths[1]} {ROUNDS * 20}")
    p = Program("unshare", "-m", "sh", "-c", script)
    with Recording(os.path.join(tmp, "trace"), families="cuda,proc") as r:
        p.go()
        second = p.says()
        r.wait_trace(lambda trace: len(probed(trace, in_overlay)) == 2)
        p.go()
        status = p.wait()
    ok(status == 0 and second == "ready", "copied up: the programs succeed", status, second)
    mine = probed(r.trace, in_overlay)
    ok(len(mine) == 2, "copied up: two objects", mine)
    exact("before it is copied up", truths[0], only(r, truths[0], p.pid), p.pid)
    if len(mine) == 2:
        exact("after it is copied up", truths[1], only(r, truths[1], p.pid), p.pid, max(o["live"] for o in mine))


def mapped_before_copy(program, version, tmp):
    """One program maps the lower file, and after it was copied up another one maps the copy: only that one can be probed, once."""
    lower = os.path.join(tmp, "lower")
    os.mkdir(lower)
    shutil.copy(library(version), lower)
    path, mount = overlay_mount(tmp, "a", lower)
    truths = [os.path.join(tmp, f"copy-{i}") for i in range(2)]
    subprocess.run(["sh", "-c", mount], check=True)
    try:
        programs = [start(program, truths[0], path)]
        with open(os.path.join(path, f"libcudart.so.{version}"), "ab") as f:
            f.write(b"x")
        programs.append(start(program, truths[1], path))
        with Recording(os.path.join(tmp, "trace"), families="cuda,proc") as r:
            finish(*programs)
    finally:
        subprocess.run(["umount", "-l", path], check=True)
    ok(r.status == 3 and "before overlayfs copied it" in r.text, "mapped before the copy: what can't be probed is said", r.status, r.text)
    exact("mapped after the copy", truths[1], r, programs[1].pid)
    calls = [e for e in r.calls({programs[0].pid}).values() if e]
    ok(not calls, "mapped before the copy: no calls", calls)


def make_root(tmp):
    """Mount points and links of a root file system that has the host's /usr."""
    root = os.path.join(tmp, "root")
    for d in ("usr", "proc", "dev", "opt/cuda", "work"):
        os.makedirs(os.path.join(root, d))
    for d in HOST_PATHS[1:]:
        if os.path.islink("/" + d):
            os.symlink(os.readlink("/" + d), os.path.join(root, d))
    return root


def in_root(program, version, tmp):
    """A program with its own mount, pid and user namespaces and root, which sees the library in an overlay at another path."""
    root, lower = make_root(tmp), os.path.join(tmp, "lower")
    os.mkdir(lower)
    shutil.copy(library(version), lower)
    for d in ("upper", "ovl"):
        os.mkdir(os.path.join(tmp, d))
    shutil.copy(program, os.path.join(root, "work", "program"))
    script = (f"mount --rbind /usr {root}/usr && mount -t proc proc {root}/proc && "
              f"mount -t overlay o -o lowerdir={lower},upperdir={tmp}/upper,workdir={tmp}/ovl,userxattr {root}/opt/cuda "
              f"&& exec chroot {root} /usr/bin/env LD_LIBRARY_PATH=/opt/cuda /work/program /work/truth {ROUNDS}")
    return ["unshare", "--mount", "--user", "--map-root-user", "--pid", "--fork", "sh", "-c", script]


def bubblewrap(program, version, tmp):
    make_root(tmp)
    command = ["bwrap", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--unshare-pid", "--unshare-user",
               "--unshare-ipc", "--unshare-uts", "--bind", os.path.join(tmp, "root/work"), "/work", "--ro-bind",
               os.path.dirname(library(version)), "/elsewhere", "--ro-bind", program, "/program"]
    for d in HOST_PATHS[1:]:
        if os.path.islink("/" + d):
            command += ["--symlink", os.readlink("/" + d), "/" + d]
    return command + ["--setenv", "LD_LIBRARY_PATH", "/elsewhere", "/program", "/work/truth", str(ROUNDS)]


def crun(program, version, tmp):
    root = make_root(tmp)
    bind = [("/usr", "/usr"), (os.path.dirname(library(version)), "/opt/cuda")]
    mounts = [{"destination": to, "source": source, "type": "bind", "options": ["rbind", "ro"]} for source, to in bind]
    shutil.copy(program, os.path.join(root, "work", "program"))
    config = {
        "ociVersion": "1.0.0",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "cwd": "/", "noNewPrivileges": True,
                    "env": ["LD_LIBRARY_PATH=/opt/cuda"], "args": ["/work/program", "/work/truth", str(ROUNDS)]},
        "root": {"path": root, "readonly": False},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}] + mounts,
        "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "uts")]},
    }
    json.dump(config, open(os.path.join(tmp, "config.json"), "w"))
    command = ["crun", "--cgroup-manager=disabled", "--root", os.path.join(tmp, "state"), "run", "--bundle", tmp,
               f"sonde-test-{os.getpid()}"]
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return command
    # runc refuses a machine with both versions of cgroups: hide version 1
    script = "umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec \"$@\""
    return ["unshare", "-m", "sh", "-c", script, "sh", *command]


def container(name, make, program, version, tmp, before):
    """before: True if the container is started before the recording, otherwise during it"""
    if not shutil.which(name.split()[0]):
        skip(name, f"{name} is not installed")
        return
    command = make(program, version, tmp)
    truth = os.path.join(tmp, "root/work/truth")
    when = "before" if before else "during"
    p = begin(command)
    if not p:
        skip(f"{name}, started {when} the recording", "no such container can be made here")
        return
    if not before:
        p.go()
        p.wait()
    with Recording(os.path.join(tmp, "trace"), families="cuda,proc") as r:
        if not before:
            p = begin(command)
            # only calls after the library's attach gap are required; the library may have been found on disk before
            r.wait_trace(lambda trace: any(o["family"] == 3 and o["live"] for o in trace.events("meta_object")))
        p.go()
        status = p.wait()
    ok(status == 0 and r.status == 0, f"{name}, started {when} the recording: the program succeeds", status, r.status, r.text)
    live = 0 if before else max(o["live"] for o in r.objects().values())
    exact(f"{name}, started {when} the recording", truth, r, p.pid, live)


def begin(command):
    p = Program(*command)
    if p.child.poll() is None and p.first == "ready":
        return p
    p.kill()
    return None


def deleted_and_replaced(program, version, tmp):
    folder = os.path.join(tmp, "libs")
    os.mkdir(folder)
    path = os.path.join(folder, f"libcudart.so.{version}")
    truths = [os.path.join(tmp, f"replaced-{i}") for i in range(3)]
    shutil.copy(library(version), path)
    first = start(program, truths[0], folder)
    os.unlink(path)
    shutil.copy(library(version), path)
    second = start(program, truths[1], folder)
    with Recording(os.path.join(tmp, "trace"), families="cuda,proc") as r:
        shutil.copy(library(version), path + ".new")
        os.rename(path + ".new", path)
        third = start(program, truths[2], folder, rounds=ROUNDS * 10)
        r.wait_trace(lambda trace: len({o["ino"] for o in probed(trace, tmp)}) == 3)
        finish(first, second, third)
    mine = probed(r.trace, tmp)
    ok(len({o["ino"] for o in mine}) == 3, "a deleted file, the file at its path, and the file that replaced that one are three objects", mine)
    exact("the deleted file", truths[0], r, first.pid)
    exact("its successor, then replaced", truths[1], r, second.pid)
    exact("what replaced it while sonde records", truths[2], r, third.pid, max(o["live"] for o in mine))


def copies(found, tmp):
    """Every version at once, and a copy of each at another path."""
    programs, n = [], 0
    for version, program in found:
        for copy in range(2):
            folder = os.path.join(tmp, f"copy-{version}-{copy}")
            os.mkdir(folder)
            shutil.copy(library(version), folder)
            truth = os.path.join(tmp, f"copy-truth-{n}")
            programs.append((start(program, truth, folder), truth, f"copy {copy} of version {version}"))
            n += 1
    folder = os.path.join(tmp, "another")
    os.mkdir(folder)
    fake_library(folder, version)
    truth = os.path.join(tmp, "copy-truth-another")
    programs.append((start(program, truth, folder), truth, "another build"))
    with Recording(os.path.join(tmp, "trace"), families="cuda,proc") as r:
        finish(*(p for p, _, _ in programs))
    ok(not r.losses(*(p.pid for p, _, _ in programs)), "copies: nothing lost", r.losses(), r.text)
    for p, truth, name in programs:
        exact(name, truth, r, p.pid)


def exec_chain(program, version, tmp):
    """With -p of a shell that execs the program; calls of another process tree must be absent."""
    folder = os.path.dirname(library(version))
    truths = [os.path.join(tmp, f"exec-{i}") for i in range(3)]
    one = f"env LD_LIBRARY_PATH={folder} {program}"
    script = (f"echo ready; read line; {one} {truths[0]} {ROUNDS}; "
              f"exec sh -c 'exec env A=1 env B=2 {one} {truths[1]} {ROUNDS}'")
    p = Program("sh", "-c", script)
    other = start(program, truths[2], folder)
    with Recording(os.path.join(tmp, "trace"), "-p", str(p.pid), families="cuda,proc") as r:
        p.go()
        p.says()
        p.go()
        p.says()
        finish(p, other)
    # no attach gap, as the other process had mapped the library at the start
    ok(r.status == 0 and not r.losses(), "exec, -p: nothing lost", r.status, r.losses(), r.text)
    exact("exec: in a child", truths[0], only(r, truths[0], p.pid), p.pid)
    exact("exec: after exec of exec", truths[1], only(r, truths[1], p.pid), p.pid)
    ok(not r.calls({t[0] for t in read_truth(truths[2], False)}), "-p: no calls of another process")


class only:
    """A recording without the threads of another program in the same process tree."""

    def __init__(self, r, truth, root):
        mine = set(read_truth(truth, False))
        self.found = {k: v for k, v in r.threads(root).items() if k in mine}
        self.r = r

    def threads(self, root):
        return self.found

    def calls(self, pids):
        return {t: c for t, c in self.r.calls(pids).items() if t in self.found.values()}


def main():
    found = versions("cuda_truth")
    if not found:
        skip("containers", "no CUDA headers and libraries: scripts/cuda.sh 12 13")
        done()
    version, program = found[-1]
    if ctypes.CDLL(None).unshare(0):
        skip("containers", "namespaces can't be created")
        done()
    for test in (two_overlays, copied_up, mapped_before_copy, deleted_and_replaced, exec_chain):
        tmp = directory()
        test(program, version, tmp)
        shutil.rmtree(tmp)
    tmp = directory()
    copies(found, tmp)
    shutil.rmtree(tmp)
    for name, make in (("unshare", in_root), ("bwrap", bubblewrap), ("crun", crun)):
        for before in (True, False):
            tmp = directory()
            container(name, make, program, version, tmp, before)
            shutil.rmtree(tmp)
    done()


main()
