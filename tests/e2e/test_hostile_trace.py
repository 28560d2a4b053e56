#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hostile traces, read by root. One names root's files and a FIFO as sources: the reader gives up root's rights and opens only files
that any user can open. Another has control characters in its texts, none of which may reach the terminal."""
import copy
import json
import os
import re
import resource
import subprocess
import tempfile

from account import DEFAULT_ACCOUNT, run_with_account, sondes_account
from stacks_lib import NATIVE, PYTHON, SCHEMA, Stacks, quoted
from tap import ok, skip

SONDE = os.environ["SONDE"]
SECRET, OWN, OPEN = "root:$6$secret", "the user's own line", "for all to read"


def sonde(*words, account=None, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("SUDO_UID", "SUDO_GID")} | more
    if account:
        env.update(SUDO_UID=str(account.uid), SUDO_GID=str(account.gid))
    try:
        r = subprocess.run([SONDE, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30, env=env)
    except subprocess.TimeoutExpired:
        return None, "", "it hung"
    return r.returncode, r.stdout, r.stderr


def put(path, text, mode, uid=0):
    with open(path, "w") as f:
        f.write(text + "\n")
    os.chmod(path, mode)
    os.chown(path, uid, uid and -1)


def trace(tmp, files):
    s = Stacks()
    for i, file in enumerate(files):
        s.sample(0.001 * (i + 1), 100, s.frame(0, s.function(f"f{i}", file), 1), 1000000)
    path = s.write(tmp, "hostile")
    os.chmod(path, 0o600)
    return path


def opened(command, tmp):
    """(result of a command, files that it opened)"""
    log = os.path.join(tmp, "strace")
    r = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=open,openat", *command], capture_output=True,
                       stdin=subprocess.DEVNULL, timeout=60, check=False)
    with open(log) as f:
        return r, f.read()


def attack(account, tmp):
    secret, own, readable, fifo, link = (os.path.join(tmp, n) for n in ("secret", "own", "readable", "fifo", "link"))
    put(secret, SECRET, 0o600)
    put(own, OWN, 0o600, account.uid)
    put(readable, OPEN, 0o644)
    os.mkfifo(fifo)
    os.symlink(secret, link)
    path = trace(tmp, [secret, own, readable, fifo, link, "/dev/kmsg", "/dev/ptmx"])
    for who in (None, account):
        name = "root through sudo" if who else "root"
        r = sonde("report", path, "lines", account=who)
        ok(r[0] == 0 and SECRET not in r[1] and OPEN in r[1], f"{name}: no line of root's file is printed", r)
        ok((OWN in r[1]) == bool(who), f"{name}: {'one' if who else 'none'} line of the user's own file is printed", r)
        uid = who.uid if who else sondes_account()
        reader = "sonde's own account" if uid == DEFAULT_ACCOUNT else f"user {uid}"
        ok(f"can't be read here by {reader}:" in r[1] and "A user who may read" in r[1],
           f"{name}: a message says that files were left out and how to include them", r)
    try:
        r, calls = opened([SONDE, "report", path, "lines"], tmp)
    except FileNotFoundError:
        skip("opened files", "strace is not installed")
    else:
        wrong = [c for c in calls.splitlines() if "O_PATH" not in c and any(f'"{p}"' in c for p in
                                                                          (fifo, "/dev/kmsg", "/dev/ptmx", secret, link))]
        ok(not r.returncode and calls and not wrong, "no device and no FIFO is opened", wrong)
    export(tmp, path, account)


def export(tmp, path, account):
    """Exports to and from files that only root may access work, although the reader has given up root's rights."""
    folder = os.path.join(tmp, "folder")
    os.mkdir(folder, 0o700)
    for to in ("text", "sqlite", "perfetto"):
        out = os.path.join(folder, to)
        r = sonde("export", path, "--to", to, "-o", out)
        ok(r[0] == 0 and os.path.getsize(out) and os.stat(out).st_uid == 0, f"export --to {to} into root's folder", r)
    for name, mode in (("of root", 0o755), ("of root's group", 0o775)):
        out = os.path.join(tmp, name, "new")
        os.mkdir(os.path.dirname(out))
        os.chmod(os.path.dirname(out), mode)
        r = sonde("export", path, "--to", "text", "-o", out, account=account)
        ok(r[0] == 1 and f"cannot create {out}: Permission denied" in r[2] and f"uid {account.uid}" in r[2] and not os.listdir(os.path.dirname(out)),
           f"an export by sudo into a folder {name} is refused", r)
    with open(out, "w") as f:
        f.write(OPEN)
    os.chmod(os.path.dirname(out), 0o1777)
    r = sonde("export", path, "--to", "text", "-f", "-o", out, account=account)
    with open(out) as f:
        ok(r[0] == 1 and f"cannot create {out}: Operation not permitted" in r[2] and f.read() == OPEN,
           "an export by sudo does not replace root's file in a folder like /tmp", r)
    for to in ("text", "sqlite"):
        out = os.path.join(tmp, "home", to)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        os.chown(os.path.dirname(out), account.uid, account.gid)
        r = sonde("export", path, "--to", to, "-o", out, account=account)
        ok(r[0] == 0 and os.stat(out).st_uid == account.uid and os.stat(out).st_size, f"an export by sudo to {to} belongs to the user", r)
    for words in (("info", path), ("info", path, "--verify"), ("report", path, path), ("export", path, "--to", "text")):
        r = sonde(*words)
        ok(r[0] == 0 and r[1], " ".join(words).replace(tmp + "/", ""), r)
    p = subprocess.Popen(account.command("sleep", "60"))
    r = sonde("list", "probes", "--resolve", str(p.pid), "--placed", "getppid")
    p.kill()
    p.wait()
    ok(r[0] == 0 and "getppid" in r[1], "list --resolve of another user's process", r)


