#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""
The text of source lines in a trace: that of the lines that run, on every CPython, and in findings. Of files that the process can't read,
that are no source files, or that were changed after its start, nothing is in the trace.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "gil"))
import gil_lib
from account import Account, let_pass
from recording import Recording
from sonde_cli import SONDE, Sonde
from sonde_trace import Trace
from tap import done, ok, skip

WORK = os.path.join(HERE, "source_work.py")
HOSTILE = os.path.join(HERE, "source_hostile_work.py")
EXPECTED = ("# computes", "# holds", "# wants", "# waits")


def texts(trace, path):
    """{line: text} of a file in the trace"""
    return {e["line"]: e["text_text"] for e in trace.events("meta_source") if e["file_text"] == path}


def lines_that_run(trace, path):
    codes = {e["code"] for e in trace.events("meta_code") if e["file_text"] == path}
    return {e["line"] for e in trace.events("meta_frame") if e["code"] in codes and e["line"]}


def findings(path):
    out = subprocess.run([SONDE, "report", path, "--format", "json"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["findings"]


def check_lines(python):
    with gil_lib.script(python, WORK) as command:
        rec = Recording(command, "sample,lock,sched,gil", ["-F", "499", "--off-cpu"])
    path = command[-1]
    with open(WORK, encoding="ascii") as f:
        lines = dict(enumerate((line.strip() for line in f), 1))
    found = texts(rec.trace, path)
    right = {number: lines[number] for number in lines_that_run(rec.trace, path)}
    ok(found == right, f"the text of each line that runs, {python.name}", (found, right, rec.messages))
    ok(all(any(t.endswith(e) for t in found.values()) for e in EXPECTED), f"computing, holding and waiting, {python.name}", found)
    others = {e["file_text"] for e in rec.trace.events("meta_source")} - {path}
    ok(not others, f"no text of the library, {python.name}", others)
    if python.name == "3.11 debian":
        check_findings(rec.path)


def check_findings(path):
    f = next((f for f in findings(path) if f.get("kind") == "lock"), None)
    ok(f and f["code"]["source"] == "with LOCK:  # wants" and f["counterpart"]["source"] == "with LOCK:" and
       f["activity_code"]["source"] == "time.sleep(0.04)  # holds", "the waiter's, the holder's and the activity's line in a finding", f)
    card = subprocess.run([SONDE, "report", path], check=True, capture_output=True, text=True).stdout.splitlines()
    ok("    source_work.py:24: with LOCK:  # wants" in card and "    source_work.py:18: time.sleep(0.04)  # holds" in card, "and in its card", card[:12])


def posix_acl(*entries):
    """The extended attribute of an access control list (linux/posix_acl_xattr.h)"""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


class Files:
    """Files for the hostile program, each with a secret text that names it"""

    def __init__(self, folder, account):
        self.folder, self.account = folder, account

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, mode=0o644, uid=0, gid=0, ends="\n", lines=5):
        with open(self.path(name), "w", encoding="ascii", newline="") as f:
            f.write(ends.join([f"SECRET_{name.replace('/', '_')}"] * lines))
        os.chown(self.path(name), uid, gid)
        os.chmod(self.path(name), mode)

    def make(self):
        uid = self.account.uid
        os.mkdir(self.path("closed"), 0o700)
        self.write("own.py", 0o600, uid)
        self.write("group.py", 0o640, 0, 12345)
        self.write("secret.py", 0o600)
        self.write("others.py", 0o640)
        self.write("closed/inside.py")
        self.write("key.txt", 0o600, uid)
        self.write("large.py", lines=90000)
        self.write("mac.py", ends="\r")
        self.write("later.py", 0o644, uid)
        self.write("forked.py", 0o644, uid)
        self.write("denied.py")
        os.setxattr(self.path("denied.py"), "system.posix_acl_access",
                    posix_acl((1, 6, 2**32 - 1), (2, 0, uid), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 4, 2**32 - 1)))
        os.mkfifo(self.path("fifo.py"), 0o666)
        for name, target in (("link.py", "key.txt"), ("zero.py", "/dev/zero"), ("kmsg.py", "/proc/kmsg"), ("environ.py", "/proc/self/environ"),
                             ("loop.py", "loop.py"), ("root.py", f"/proc/self/root{self.path('own.py')}")):
            os.symlink(target, self.path(name))
        return sorted(name for name in os.listdir(self.folder) if name not in ("closed", "x.sonde")) + ["closed/inside.py"]


