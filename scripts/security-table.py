#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""security-table.py SONDE [DOC]: the rights and descriptors of sonde's running processes, from /proc.

As root it records a small Python program, reads /proc of the worker, the attacher, a child that parses files and one that reads asyncio's tasks, then of
a `sonde export` that waits for its reader, and prints a table. With DOC it is put between the two marks there.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

BEGIN, END = "<!-- scripts/security-table.py: begin -->", "<!-- scripts/security-table.py: end -->"
TARGET = """
import asyncio, threading, time
async def main():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    while True:
        await asyncio.sleep(0.05)
asyncio.run(main())
"""
CAPABILITIES = {2: "DAC_READ_SEARCH", 5: "KILL", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 38: "PERFMON", 39: "BPF",
                40: "CHECKPOINT_RESTORE"}
ACCOUNTS = {1936682596: "sonde", 1936682597: "sonde-attacher"}


def read(*path):
    with open(os.path.join("/proc", *map(str, path)), encoding="utf-8", errors="replace") as f:
        return f.read()


def status(pid):
    return dict(line.split(":\t", 1) for line in read(pid, "status").splitlines() if ":\t" in line)


def account(uid):
    """The name of the account if it is one of sonde's"""
    if uid in ACCOUNTS:
        return ACCOUNTS[uid]
    for line in open("/etc/passwd", encoding="utf-8"):
        name, _, number = line.split(":")[:3]
        if int(number) == uid and name in ACCOUNTS.values():
            return name
    return "root" if uid == 0 else f"uid {uid}"


def capabilities(mask):
    names = [CAPABILITIES.get(c, str(c)) for c in range(64) if int(mask, 16) >> c & 1]
    return ", ".join(names) or "none"


def namespace(pid, name):
    mine, its = (os.readlink(f"/proc/{p}/ns/{name}") for p in (os.getpid(), pid))
    return "the host's" if mine == its else "its own, empty"


def kind(pid, fd, outputs):
    """A descriptor's kind, or None if it was inherited from the caller"""
    to = os.readlink(f"/proc/{pid}/fd/{fd}")
    # the child that reads tasks has closed what it inherited, so that this may be any descriptor
    if int(fd) <= 2 and not to.endswith("/mem"):
        return None
    mode = int(re.search(r"flags:\t(\d+)", read(pid, "fdinfo", fd)).group(1), 8)
    how = "" if mode & 0o3 == 0 else ", writable"
    if mode & 0o10000000:
        return "the output's folder (O_PATH)" if os.path.isdir(f"/proc/{pid}/fd/{fd}") else "a file (O_PATH)"
    if to.startswith("socket:"):
        return "the socket between the two"
    if to.startswith("pipe:"):
        return "a pipe of its own"
    if re.fullmatch(r"/proc/\d+/mem", to):
        return f"the memory of one process{how}"
    if to == "/dev/null":
        return "/dev/null (in place of a closed map)"
    if to.startswith("/memfd:"):
        return "the kernel's types (BTF)"
    if to.startswith("anon_inode:"):
        name = to.split(":")[1].strip("[]")
        return {"bpf-map": f"BPF maps{how or ', read-only'}", "bpf-prog": "BPF programs", "bpf_link": "BPF links",
                "perf_event": "perf events", "eventpoll": "epoll", "inotify": "inotify", "btf": "the kernel's types (BTF)",
                "pidfd": "pidfds"}.get(name, name)
    if any(os.path.samefile(f"/proc/{pid}/fd/{fd}", o) for o in outputs if os.path.exists(o)):
        return f"the trace{how}"
    return f"files that targets map{how}"