# clears the screen, C1's CSI, a bidi override, DEL
ESCAPES = "\x1b[2J\u009bm\u202e\x7f"
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")


def escapes_trace(tmp):
    """Writes a trace whose names have escape sequences."""
    schema = copy.deepcopy(SCHEMA)
    for name in schema["families"] + schema["enums"][0]["values"]:
        name["name"] += ESCAPES
    schema["events"][-1]["fields"][-2]["name"] += ESCAPES
    s = Stacks()
    s.line("proc_task", time="@0", pid=100, tid=100, comm=quoted(ESCAPES))
    stack = s.frame(0, s.function(ESCAPES, "/tmp/" + ESCAPES, kind=NATIVE))
    s.sample(0.001, 100, stack, 1000000)
    s.line("test_mark", time="@0.002", pid=100, tid=100, stack=stack)
    return s.write(tmp, "escapes", schema)


def check_terminal(tmp):
    path = escapes_trace(tmp)
    for words in ([["export", path, "--to", "csv", "--event", e] for e in ("proc_task", "meta_code", "meta_frame", "test_mark")] +
                  [["export", path, "--to", to] for to in ("text", "folded", "flame")] +
                  [["report", path], ["report", path, "stacks"], ["report", path, "stacks", "--format", "csv"], ["info", path]]):
        r = sonde(*words)
        ok(r[0] == 0 and r[1] and not ACTS.search(r[1] + r[2]), " ".join(words[:1] + words[2:]) + ": no control character is raw", r)
    for words in (["export", path, "--to", "chrome"], ["export", path, "--to", "speedscope"],
                  ["report", path, "processes", "--format", "json"], ["info", path, "--format", "json"]):
        r = sonde(*words)
        ok(r[0] == 0 and not ACTS.search(r[1]) and ESCAPES in json.dumps(json.loads(r[1]), ensure_ascii=False).replace(
            "\\u001b", "\x1b"), " ".join(words[:1] + words[2:]) + ": they are escaped, and read back the same", r)


def check_memory(tmp):
    """The memory for a trace is bounded, and reaching the bound is reported. These small files contain texts of 12 MiB."""
    paths = []
    for i in range(12):
        s = Stacks()
        for n in range(32):
            s.sample(0.001, 100, s.frame(0, s.function(f"{i} {n} " + "a" * 30000, "/srv/app.py"), 1), 1000000)
        paths.append(s.write(tmp, f"large{i}"))
    for words in (["report", *paths], ["report", *paths, "stacks"], ["export", *paths, "--to", "folded"]):
        name = " ".join(w for w in words if w not in paths)
        r = sonde(*words)
        ok(r[0] == 0 and r[1], f"{name} is read within the memory limit", r)
        r = sonde(*words, SONDE_TEST="small-memory")
        ok(r[0] == 1 and not r[1] and "takes more than 8 MiB of memory" in r[2], f"{name} is reported as too large for the memory limit", r)


