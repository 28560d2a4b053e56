#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 gate
"""Bad input gets a message with the failure, the object, the reason and the remedy, and the exit status in the manual."""
import os
import resource
import stat
import struct
import subprocess

from sonde_cli import Sonde
from tap import done, ok
from waiting import wait_for

SONDE, TMP, B = os.environ["SONDE"], os.environ["TMPDIR"], os.environ["B"]


def run(*argv, prefix=(), env=None, timeout=60):
    done = subprocess.run([*prefix, SONDE, *argv], capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def expect(name, status, words, *argv, **kw):
    code, out, err = run(*argv, **kw)
    missing = [w for w in words if w not in err + out]
    ok(code == status and not missing, name, f"exit {code}, expected {status}; missing {missing}\n{err}{out}")


def path(name):
    return os.path.join(TMP, name)


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def full_exports():
    """The message has the system's reason, and no partial file is left that looks complete."""
    for to in ("chrome", "perfetto", "text"):
        out = path("full." + to)
        expect(f"export --to {to} to a full disk", 1, ["No space left"], "export", path("whole"), "--to", to, "-f", "-o", "/dev/full")
        done = subprocess.run([SONDE, "export", path("whole"), "--to", to, "-o", out], capture_output=True, text=True,
                              preexec_fn=limit_files, restore_signals=False)
        ok(done.returncode == 1 and "File too large" in done.stderr and not os.path.exists(out),
           f"export --to {to} that fails leaves no partial file", f"{done.returncode} {done.stderr} {os.path.exists(out)}")


def usage():
    expect("no command", 2, ["record", "report"])
    expect("unknown command", 2, ["frobnicate"], "frobnicate")
    expect("a command with letters in the wrong order", 2, ["did you mean 'record'?"], "recrod", "-d", "1")
    expect("unknown option", 2, ["--frobnicate", "--help"], "record", "--frobnicate")
    expect("list sorted by a column that is not there", 2, ["no table of list", "colour", "families: name"], "list", "--sort", "colour")
    expect("unknown family", 2, ["cudda", "cuda", "gil"], "record", "-t", "cudda", "-d", "1", "-o", path("a"))
    expect("unknown family option", 2, ["--cuda=nothing"], "record", "--cuda=nothing", "-d", "1", "-o", path("a"))
    expect("-p that is not a number", 2, ["-p", "abc"], "record", "-p", "abc")
    expect("-p that ends in a comma", 2, ["-p", "comma"], "record", "-p", "1,2,")
    # each form that a shell makes of `-p $(pgrep -f x)`, with two pids that don't exist
    for words in (["-p", "99999998", "99999999"], ["-p", "99999998 99999999"], ["-p", "99999998,99999999"],
                  ["-p", "99999998\n99999999\n"], ["-p99999998", "99999999"], ["-p", "99999998", "-p", "99999999"]):
        expect(f"record {words}: both are taken as pids", 1, ["-p 99999998: no such", "-p 99999999: no such"], "record", *words,
               "-d", "0.2", "-o", path("a"))
    for words in (["99999998", "99999999"], ["99999998 99999999"], ["99999998,99999999"], ["99999998\n99999999\n"],
                  ["-p", "99999998,99999999"]):
        expect(f"dump {words}: both are taken as pids", 1, ["no process 99999998", "no process 99999999"], "dump", *words)
        expect(f"top {words}: both are taken as pids", 1, ["99999998: no such", "99999999: no such"], "top", *words, "--count", "1")
        expect(f"inject {words}: both are taken as pids", 1, ["99999998", "99999999"], "inject", *words)
    expect("-p with an argument that is no pid", 2, ["'true'", "--"], "record", "-p", "99999998", "true")
    expect("an option without its number", 2, ["--osrt-threshold", "number of ns"], "record", "--osrt-threshold")
    expect("an option whose number is no number", 2, ["--osrt-threshold", "number of ns", "'x'"], "record", "--osrt-threshold", "x", "-t", "osrt",
           "-d", "0.2", "-o", path("a"))
    for seconds in ("0x10", "inf", "nan", "0", "1s"):
        expect(f"-d {seconds}", 2, ["decimal number", f"'{seconds}'"], "record", "-d", seconds, "-o", path("a"))
    expect("-o -", 2, ["/dev/stdout", "./-"], "record", "-o", "-", "-d", "0.2")
    expect("-o with an empty name", 2, ["-o"], "record", "-o", "", "-d", "0.2")
    expect("two reports", 2, ["one report", "'gil'", "'cuda-api'"], "report", path("whole"), "gil", "cuda-api")
    expect("--cgroup / selects all of cgroup v2", 0, [], "record", "-t", "proc", "--cgroup", "/", "-d", "0.2", "-o", path("all"))
    expect("an open bracket in --comm", 0, ["']'"], "record", "-t", "proc", "--comm", "[", "-d", "0.2", "-o", path("bracket"))
    with open("/dev/full", "w") as full:
        done = subprocess.run([SONDE, "record", "-t", "proc", "--print", "-d", "0.3", "-o", path("printed"), "--", "true"],
                              stdout=full, stderr=subprocess.PIPE, text=True)
        done2 = subprocess.run([SONDE, "record", "-t", "proc", "--print", "-d", "0.5", "-o", path("printed2")],
                               stdout=full, stderr=subprocess.PIPE, text=True)
    ok("cannot print" in done.stderr + done2.stderr and done2.returncode == 1, "--print to a full disk fails",
       done.stderr + done2.stderr)
    expect("-d 0", 2, ["-d"], "record", "-d", "0")
    expect("-p with an empty list", 2, ["-p"], "record", "-p", "")
    expect("an empty option of a family", 2, ["--torch=shapes, has an empty option"], "record", "--torch=shapes,", "-d", "0.2")
    expect("--comm with an empty list", 2, ["--comm"], "record", "--comm", ",", "-d", "0.2")
    expect("--comm that is longer than any process's name", 2, ["--comm", "x" * 16, "15 characters"], "record", "--comm", "x" * 16, "-d", "0.2",
           "-o", path("a"))
    expect("more names in --comm than the limit", 2, ["--comm", "16"], "record", "--comm", ",".join("a" * 17), "-d", "0.2",
           "-o", path("a"))
    expect("--cgroup that does not exist", 1, ["/no/such", "no such cgroup"], "record", "--cgroup", "/no/such", "-d", "0.2", "-o",
           path("a"))
    expect("--cgroup that is not a cgroup", 1, ["/usr", "not a cgroup"], "record", "--cgroup", "/usr", "-d", "0.2", "-o", path("a"))
    expect("--delay that is not a number", 2, ["--delay", "soon"], "record", "--delay", "soon")
    expect("an argument that is no option", 2, ["'true'", "--"], "record", "true")
    expect("-- without a command", 125, ["command"], "record", "--")
    expect("an unknown short option", 2, ["-z"], "record", "-zf", "-d", "0.2")
    expect("an option without its value", 2, ["-o"], "record", "-o")
    expect("unknown report", 2, ["nonsense"], "report", path("whole"), "nonsense")
    expect("unknown format", 2, ["nonsense"], "export", path("whole"), "--to", "nonsense")
    full_exports()
    for command in ("record", "report", "export", "info", "list", "doctor"):
        code, out, _ = run(command, "--help")
        ok(code == 0 and "xample" in out and "sonde " + command in out, f"{command} --help has examples", out)


def privileges():
    unprivileged = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    os.chmod(TMP, 0o777)
    binary = path("sonde-for-others")
    subprocess.run(["cp", SONDE, binary], check=True)
    done = subprocess.run([*unprivileged, binary, "record", "-d", "1", "-o", path("unprivileged")], capture_output=True, text=True)
    ok(done.returncode == 1 and "root" in done.stderr, "record without root: a message", done.stderr)
    ok(not os.path.exists(path("unprivileged")), "record without root leaves no file")
    done = subprocess.run([*unprivileged, binary, "list", "families", "probes", "events"], capture_output=True, text=True)
    ok(done.returncode == 0 and "cudaMalloc" in done.stdout, "list works without privilege", done.stderr)
    done = subprocess.run([*unprivileged, binary, "doctor"], capture_output=True, text=True)
    ok(done.returncode == 1 and "root" in done.stdout, "doctor without privilege exits 1", done.stdout)
    # root without the capability, and root with it: the message does not advise to become root
    sleeper = subprocess.Popen(["setpriv", "--reuid=1", "--clear-groups", "sleep", "1000"])
    wait_for(lambda: open(f"/proc/{sleeper.pid}/comm").read() == "sleep\n")
    expect("dump by root without CAP_SYS_PTRACE: the message names the capability", 1, ["cannot read its memory", "CAP_SYS_PTRACE"], "dump",
           str(sleeper.pid), prefix=("setpriv", "--bounding-set=-sys_ptrace"))
    expect("inject by root without CAP_SYS_PTRACE: the message names the capability", 1, ["not loaded", "CAP_SYS_PTRACE"], "inject", str(sleeper.pid),
           prefix=("setpriv", "--bounding-set=-sys_ptrace"))
    code, _, err = run("dump", "1")
    ok(os.geteuid() or code == 0 or "run sonde as root" not in err, "dump 1 as root: the message does not ask for root", err)
    sleeper.kill()
    sleeper.wait()
    os.mkdir(path("empty"))
    hide = ("unshare", "-m", "sh", "-c", f'mount --bind {path("empty")} /sys/kernel/btf && exec "$@"', "sh")
    expect("without BTF: a message", 1, ["BTF", "CONFIG_DEBUG_INFO_BTF"], "record", "-d", "1", "-o", path("nobtf"), prefix=hide)
    ok(not os.path.exists(path("nobtf")), "without BTF no file is left")
    hide = ("unshare", "-m", "sh", "-c", 'umount -l /sys/kernel/tracing /sys/kernel/debug /sys/fs/bpf 2>/dev/null; exec "$@"',
            "sh")
    expect("tracefs and bpffs are not needed", 0, [], "record", "-d", "0.2", "-o", path("nofs"), prefix=hide)


def targets():
    gone = subprocess.Popen(["true"])
    gone.wait()
    expect("vanished pid", 1, [str(gone.pid), "no such process"], "record", "-p", str(gone.pid), "-d", "1", "-o", path("b"))
    zombie = subprocess.Popen(["true"])
    wait_for(lambda: b"\nState:\tZ" in open(f"/proc/{zombie.pid}/status", "rb").read(), 10)
    for argv in (["record", "-p", str(zombie.pid), "-d", "1", "-o", path("b")], ["why", str(zombie.pid)], ["dump", str(zombie.pid)]):
        expect(f"{argv[0]} of a zombie", 1, [f"process {zombie.pid} has ended: it is a zombie", f"parent {os.getpid()}"], *argv)
    zombie.wait()
    ok(not os.path.exists(path("b")), "and leaves no file")
    expect("one of two pids vanished: exit 3", 3, [str(gone.pid)], "record", "-p", f"{gone.pid},{os.getpid()}", "-d", "0.2",
           "-o", path("c"))
    sleeper = subprocess.Popen(["sleep", "1000"])
    sonde = Sonde(path("ended"), "-t", "cuda", "-p", str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    status = sonde.end(None)
    ok(status == 0 and "nothing was recorded: every process of -p ended" in sonde.messages,
       "ends when every -p target has ended, with a message if none had a selected event", status, sonde.messages)
    expect("without anything to record: a message, a valid trace, exit status 0", 0,
           ["nothing was recorded: no selected process had an event of the chosen families", "about the recording itself"], "record", "-t", "cuda", "-p",
           str(os.getpid()), "-d", "0.2", "-o", path("e"))
    expect("a time outside the trace: the message has the trace's time", 0, ["None of this time was traced: the trace has 0."], "report",
           path("e"), "--time", "100..200")
    expect("the report of the empty trace says that there is nothing", 0, ["no losses"], "report", path("e"))
    expect("so do its other reports", 0, ["No CUDA calls were recorded"], "report", path("e"), "cuda-api")


def closed_files():
    for name, closing in (("stderr", "2>&-"), ("stdout", ">&-"), ("stdin", "<&-")):
        subprocess.run(["sh", "-c", f'"$0" record --print -d 0.3 -o "$1" {closing}', SONDE, path(f"closed-{name}")],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        expect(f"a trace recorded with {name} closed is complete", 0, [], "info", "--verify", path(f"closed-{name}"))


def namespaces():
    expect("in another pid namespace: a message", 1, ["pid namespace", "--pid=host"], "record", "-d", "0.2", "-o",
           path("pidns"), prefix=("unshare", "-p", "-f", "--mount-proc"))


def outputs():
    expect("an existing output needs -f", 1, [path("whole"), "-f"], "record", "-d", "0.2", "-o", path("whole"))
    before = os.path.getsize(path("whole"))
    expect("-f overwrites", 0, [], "record", "-f", "-d", "0.2", "-o", path("whole"))
    ok(before > 0, "without -f the existing file is unchanged")
    ok(stat.S_IMODE(os.stat(path("whole")).st_mode) == 0o600, "a trace has mode 0600")
    os.mkdir(path("directory"))
    os.mkfifo(path("fifo"))
    for name, status, words in (("directory", 1, "Is a directory"), ("fifo", 2, "is a FIFO")):
        code, _, err = run("record", "-d", "0.2", "-o", path(name))
        ok(code == status and words in err and " -f" not in err, f"-o {name} is refused, without advice of -f, which is refused, too", err)
        expect(f"-f -o {name}", status, [words], "record", "-d", "0.2", "-f", "-o", path(name))
    expect("a directory that does not exist", 1, [path("no/such"), "No such file"], "record", "-d", "0.2", "-o",
           path("no/such"))
    run("record", "-d", "0.2", "-o", path("sudo"), env={"SUDO_UID": "1234", "SUDO_GID": "1235"})
    st = os.stat(path("sudo"))
    ok((st.st_uid, st.st_gid) == (1234, 1235), "a trace is owned by the user behind sudo", st)
    first = Sonde(path("taken"), "-t", "proc")
    expect("-f does not overwrite a trace that another recording writes", 1, [path("taken"), "is recording to"], "record", "-f", "-d", "0.2", "-o",
           path("taken"))
    first.end()
    expect("that trace stays complete", 0, [], "info", "--verify", path("taken"))
    expect("it can be overwritten when that recording has ended", 0, [], "record", "-f", "-d", "0.2", "-o", path("taken"))
    os.symlink("/etc/hostname", path("link"))
    expect("-f replaces a symbolic link, never follows it", 0, [], "record", "-f", "-d", "0.2", "-o", path("link"))
    ok(not os.path.islink(path("link")) and os.path.getsize("/etc/hostname") < 300, "the target of the link is unchanged")


def full_disk():
    os.mkdir(path("small"))
    inside = f"""mount -t tmpfs -o size=64k none {path('small')} || exit 99
{SONDE} record -t proc,sched --sched=all -o {path('small')}/t -d 1000; status=$?
cp {path('small')}/t {path('cut')}; exit $status"""
    busy = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
    done = subprocess.run(["unshare", "-m", "sh", "-c", inside], capture_output=True, text=True)
    busy.kill()
    busy.wait()
    ok(done.returncode == 1 and "No space left" in done.stderr, "full disk: a message, and the recording ends", done.stderr)
    expect("the trace up to then is readable", 0, ["cut off"], "report", path("cut"))


def few_descriptors():
    for hard, status, words in ((4096, 0, []), (40, 1, ["at most 40 files", "ulimit -Hn"])):
        # without CAP_SYS_RESOURCE root can't raise the hard limit
        expect(f"at most 40 open files, a hard limit of {hard}", status, words, "record", "-t", "proc", "-d", "0.2", "-f", "-o", path("few"),
               prefix=["setpriv", "--bounding-set", "-sys_resource", "prlimit", f"--nofile=40:{hard}"])


def files():
    expect("a pipe is not read as a trace", 1, ["not a regular file"], "report", "/dev/stdin", prefix=["sh", "-c", "true | \"$@\"", "sh"])
    expect("no such file", 1, [path("nothere"), "no such file"], "report", path("nothere"))
    expect("a foreign file", 1, ["/etc/passwd", "not a sonde trace"], "report", "/etc/passwd")
    open(path("zero"), "w").close()
    expect("an empty file", 1, [path("zero"), "not a sonde trace"], "report", path("zero"))
    whole = open(path("whole"), "rb").read()
    # the version follows the magic in the first frame: docs/format.md
    at = whole.index(b"SONDE\0") + 6
    newer = bytearray(whole)
    struct.pack_into("<H", newer, at, struct.unpack_from("<H", whole, at)[0] + 1)
    open(path("newer"), "wb").write(newer)
    expect("a newer major version", 1, [path("newer"), "newer"], "report", path("newer"))
    bad = []
    for cut in range(0, len(whole), max(1, len(whole) // 40)):
        open(path("torn"), "wb").write(whole[:cut])
        code, out, err = run("report", path("torn"))
        if code not in (0, 1) or code == 0 and "cut off" not in out or code == 1 and not err:
            bad.append((cut, code, err))
    ok(not bad, "a truncated file opens and is reported as cut off, or gives a clear error", bad[:3])
    damaged = bytearray(whole)
    damaged[len(damaged) // 2] ^= 0x55
    open(path("damaged"), "wb").write(damaged)
    expect("damage is found by info --verify", 1, [path("damaged")], "info", "--verify", path("damaged"))
    damaged = bytearray(whole)
    damaged[-40] ^= 0x55  # in the final index, which ends the file
    open(path("damaged"), "wb").write(damaged)
    code, out, err = run("report", path("damaged"))
    ok(code == 0 and "damaged" in out + err and "cut off" not in out + err, "a complete trace with a damaged index is reported as damaged, not as cut off",
       out + err)
    expect("info --verify passes an intact file", 0, [], "info", "--verify", path("whole"))


def stopping():
    sonde = Sonde(path("int"))
    ok(sonde.end() == 0, "Ctrl-C ends a recording with status 0", sonde.messages)
    expect("a trace ended by Ctrl-C is complete", 0, [], "info", "--verify", path("int"))


def main():
    code, _, err = run("record", "-d", "0.3", "-t", "+sched", "-o", path("whole"))
    ok(code == 0, "a short recording", err)
    usage()
    privileges()
    targets()
    closed_files()
    namespaces()
    outputs()
    full_disk()
    few_descriptors()
    files()
    stopping()


main()
done()