def check_hostile(folder, account):
    files = Files(folder, account)
    names = files.make()
    shutil.copy(HOSTILE, folder)
    work = files.path(os.path.basename(HOSTILE))
    os.environ["MADE_SECRET"] = "SECRET_environment"
    program = ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--groups=12345", "/usr/bin/python3", work, folder,
               *[files.path(n) for n in names], "<string>", "relative.py"]
    rec = Recording(program, "sample", ["-F", "499"])
    ran = {e["name_text"] for e in rec.trace.events("meta_code") if e["name_text"].startswith("busy_")}
    ok(rec.status == 0 and len(ran) == len(names) + 2, "the functions of all files were sampled", (rec.status, ran, names, rec.messages))
    quoted = {os.path.basename(e["file_text"]): e["text_text"] for e in rec.trace.events("meta_source") if e["file_text"] != work}
    ok(quoted == {"own.py": "SECRET_own.py", "group.py": "SECRET_group.py"}, "only files that the process can read are quoted", quoted)
    data = subprocess.run(["zstd", "-dc", rec.path], check=True, stdout=subprocess.PIPE).stdout
    found = {n for n in [*names, "environment"] if f"SECRET_{n.replace('/', '_')}".encode() in data}
    ok(found == {"own.py", "group.py"}, "nothing of other files is in the trace", found)


def write_c(path, named):
    """Writes a C program with a function for each of the files, which #line says that it is in."""
    with open(path, "w", encoding="ascii") as f:
        f.write("#include <time.h>\n")
        for i, name in enumerate(named):
            f.write(f'void busy_{i}(void)\n{{\n\tclock_t end = clock() + CLOCKS_PER_SEC / 4;\n'
                    f'#line 1 "{name}"\n\twhile (clock() < end) for (volatile int i = 0; i < 10000; i++);\n}}\n')
        f.write("int main(void)\n{\n" + "".join(f"\tbusy_{i}();\n" for i in range(len(named))) + "}\n")


def check_hostile_c(folder, account):
    files = Files(folder, account)
    # the other test says what changes of files do
    names = [n for n in files.make() if n not in ("later.py", "forked.py")]
    files.write("own.cpp", 0o600, account.uid)
    files.write("secret.cpp", 0o600)
    names += ["own.cpp", "secret.cpp"]
    program, source = os.path.join(folder, "hostile"), os.path.join(folder, "hostile.c")
    write_c(source, [*(files.path(n) for n in names), "relative.c"])
    subprocess.run(["gcc", "-g", "-O0", "-o", program, "hostile.c"], check=True, cwd=folder)
    rec = Recording(["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--groups=12345", program], "sample", ["-F", "499"])
    ran = {e["name_text"] for e in rec.trace.events("meta_code") if e["name_text"].startswith("busy_")}
    ok(rec.status == 0 and len(ran) == len(names) + 1, "the functions of a C program with these files were sampled", (rec.status, ran, rec.messages))
    quoted = {os.path.basename(e["file_text"]): e["text_text"] for e in rec.trace.events("meta_source") if e["file_text"] != source}
    ok(quoted == {n: f"SECRET_{n}" for n in ("own.py", "group.py", "own.cpp")}, "only files that it can read are quoted", quoted)
    data = subprocess.run(["zstd", "-dc", rec.path], check=True, stdout=subprocess.PIPE).stdout
    found = {n for n in names if f"SECRET_{n.replace('/', '_')}".encode() in data}
    ok(found == {"own.py", "group.py", "own.cpp"}, "nothing of other files is in the trace, either", found)


def record_two(folder, commands, *options):
    """Records programs that wait for a line; returns the trace's path."""
    programs = [subprocess.Popen(c, stdin=subprocess.PIPE) for c in commands]
    time.sleep(0.5)
    path = os.path.join(folder, "x.sonde")
    sonde = Sonde(path, "-F", "499", "--comm", "python3", *options)
    for p in programs:
        p.communicate(b"\n")
    sonde.end()
    return path


def check_containers(folder):
    if not shutil.which("bwrap"):
        skip("containers", "bubblewrap is not installed")
        return
    commands = []
    for name in ("one", "two"):
        os.mkdir(os.path.join(folder, name))
        with open(WORK, encoding="ascii") as f, open(os.path.join(folder, name, "app.py"), "w", encoding="ascii") as to:
            to.write(f.read().replace("# ", f"# {name} "))
        commands.append(["bwrap", "--ro-bind", "/", "/", "--bind", os.path.join(folder, name), "/mnt", "--dev", "/dev", "/usr/bin/python3", "/mnt/app.py"])
    trace = Trace(record_two(folder, commands[:1]))
    found = texts(trace, "/mnt/app.py").values()
    ok("sum(range(20000))  # one computes" in found, "a file in a container's root", found)
    found = [f["code"] for f in findings(record_two(folder, commands)) if f.get("code", {}).get("file") == "/mnt/app.py"]
    ok(found and not any(code["source"] for code in found), "no quote where two containers have different texts", found)


def check_options(folder):
    for option in ("--no-source", "--no-args"):
        trace = Trace(record_two(folder, [["/usr/bin/python3", WORK]], option))
        ok(any(e["name_text"] == "compute" for e in trace.events("meta_code")) and not list(trace.events("meta_source")), f"none with {option}")


gil_lib.each_python("source lines", check_lines)
with tempfile.TemporaryDirectory(prefix="sonde-source-") as tmp:
    check_containers(tmp)
    check_options(tmp)
for check in check_hostile, check_hostile_c:
    with Account() as second, tempfile.TemporaryDirectory(prefix="sonde-source-") as tmp:
        if second.why:
            skip("files of other users", second.why)
        else:
            let_pass(tmp)
            check(tmp, second)
done()