def check_outside_limit(tmp):
    """Under an external memory limit sonde either prints the report or says that the limit is too low, not that the trace is damaged."""
    s, schema = Stacks(), copy.deepcopy(SCHEMA)
    for n in range(32):
        s.sample(0.001, 100, s.frame(0, s.function(f"{n}" + "a" * 30000, "/srv/app.py"), 1), 1000000)
    schema["events"][-1]["doc"] = "x" * 900000  # the schema is stored in memory several times
    path, wrong, low, high = s.write(tmp, "limited", schema), [], 512 << 10, 64 << 20

    def limited(size):
        return subprocess.run([SONDE, "report", path], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (size, size)))
    while high - low > 4096:
        size = (low + high) // 2 & -4096
        low, high = (low, size) if not limited(size).returncode else (size, high)
    said = 0
    for size in range(high - (800 << 10), high, 24 << 10):
        r = limited(size)
        said += "of memory that sonde was started with" in r.stderr
        # 127: the dynamic loader's own errors
        if r.returncode not in (0, 1, 127) or (r.returncode == 1 and "of memory that sonde was started with" not in r.stderr):
            wrong.append((size, r.returncode, r.stderr))
    ok(not wrong, "a report under external memory limits", wrong)
    ok(said, "the message says that the limit is too low", high)
    # symbols of a large program take more than 8 MiB
    r = sonde("list", "probes", "--resolve", SONDE, "--placed", "*", SONDE_TEST="small-memory")
    ok(r[0] == 1 and "takes more than 8 MiB of memory" in r[2], "list --resolve of a program too large for the memory limit", (r[0], len(r[1]), r[2]))


def check_depth(tmp):
    """A stack with more frames than a recording writes is cut, and this is reported."""
    s, stack = Stacks(), 0
    function = s.function("f", "/srv/app.py")
    for _ in range(3000):
        stack = s.frame(stack, function, 1)
    s.sample(0.001, 100, stack, 1000000)
    r = sonde("export", s.write(tmp, "deep"), "--to", "folded")
    ok(r[0] == 0 and 0 < r[1].count("app.py") <= 1024 and "frames have no caller" in r[2], "a stack of 3,000 frames",
       (r[0], r[1].count("app.py"), r[2]))


def check_time(tmp):
    """Many long stacks share most frames, and one function has a name of 30 KB: the CPU time must not grow with the product."""
    s, stack = Stacks(), 0
    function = s.function("f" * 30000, "/srv/" + "d" * 30000)
    for i in range(10000):
        stack = s.frame(stack, function, 1)
        s.sample(0.001 + i * 1e-6, 100, stack, 1000)
    path = s.write(tmp, "long")

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
    for words in (["report", path, "stacks"], ["export", path, "--to", "text"], ["export", path, "--to", "chrome"],
                  ["export", path, "--to", "sqlite", "-o", f"{tmp}/long.db"]):
        with open(f"{tmp}/long.out", "w+b") as out:
            r = subprocess.run([SONDE, *words], stdout=out, stderr=subprocess.PIPE, preexec_fn=limit, check=False)
            size = max(os.path.getsize(out.name), os.path.exists(f"{tmp}/long.db") and os.path.getsize(f"{tmp}/long.db"))
        ok(r.returncode == 0 and size < 200 << 20, " ".join(words[:1] + words[2:4]) + " of 10,000 stacks with long names",
           (r.returncode, size, r.stderr[-300:]))


def check_deep(tmp):
    """`diff` of stacks that share their callers takes about as long as of as many frames and stacks that are flat."""
    def seconds(name, file, kind, depth):
        s, stack = Stacks(), 0
        function = s.function("f", file, 1, kind)
        for i in range(4000):
            stack = s.frame(stack if i % depth else 0, function, 1)
            s.sample(0.001 + i * 1e-6, 100, stack, 1000)
            s.span("gil_wait", 1 + i * 1e-4, 50000, 100, stack, holder=stack)
        path, before = s.write(tmp, name), resource.getrusage(resource.RUSAGE_CHILDREN)
        r = sonde("diff", path, path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r[0] == 0, after.ru_utime - before.ru_utime
    for name, file, kind in (("the user's", "/srv/app.py", PYTHON), ("Python's", "/usr/lib/python3.11/json/encoder.py", PYTHON),
                             ("native", "/opt/libx.so", NATIVE)):
        flat, deep = (seconds(f"{word}{kind}", file, kind, depth) for word, depth in (("flat", 2), ("deep", 1000)))
        ok(flat[0] and deep[0] and deep[1] < 10 * max(flat[1], 0.05), f"diff of 4,000 deep stacks of {name} code takes no longer than of flat ones",
           flat, deep)


with tempfile.TemporaryDirectory() as folder:
    check_terminal(folder)
    check_memory(folder)
    check_outside_limit(folder)
    check_depth(folder)
    check_time(folder)
    check_deep(folder)
run_with_account(attack)
