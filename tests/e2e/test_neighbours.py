#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""What an account does to files that sonde examines does not keep it from probing others' libraries in time."""
import os
import shutil
import stat
import struct
import subprocess
import sys
import time

import account
from sonde_cli import B, Sonde
from sonde_trace import Trace
from tap import ok, skip

LIBRARY = os.path.join(B, "tests", "fakes", "libcudart.so")
CALLS = 500
SOON = 2_000_000_000  # ns from the mapping of a victim's library until it is probed
LARGE = 140 << 20
HUNG = 30
REFUSED = 600
EACH = 20  # of which a subordinate user maps
WARNINGS = 16  # LINES_MAX of user/record/discover/shares.c
SUBUIDS = 100000
VICTIM = f"""import ctypes, mmap, sys
sys.stdin.readline()
library, p = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
with open(sys.argv[2], "rb") as f:
    other = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
print("mapped", flush=True)
sys.stdin.readline()
for _ in range({CALLS}):
    library.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(100))
print("called", flush=True)
sys.stdin.readline()"""
MAPPER = """import mmap, sys
maps = []
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        maps.append(mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE))
print("mapped", flush=True)
sys.stdin.read()"""
# Waits until the parent has given it subordinate ids, and then becomes one for each file
SUBORDINATES = """import ctypes, os, sys
libc = ctypes.CDLL(None)
if libc.unshare(0x10000000):  # CLONE_NEWUSER
    sys.exit(1)
print("made", flush=True)
sys.stdin.readline()
children = []
for i, path in enumerate(sys.argv[2:]):
    pid = os.fork()
    if not pid:
        os.setresuid(1 + i, 1 + i, 1 + i)
        os.execv("/usr/bin/python3", ["python3", "-c", sys.argv[1], path])
sys.stdin.read()"""


def large_library(path, soname):
    """Writes an ELF library with a table of symbols that is as large as that of libtorch, and takes as long to read as any."""
    names = b"\0" + soname + b"\0"
    offsets = []
    for i in range(1000):
        offsets.append(len(names))
        name = b"_name%d" % i
        names += b"_ZN2at4_ops%d%s4callERKNS_6TensorE\0" % (len(name), name)
    text = (b"\x55\x48\x89\xe5\xc3" + b"\x90" * 11) * 1024
    code = 4096
    dynamic_at = code + len(text)
    names_at = dynamic_at + 6 * 16
    symbols_at = (names_at + len(names) + 7) // 8 * 8
    block = b"".join(struct.pack("<IBBHQQ", at, 0x12, 0, 4, code + 16 * k, 16) for k, at in enumerate(offsets))
    symbols = bytes(24) + block * (LARGE // len(block))
    heads_at = symbols_at + len(symbols)
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in
                       ((14, 1), (5, names_at), (6, symbols_at), (10, len(names)), (11, 24), (0, 0)))
    sections = b"\0.dynsym\0.dynstr\0.dynamic\0.text\0.shstrtab\0"

    def head(name, kind, flags, at, size, link=0, info=0, align=1, each=0):
        return struct.pack("<IIQQQQIIQQ", sections.index(name), kind, flags, at if flags else 0, at, size, link, info, align, each)

    heads = (bytes(64) + head(b".dynsym", 11, 2, symbols_at, len(symbols), 2, 1, 8, 24) + head(b".dynstr", 3, 2, names_at, len(names)) +
             head(b".dynamic", 6, 3, dynamic_at, len(dynamic), 2, 0, 8, 16) + head(b".text", 1, 6, code, len(text), 0, 0, 16) +
             head(b".shstrtab", 3, 0, heads_at + 6 * 64, len(sections)))
    size = heads_at + len(heads) + len(sections)
    with open(path, "wb") as f:
        f.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, heads_at, 0, 64, 56, 2, 64, 6, 5))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096))
        f.write(struct.pack("<IIQQQQQQ", 2, 6, *(dynamic_at,) * 3, *(len(dynamic),) * 2, 8))
        f.seek(code)
        f.write(text + dynamic + names)
        f.seek(symbols_at)
        f.write(symbols + heads + sections)


def refused_library(path):
    """Writes a file with the name of a library that sonde probes, which gets a warning."""
    with open(path, "wb") as f:
        f.write(b"no library" * 500)


