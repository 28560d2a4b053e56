#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Another user's attacks with a library that root's programs use: bind mounts, false names, forged debug files. Root's
sonde must not change the programs' results and must not lose their calls."""
import os
import shutil
import signal
import subprocess
import tempfile

from account import Account, let_pass
from cards import unwrapped
from sonde_cli import Sonde
from tap import done, ok, skip, skip_all

SONDE, ROOT = os.environ["SONDE"], os.environ["ROOT"]
from sonde_trace import Trace

CALLS = 500

LIBRARY = """
    .globl {0}
    .type {0}, @function
    .p2align 6
{0}: .cfi_startproc
    movabs $0x1122334455667788, %rax
    movabs $0x1122334455667788, %rcx
    sub %rcx, %rax
    setne %al
    movzbl %al, %eax
    ret
    .cfi_endproc
    .size {0}, . - {0}
    .skip 64
"""
# the text by which NVIDIA's runtime is recognized in a program that it is statically linked into
DEVICE = """
    .section .nv_fatbin, "a"
    .quad 1
    .section .rodata
    .asciz "cudaErrorCudartUnloading"
"""
# symbols according to which the function begins in the constant of an instruction
FORGED = """
    .globl cudaMalloc, libcudart_static_0123
    .type cudaMalloc, @function
    .set cudaMalloc, {0}
    .set libcudart_static_0123, {0}
    .size cudaMalloc, 32
"""
CALLER = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int (*work)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(dlopen(argv[1], RTLD_NOW), argv[2]);
    int wrong = 0, n = atoi(argv[3]);
    void *p;

    if (argc > 4)
        getchar();
    for (int i = 0; i < n; i++)
        wrong += work(&p, i) != 0;
    printf("%d\\n", wrong);
    return 0;
}
"""
# maps a file as code, prints a line, and waits for the end of its input
MAPPER = """
import mmap, sys
maps = []
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        maps.append(mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("mapped", flush=True)
sys.stdin.read()
"""
SPACE = ("unshare", "--user", "--map-root-user", "--mount")


class Recording:
    def __init__(self, path, families="cuda"):
        self.sonde = Sonde(path, "-t", families)

    def end(self):
        self.sonde.end(signal.SIGTERM)
        self.err = self.sonde.messages
        self.trace = Trace(self.sonde.path)
        self.strings = {e["string"]: e["text"] for e in self.trace.events("meta_string")}

    def lines(self, path):
        """sonde's messages about a file"""
        return [line for line in self.err.splitlines() if path in line and "tracing into" not in line]

    def sites(self, path):
        return sum(o["sites"] for o in self.trace.events("meta_object") if self.strings[o["path"]] == path)

    def calls(self, pid):
        return sum(1 for kind in ("cuda_alloc", "cuda_call") for e in self.trace.events(kind) if e["pid"] == pid)


def assemble(path, source, *flags):
    subprocess.run(["cc", "-shared", "-nostdlib", "-x", "assembler", "-", "-o", path, *flags], input=source.encode(), check=True)
    os.chmod(path, 0o644)


def address_of(path, name):
    out = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in out.splitlines() if line.split()[-1] == name)