def describe(pid, outputs):
    s = status(pid)
    uids, gids = (set(map(int, s[k].split())) for k in ("Uid", "Gid"))
    root = os.listdir(f"/proc/{pid}/root")
    kinds = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            name = kind(pid, fd, outputs)
        except FileNotFoundError:
            continue  # closed meanwhile
        if name:
            kinds[name] = kinds.get(name, 0) + 1
    counted = [f"{n} {k}" if k.startswith("BPF maps") else k for k, n in kinds.items()]
    return {
        "account": ", ".join(account(u) for u in sorted(uids)),
        "group": ", ".join(account(g) for g in sorted(gids)) + ("" if not s["Groups"].strip() else " and others"),
        "capabilities": capabilities(s["CapPrm"]),
        "bounding set": capabilities(s["CapBnd"]) if int(s["CapBnd"], 16) < 1 << 12 else "full",
        "no_new_privs": {"1": "yes", "0": "no"}[s["NoNewPrivs"].strip()],
        "system calls": {"0": "all", "2": "a filter"}[s["Seccomp"].strip()],
        "dumpable": "no" if os.stat(f"/proc/{pid}/status").st_uid == 0 and 0 not in uids else "yes",
        "network": namespace(pid, "net"),
        "IPC": namespace(pid, "ipc"),
        "mounts": "its own" if namespace(pid, "mnt") != "the host's" else "the host's",
        "files by path": "only its own /proc" if root == ["proc"] else "the host's",
        "descriptors": "; ".join(sorted(counted)) or "none",
    }


def children_named(pid, name):
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            s = status(p)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if s["PPid"].strip() == str(pid) and s["Name"].strip() == name:
            yield int(p)


def child_named(pid, name):
    return next(children_named(pid, name), None)


def parser(examiner):
    """The child that names functions, which keeps the files that it has read; others have none while they wait for a request"""
    for _ in range(200):
        for child in children_named(examiner, "sonde-file"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if describe(child, [])["descriptors"] != "none":
                    return child
        time.sleep(0.05)
    return None


def reader_of_tasks(attacher):
    """The child that reads asyncio's tasks, once it has given up its privileges and found the interpreter"""
    for _ in range(200):
        child = attacher and child_named(attacher, "sonde-tasks")
        if child:
            time.sleep(1)
            return child
        time.sleep(0.05)
    return None


def recording(sonde, tmp, inspect):
    trace = os.path.join(tmp, "trace.sonde")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    target = subprocess.Popen(["/usr/bin/python3", "-c", TARGET])
    worker = subprocess.Popen([sonde, "record", "-t", "proc,gil,python,sample", "--off-cpu", "-p", str(target.pid), "-d", "60", "-o", trace],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        said = ""
        for line in worker.stderr:
            said += line
            if "tracing into" in line:
                break
        time.sleep(0.5)
        attacher = child_named(worker.pid, "sonde-attacher")
        examiner = child_named(worker.pid, "sonde-examiner")
        files = parser(examiner) if examiner else None
        tasks = reader_of_tasks(attacher)
        if worker.poll() is not None or not attacher or not files or not tasks:
            sys.exit(f"no recording: {said}")
        inspect(attacher, tasks, target.pid)
        return [describe(p, [trace]) for p in (worker.pid, attacher, files, tasks)], trace
    finally:
        worker.terminate()
        worker.communicate()
        target.kill()
        target.wait()


def reading(sonde, trace):
    """An export that blocks on a full pipe"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    p = subprocess.Popen([sonde, "export", trace, "--to", "text"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, env=environment, pipesize=4096)
    try:
        for _ in range(100):
            time.sleep(0.02)
            if p.poll() is None and status(p.pid)["NoNewPrivs"].strip() == "1":
                break
        time.sleep(0.1)
        return describe(p.pid, [trace])
    finally:
        p.kill()
        p.communicate()


def table(sonde, inspect=lambda *_: None):
    """`inspect` is called with the attacher, the child that reads tasks, and the process that it reads."""
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        held, trace = recording(sonde, tmp, inspect)
        held.append(reading(sonde, trace))
    lines = ["| | worker (`sonde record`) | `sonde-attacher` | `sonde-file` | `sonde-tasks` | reader (`sonde export`) |", "|---|---|---|---|---|---|"]
    lines += [f"| {row} | " + " | ".join(h[row] for h in held) + " |" for row in held[0]]
    return "\n".join(lines) + "\n"


def in_doc(text):
    """(text before the table, the table, text after it)"""
    before, rest = text.split(BEGIN + "\n", 1)
    inside, after = rest.split(END, 1)
    return before, inside, after


def main():
    made = table(sys.argv[1])
    if len(sys.argv) < 3:
        print(made, end="")
        return
    with open(sys.argv[2], encoding="utf-8") as f:
        before, _, after = in_doc(f.read())
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(f"{before}{BEGIN}\n{made}{END}{after}")


if __name__ == "__main__":
    main()