class Victim:
    """A process of root's that maps a library of its own while sonde records, and calls it when it may be probed; and a file that can't"""

    def __init__(self, tmp, name):
        self.library = os.path.join(tmp, name, "libcudart.so.13")
        os.makedirs(os.path.dirname(self.library))
        shutil.copy(LIBRARY, self.library)
        self.refused = os.path.join(tmp, name, "libcudart.so.12")
        refused_library(self.refused)
        self.p = subprocess.Popen([sys.executable, "-c", VICTIM, self.library, self.refused], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

    def step(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        self.p.stdout.readline()

    def judge(self, name, trace, messages):
        strings = {e["string"]: e["text"] for e in trace.events("meta_string")}
        probed = [e for e in trace.events("meta_object") if strings.get(e["path"]) == self.library and e["sites"]]
        took = [e["live"] - e["first"] for e in probed]
        ok(len(took) == 1 and took[0] <= SOON, f"{name}: another process's library is probed within 2 s", took)
        got = sum(e["pid"] == self.p.pid for e in trace.events("cuda_alloc"))
        ok(got == CALLS, f"{name}: each of its calls is recorded", got)
        ok(messages.count(f"{self.refused}: ") == 1, f"{name}: its file that can't be probed is named", messages[-3000:])
        self.p.communicate()


def beside(name, tmp, attack, is_first=False):
    """Records a victim that maps its library just after the attack has begun; is_first: and just after the recording has."""
    victim = Victim(tmp, name.replace(" ", "-"))
    processes = attack() if is_first else []
    began = time.monotonic()
    recording = Sonde(os.path.join(tmp, "t"), "-t", "cuda,torch,proc")
    print(f"# {name}: sonde traced after {time.monotonic() - began:.1f} s")
    processes = processes or attack()
    victim.step()
    time.sleep(SOON / 1e9)
    victim.step()
    began = time.monotonic()
    status = recording.end()
    print(f"# {name}: sonde ended in {time.monotonic() - began:.1f} s, with status {status}")
    for p in processes:
        p.stdin.close()
        p.wait()
    victim.judge(name, Trace(recording.path), recording.messages)
    return recording.messages


def mapper(who, paths):
    """Processes of the account's subordinate users, each of which maps a file"""
    p = subprocess.Popen(who.command("/usr/bin/python3", "-c", SUBORDINATES, MAPPER, *paths), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    ok(p.stdout.readline() == "made\n", "a user namespace is made")
    # as newuidmap(1) does for what /etc/subuid gives an account
    for kind in ("uid", "gid"):
        with open(f"/proc/{p.pid}/{kind}_map", "w", encoding="ascii") as f:
            f.write(f"0 {SUBUIDS} 65536\n")
    p.stdin.write("\n")
    p.stdin.flush()
    for _ in paths:
        p.stdout.readline()
    return [p]


def hung(who, tmp, kind):
    """Overlays above FUSE in namespaces of the account, with files that its processes map, and servers that do not answer any more"""
    servers = []
    for i in range(HUNG):
        folder = os.path.join(tmp, f"hung-{len(os.listdir(tmp))}-{i}")
        os.mkdir(folder)
        servers.append(subprocess.Popen(who.command("unshare", "-Ur", "-m", f"{tmp}/hung_files", folder, f"{tmp}/libcudart.so.13",
                                                    "libcudart.so.13", kind), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "FUSE_DEVICE": f"{tmp}/fuse"}))
    for p in servers:
        p.stdout.readline()
    for p in servers:
        p.stdin.write("hang\n")
        p.stdin.flush()
        p.stdout.readline()
    return servers


def fuse(who, tmp):
    shutil.copy(os.path.join(B, "tests", "workloads", "hung_files"), tmp)
    # a stripped library, whose debug file is searched in the root of its process
    subprocess.run(["strip", "-o", os.path.join(tmp, "libcudart.so.13"), LIBRARY], check=True)
    os.mknod(os.path.join(tmp, "fuse"), 0o666 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
    os.chmod(os.path.join(tmp, "fuse"), 0o666)
    for kind, name in (("overlay", "files on overlayfs above FUSE"), ("layer", "roots on overlayfs above FUSE")):
        beside(name, tmp, lambda kind=kind: hung(who, tmp, kind))
        beside(name + " that are there before", tmp, lambda kind=kind: hung(who, tmp, kind), True)


def planted(who, tmp):
    paths = []
    for i in range(6):
        folder = os.path.join(tmp, f"planted-{i}")
        os.mkdir(folder)
        paths.append(os.path.join(folder, "libtorch_cpu.so"))
        if i:
            shutil.copy(paths[0], paths[-1])
        else:
            large_library(paths[0], b"libtorch_cpu.so")
        os.chown(paths[-1], SUBUIDS + 1 + i, SUBUIDS + 1 + i)
    beside("six planted libtorches", tmp, lambda: mapper(who, paths))
    beside("six planted libtorches that are there before", tmp, lambda: mapper(who, paths), True)


def refused(who, tmp):
    paths = []
    for i in range(REFUSED):
        folder = os.path.join(tmp, f"refused-{i}")
        os.mkdir(folder)
        paths.append(os.path.join(folder, "libcudart.so.13"))
        refused_library(paths[-1])
        os.chown(paths[-1], who.subuids + i, who.subuids + i)

    def attack(command=who.command, of=paths):
        p = subprocess.Popen(command("/usr/bin/python3", "-c", MAPPER, *of), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        return [p]

    def attack_as_many():
        """As programs whose set-user-ID bits were given in a namespace, and are valid outside of it"""
        found = []
        for i in range(0, REFUSED, EACH):
            ids = [f"--ruid={who.uid}", f"--euid={who.subuids + i}", f"--regid={who.gid}", "--clear-groups"]
            found += attack(lambda *words, ids=ids: ["setpriv", *ids, *words], paths[i:i + EACH])
        return found

    for name, is_first, by in ((f"{REFUSED} planted files", False, attack), (f"{REFUSED} planted files that are there before", True, attack),
                               (f"{REFUSED} planted files of {REFUSED // EACH} subordinate users", False, attack_as_many)):
        messages = beside(name, tmp, by, is_first)
        named = messages.count("/refused-")
        ok(named == WARNINGS, f"{name}: {WARNINGS} of them are named", named)
        count = f"{REFUSED - WARNINGS} more warnings about files and processes of user {who.uid} are not printed"
        ok(messages.count(count) == 1, f"{name}: the others are counted", messages[-3000:])


def attacks(who, tmp):
    refused(who, tmp)
    planted(who, tmp)
    if os.path.exists("/dev/fuse"):
        fuse(who, tmp)
    else:
        skip("files on overlayfs above FUSE", "there is no /dev/fuse")


account.run_with_account(attacks)