def mapper(account, script, *args):
    """Starts another user's process in its own namespaces, which runs the script and then maps the file."""
    p = subprocess.Popen(account.command(*SPACE, "sh", "-c", script + '; exec /usr/bin/python3 -c "$MAPPER" "$@"', "sh", *args),
                         env={**os.environ, "MAPPER": MAPPER}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    if line != "mapped\n":
        p.kill()
        raise RuntimeError(f"the other user's process said {line!r}")
    return p


def call(tmp, library, function, n=CALLS):
    """Calls the function as root. Returns the pid and the number of wrong results."""
    p = subprocess.Popen([os.path.join(tmp, "caller"), library, function, str(n)], stdout=subprocess.PIPE, text=True)
    return p.pid, p.communicate(timeout=60)[0].strip()


def call_probed(tmp, library, function, sonde):
    """The same, but the process calls when sonde probes the library: while sonde attaches thousands of sites, it examines no other file."""
    p = subprocess.Popen([os.path.join(tmp, "caller"), library, function, str(CALLS), "wait"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    sonde.wait_probed(library)
    return p.pid, p.communicate("\n", timeout=60)[0].strip()


def folder(account, tmp, name):
    """Creates a folder of the other user with mount points."""
    path = os.path.join(tmp, name)
    os.mkdir(path)
    os.chown(path, account.uid, account.gid)
    return path


def hidden(account, tmp):
    """The other user maps the library first, under a name that is no library's."""
    theirs, library = folder(account, tmp, "hidden"), os.path.join(tmp, "libcudart.so.91")
    assemble(library, LIBRARY.format("cudaMalloc"), "-Wl,-soname,libcudart.so.91")
    innocent = os.path.join(theirs, "innocent.so")
    r = Recording(os.path.join(tmp, "hidden.sonde"))
    p = mapper(account, f": > {innocent} && mount --bind {library} {innocent}", innocent)
    r.sonde.wait_probed(tmp)
    pid, wrong = call(tmp, library, "cudaMalloc")
    p.communicate("")
    r.end()
    ok(r.calls(pid) == CALLS and wrong == "0", "hidden by a bind mount: each call of another user's process is recorded",
       r.calls(pid), wrong, r.err)


def impostors(account, tmp):
    """Files with the library's name and other contents."""
    theirs = folder(account, tmp, "impostors")
    other, plain = os.path.join(tmp, "libother.so.1"), os.path.join(tmp, "libplain.so")
    assemble(other, LIBRARY.format("cudaMalloc"), "-Wl,-soname,libother.so.1")
    assemble(plain, LIBRARY.format("work"))
    r = Recording(os.path.join(tmp, "impostors.sonde"))
    running, paths = [], []
    for i, path in enumerate((other, plain)):
        paths.append(os.path.join(theirs, f"libcudart.so.{i}"))
        running.append(mapper(account, f": > {paths[i]} && mount --bind {path} {paths[i]}", paths[i]))
    for _ in paths:
        r.sonde.wait_for("not probed")
    pid, wrong = call(tmp, other, "cudaMalloc")
    for p in running:
        p.communicate("")
    r.end()
    for path, name in zip(paths, ("another library's DT_SONAME", "none of the functions")):
        ok(not r.sites(path) and len(r.lines(path)) == 1 and "not probed" in r.lines(path)[0],
           f"named libcudart, {name}: not probed, and one message says so", r.sites(path), r.err)
    ok(not r.calls(pid) and wrong == "0", "calls by the name that other processes see are not recorded either", r.calls(pid), wrong)


def function(name):
    return f"""
    .globl {name}
    .type {name}, @function
    .p2align 4
{name}: .cfi_startproc
    push %rbx
    pop %rbx
    ret
    .cfi_endproc
    .size {name}, . - {name}
"""


def many_names(account, tmp):
    """Libraries of the other user export thousands of functions under names that a family probes. Site numbers must remain for other libraries."""
    theirs, pids = folder(account, tmp, "many"), []
    for i in range(6):
        path = os.path.join(theirs, f"libnccl.so.{i}")
        assemble(path, "".join(map(function, ["ncclAllReduce", "ncclCommInitRank", *(f"ncclA{i}B{k}" for k in range(2000))])),
                 "-Wl,-soname,libnccl.so.2")
        os.chown(path, account.uid, account.gid)
    r = Recording(os.path.join(tmp, "many.sonde"), "cuda,nccl")
    running = [mapper(account, ":", os.path.join(theirs, f"libnccl.so.{i}")) for i in range(6)]
    r.sonde.wait_for("some functions are not probed")
    for owner, name in ((0, "root's"), (account.uid + 1, "a third user's")):
        library = os.path.join(tmp, f"libcudart.so.{owner}")
        assemble(library, LIBRARY.format("cudaMalloc"), f"-Wl,-soname,libcudart.so.{owner}")
        os.chown(library, owner, owner)
        pids.append((name, library, *call_probed(tmp, library, "cudaMalloc", r.sonde)))
    for p in running:
        p.communicate("")
    r.end()
    for name, library, pid, wrong in pids:
        ok(r.sites(library) and wrong == "0" and r.calls(pid) == CALLS, f"thousands of names: {name} library is probed", r.calls(pid), r.err)
    unprobed = [e for e in r.trace.events("meta_loss") if e["reason_name"] == "LOSS_UNPROBED"]
    ok(unprobed and "have no probes" in r.err and len(r.lines(theirs)) >= 1, "thousands of names: functions that are not probed are reported", unprobed, r.err)
    report = unwrapped(subprocess.run([SONDE, "report", r.sonde.path], stdout=subprocess.PIPE, text=True).stdout)
    ok("have no probes" in report, "thousands of names: the report mentions them too", report)


def many_layouts(account, tmp):
    """The other user maps as many files of NCCL as sonde stores layouts of. Layouts of other users' files must still be available."""
    theirs, library = folder(account, tmp, "layouts"), os.path.join(tmp, "libnccl.so.2")
    assemble(library, "".join(map(function, ["ncclAllReduce", "ncclCommInitRank"])), "-Wl,-soname,libnccl.so.2")
    paths = [os.path.join(theirs, f"libnccl.so.2.{i}") for i in range(70)]
    for path in paths:
        shutil.copy(library, path)
        os.chown(path, account.uid, account.gid)
    r = Recording(os.path.join(tmp, "layouts.sonde"), "cuda,nccl")
    running = [mapper(account, ":", *paths)]
    r.sonde.wait_for("16 for one user")
    call(tmp, library, "ncclAllReduce")
    for p in running:
        p.communicate("")
    r.end()
    ok("16 for one user" in r.err and not [line for line in r.lines(library) if "leaves this file out" in line],
       "many files of NCCL: one user's files don't use up the layouts of others", r.err)


def attack_debug(account, tmp, name, roots):
    """A debug file with the build id of root's library, but with a function in the middle of an instruction. It is the other user's, in
    a /usr/lib/debug of their own, or root's, beside the library."""
    theirs, library, debug = folder(account, tmp, name), os.path.join(tmp, f"lib{name}.so.1"), os.path.join(tmp, name + ".debug")
    build_id = os.urandom(20).hex()
    assemble(library, LIBRARY.format("work") + DEVICE, f"-Wl,-soname,lib{name}.so.1", f"-Wl,--build-id=0x{build_id}", "-s")
    assemble(debug, FORGED.format(address_of(library, "work") + 2), f"-Wl,--build-id=0x{build_id}")
    if roots:
        script = ":"
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", library], check=True)
    else:
        path = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        os.rename(debug, os.path.join(theirs, "forged"))
        script = f"mount -t tmpfs tmpfs /usr/lib/debug && mkdir -p {os.path.dirname(path)} && cp {theirs}/forged {path}"
    r = Recording(os.path.join(tmp, name + ".sonde"))
    p = mapper(account, script, library)
    # the trace has the file's name when it has been examined
    r.sonde.wait_trace(lambda trace: library in trace.strings.values())
    wrong = call(tmp, library, "work", 60000)[1]
    p.communicate("")
    r.end()
    ok(wrong == "0", f"{name} debug file: root's program computes correct results", f"{wrong} of 60000 wrong", r.err)
    said = "middle of an instruction" if roots else "is not used"
    ok(len([line for line in r.lines(library) if said in line]) == 1, f"{name} debug file: one message says so ({said})", r.err)
    ok(not r.sites(library), f"{name} debug file: nothing is probed", r.sites(library))


def main():
    if os.uname().machine != "x86_64":
        skip_all("the libraries are made of x86 instructions")
    with Account() as account, tempfile.TemporaryDirectory(prefix="sonde-attack-") as tmp:
        if account.why:
            skip_all(f"{account.why}")
        let_pass(tmp)
        os.chmod(tmp, 0o755)
        if subprocess.run(account.command(*SPACE, "mount", "-t", "tmpfs", "tmpfs", tmp), capture_output=True).returncode:
            skip_all("this kernel does not allow unprivileged users to create namespaces")
        subprocess.run(["cc", "-x", "c", "-", "-o", os.path.join(tmp, "caller"), "-ldl"], input=CALLER.encode(), check=True)
        hidden(account, tmp)
        impostors(account, tmp)
        many_names(account, tmp)
        many_layouts(account, tmp)
        if os.path.isdir("/usr/lib/debug"):
            attack_debug(account, tmp, "forged", False)
        else:
            skip("a forged debug file", "there is no /usr/lib/debug to mount on")
        attack_debug(account, tmp, "stale", True)
    done()


main()
