#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Exports to Kineto's format: a file for each rank of distributed training, in traces that are written for this. Which processes are ranks, the
names of the files, their ranks and times; one process alone; a trace without ranks.
test: smoke parallel"""
import glob
import json
import os
import random
import re
import subprocess
import tempfile
from decimal import Decimal

from account import let_pass
from planted import SONDE, make
from tap import done, ok

START = 1_767_268_800  # of the made traces, CLOCK_REALTIME in s


def rank(pid, number=None, start=0, host="gpu-7"):
    """A rank with one operator, which waits for a collective; and a worker of its data loader, which inherits the rank"""
    lines = [f"proc_fork time=@{start} pid=1 tid=1 child_pid={pid} child_tid={pid}" if start else f"proc_task time=@0 pid={pid} tid={pid} ppid=1",
             f'proc_task time=@0 pid={pid + 50} tid={pid + 50} ppid={pid} comm="pt_data_worker"']
    if number is not None:
        lines += [f"proc_rank time=@0 pid={p} tid={p} rank={number} world_size=2 local_rank={number} host=\"{host}\"" for p in (pid, pid + 50)]
    return lines + [f"torch_op pid={p} tid={p} start=@1.000001 time=@1.000002 probe=1 sequence=-1 inner=0" for p in (pid, pid + 50)] + [
        f"torch_collective pid={pid} tid={pid} start=@1.1 time=@1.2 probe=2"]


def trace(folder, name, *lines):
    head = ['meta_probe time=@0 number=1 name="aten::mm" program="torch_op" section="-" family=14',
            'meta_probe time=@0 number=2 name="c10d::Work::wait" program="torch_collective" section="-" family=14']
    return make(folder, name, [*head, *(line for part in lines for line in part), "meta_end time=@2 reason=END_SIGNAL"], "torch.schema.json", "proc,torch")


def export(paths, *args):
    paths = [paths] if isinstance(paths, str) else paths
    return subprocess.run([SONDE, "export", *paths, "--to", "kineto", *args], capture_output=True, text=True, check=False)


def exported(paths, out, *args):
    """The messages, and {folder of the rank: (file's name, JSON)}"""
    result = export(paths, "-o", out + "/", *args)
    files = {}
    for file in sorted(glob.glob(out + "/*/*")):
        with open(file) as f:
            files[os.path.basename(os.path.dirname(file))] = (os.path.basename(file), json.load(f))
    return result, files


def check_files(files, pids, label):
    info = {name: (content["distributedInfo"]["rank"], content["distributedInfo"]["world_size"]) for name, (_, content) in files.items()}
    ok(info == {"rank_0": (0, 2), "rank_1": (1, 2)}, f"{label}: a folder for each rank", info)
    ok(all(re.fullmatch(rf"gpu-7_{pid}\.{START}0*\.pt\.trace\.json", files[f"rank_{i}"][0]) for i, pid in enumerate(pids)),
       f"{label}: files have the names that torch.profiler gives them", {name: file for name, (file, _) in files.items()})
    spans = {name: [(e["pid"], e["name"]) for e in content["traceEvents"] if e["ph"] == "X"] for name, (_, content) in files.items()}
    ok(spans == {f"rank_{i}": [(pid, "aten::mm"), (pid, "c10d::Work::wait")] for i, pid in enumerate(pids)}, f"{label}: each has its process alone", spans)


def environment(folder):
    path = trace(folder, "environment", rank(20, 1), rank(30, 0))
    result, files = exported(path, os.path.join(folder, "environment"))
    check_files(files, (30, 20), "ranks of the environment")
    ok("guessed" not in result.stderr, "they are no guess", result.stderr)
    _, content = files["rank_0"]
    event = next(e for e in content["traceEvents"] if e["name"] == "aten::mm")
    ns = content["baseTimeNanoseconds"] + round(event["ts"] * 1000)
    ok(abs(ns - (START * 10 ** 9 + 1_000_001_000)) <= 256, "times are on CLOCK_REALTIME", ns)
    result = export(path, "-o", os.path.join(folder, "environment") + "/")
    ok(result.returncode and "exists already" in result.stderr, "files are not overwritten", result.stderr)
    ok(not export(path, "-fo", os.path.join(folder, "environment") + "/").returncode, "but with -f")
    alone = json.loads(export(path, "--event", "20").stdout)
    ok(alone["distributedInfo"]["rank"] == 1 and alone["traceEvents"], "one process alone", alone)
    for option in (("-p", "20"), ("--rank", "1")):
        ok(json.loads(export(path, *option).stdout) == alone, f"the same by {option[0]}")
    ok("several are selected" in export(path, "-p", "20,30").stderr, "not two processes")
    ok("no selected process has rank 2" in export(path, "--rank", "2").stderr, "a rank that no process has")
    parts(path, os.path.join(folder, "parts"))


def parts(path, out):
    """--rank, -p and --time select files and what is in them; --rank is also for other formats."""
    _, files = exported(path, out, "--rank", "1", "--time", "1.05..")
    names = [e["name"] for e in files["rank_1"][1]["traceEvents"] if e["ph"] == "X"]
    ok(list(files) == ["rank_1"] and names == ["c10d::Work::wait"], "--rank and --time with a folder", files)
    ok(list(exported(path, out + "-p", "-p", "30")[1]) == ["rank_0"], "-p with a folder")
    for fmt in ("text", "chrome", "sqlite", "perfetto"):
        a, b = (subprocess.run([SONDE, "export", path, "--to", fmt, *option, "-fo", f"{out}.{option[0]}"], capture_output=True, text=True, check=False)
                for option in (("-p", "30"), ("--rank", "0")))
        same = not a.returncode and not b.returncode and open(out + ".-p", "rb").read() == open(out + ".--rank", "rb").read()
        ok(same, f"{fmt}: --rank 0 writes what -p writes for its process", a.stderr, b.stderr)


def spawned(folder):
    """As of torch.multiprocessing.spawn(): no rank is set. The processes started in the order 40, 20."""
    path = trace(folder, "spawned", rank(20, start=0.2), rank(40, start=0.1))
    result, files = exported(path, os.path.join(folder, "spawned"))
    check_files(files, (40, 20), "processes without a rank")
    ok("guessed" in result.stderr and "order" in files["rank_0"][1]["distributedInfo"]["rank_from"], "the order of their starts is a guess, as it says",
       result.stderr)
    result = export(path)
    listed = {word.strip(",") for word in result.stderr.split()}
    ok(result.returncode == 2 and {"20", "40"} <= listed, "no process is named: the message lists those with calls", result.stderr)
    alone = json.loads(export(path, "--rank", "1").stdout)
    ok(alone == files["rank_1"][1], "--rank with a guessed number", alone["distributedInfo"])


def none(folder):
    path = trace(folder, "none", ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="python3"',
                                  "torch_op pid=10 tid=10 start=@1.000001 time=@1.000002 probe=1 sequence=-1 inner=0"])
    result, files = exported(path, os.path.join(folder, "none"))
    ok(result.returncode and not files and "no process of distributed training" in result.stderr, "a trace without ranks", result.stderr)
    result = export(path, "--event", "10")
    ok("distributedInfo" not in json.loads(result.stdout), "a process that is no rank")
    ok(export(path).stdout == result.stdout, "no process is named, and one has calls of PyTorch")
    path = trace(folder, "empty", ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="bash"'])
    result = export(path)
    ok(result.returncode == 2 and "which process?" in result.stderr, "no process is named, and none has calls", result.stderr)
    result = export(path, "-p", "10")
    ok("no calls of PyTorch or CUDA" in result.stderr and not json.loads(result.stdout)["traceEvents"], "a process without calls", result.stderr)
    path = make(folder, "unnamed", "torch_op pid=10 tid=10 start=@1.000001 time=@1.000002 probe=1 sequence=-1 inner=0\n", "torch.schema.json", "torch")
    result = export(path, "--event", "10")
    ok(not result.returncode and json.loads(result.stdout)["traceEvents"], "a trace without family proc, which names no process", result.stderr)
    result = export(path, "--event", "99999")
    ok(result.returncode == 1 and "no process 99999" in result.stderr, "a process that is not in the trace", result.stderr)


def hosts(folder):
    """In traces of two machines each rank has the name of its own."""
    paths = [trace(folder, f"host-{i}", rank(20 + i, i, host=f"node-{i}")) for i in range(2)]
    _, files = exported(paths, os.path.join(folder, "hosts"))
    names = {name: (file.split("_")[0], content["host_name"]) for name, (file, content) in files.items()}
    ok(names == {f"rank_{i}": (f"node-{i}",) * 2 for i in range(2)}, "ranks of two machines", names)


def touching(folder):
    """Spans that touch, two months after Kineto's base, where doubles of us have a resolution of about 1 ns: for readers that use doubles and for
    readers that round to ns, each ends where the next one begins or before, and none ends after the one around it."""
    random.seed(4)
    lines, pairs, now = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="python3"'], [], 5_000_000 * 10 ** 9
    for _ in range(2000):
        middle, end = now + random.randint(1, 9999), now + random.randint(10_000, 99_999)
        pairs.append((now, middle, end))
        # an operator, and two within it that begin and end with it
        for a, b in ((now, middle), (middle, end), (now, end)):
            lines.append(f"torch_op pid=10 tid=10 start=@{a // 10 ** 9}.{a % 10 ** 9:09} time=@{b // 10 ** 9}.{b % 10 ** 9:09} probe=1 sequence=-1")
        now = end
    path = trace(folder, "touching", lines)
    rows = [e for e in json.loads(export(path, "--event", "10").stdout, parse_float=str)["traceEvents"] if e["ph"] == "X"]
    for kind, start, length in (("doubles", lambda t: float(t["ts"]), lambda t: float(t["dur"])),
                                ("ns", lambda t: round(Decimal(t["ts"]) * 1000), lambda t: round(Decimal(t["dur"]) * 1000))):
        spans = [(start(e), start(e) + length(e)) for e in rows]
        wrong = [(a, b, outer) for a, b, outer in zip(spans[::3], spans[1::3], spans[2::3]) if a[0] != outer[0] or a[1] > b[0] or b[1] > outer[1]]
        wrong += [(a, b) for a, b in zip(spans[2::3], spans[5::3]) if a[1] > b[0]]
        ok(len(spans) == 3 * len(pairs) and not wrong, f"spans that touch do not overlap as {kind}", len(spans), len(wrong), wrong[:2])
    times = [round(Decimal(e["dur"]) * 1000) for e in rows]
    ok(times == [b - a for s, m, e in pairs for a, b in ((s, m), (m, e), (s, e))], "durations, rounded to ns, are the true ones")


def owner(folder):
    """As root by sudo: folders belong to the user behind it, and the owner of a link's target stays what it was."""
    if os.geteuid():
        return
    path, home = trace(folder, "owner", rank(20, 0), rank(30, 1)), os.path.join(folder, "home")
    target = os.path.join(folder, "root")
    let_pass(folder)
    for name, uid in ((home, 12345), (target, 0)):
        os.mkdir(name)
        os.chown(name, uid, uid)
    env = {**os.environ, "SUDO_UID": "12345", "SUDO_GID": "12345", "SUDO_USER": "user"}
    subprocess.run([SONDE, "export", path, "--to", "kineto", "-o", os.path.join(home, "out") + "/"], env=env, capture_output=True, check=False)
    made = sorted(os.path.relpath(p, home) for p in glob.glob(home + "/**", recursive=True) if os.stat(p).st_uid == 12345)
    ok(made[:2] == [".", "out"] and "out/rank_0" in made and len(made) == 6, "folders and files belong to the user behind sudo", made)
    subprocess.run([SONDE, "export", path, "--to", "kineto", "-o", os.path.join(target, "out") + "/"], env=env, capture_output=True, check=False)
    ok(not os.listdir(target), "where that user may create none, there is none", os.listdir(target))
    os.symlink(target, os.path.join(home, "link"))
    os.chown(os.path.join(home, "link"), 12346, 12346, follow_symlinks=False)
    result = subprocess.run([SONDE, "export", path, "--to", "kineto", "-o", os.path.join(home, "link") + "/"], env=env, capture_output=True, text=True,
                            check=False)
    ok(result.returncode and "symbolic link of another user" in result.stderr and os.stat(target).st_uid == 0 and not os.path.exists(target + "/rank_0"),
       "a link of another user is not followed", result.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment(folder)
        spawned(folder)
        none(folder)
        hosts(folder)
        touching(folder)
        owner(folder)
    done()


main()
