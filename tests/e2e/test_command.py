#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 waits
"""record -- CMD: the command is traced from its first instruction; its exit status, signals and end are handled."""
import contextlib
import os
import pty
import shutil
import signal
import subprocess

from puppet import ROOT, SONDE, TMP
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip
from waiting import wait_for

END_DURATION, END_COMMAND = 2, 4
LOSS_ATTACH_GAP = 8
EARLY = """
int cudaMalloc(void **address, unsigned long bytes);
__attribute__((constructor)) static void begin(void)
{
	void *p;

	for (unsigned long i = 1; i <= 5; i++)
		cudaMalloc(&p, i);
}
"""
MAIN = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int cudaMalloc(void **address, unsigned long bytes);
int main(int argc, char **argv)
{
	void *p, *late;

	for (unsigned long i = 6; i <= 10; i++)
		cudaMalloc(&p, i);
	late = argc > 2 ? dlopen(argv[2], RTLD_NOW) : 0;
	if (argc > 2 && !late)
		return 99;
	if (late) /* a file is examined through the process that maps it: it has to last until then */
		getchar();
	return atoi(argv[1]);
}
"""


def path(name):
    return os.path.join(TMP, name)


def run(*argv, options=(), name="t", env=None, cwd=None):
    done = subprocess.run([SONDE, "record", "-f", "-o", path(name), *options, *argv], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, env={**os.environ, **(env or {})}, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def end_reason(trace):
    return [e["reason"] for e in trace.events("meta_end")]


def build(where):
    """Builds a program whose library calls the runtime before main. No process has mapped these files before."""
    os.makedirs(os.path.join(where, "lib"))
    for name, source in (("early.c", EARLY), ("main.c", MAIN)):
        with open(os.path.join(where, name), "w") as f:
            f.write(source)

    def cc(*args):
        subprocess.run(["cc", "-O1", *args], cwd=where, check=True)
    for name in ("libcudart.so.99", "libcudart.so.98"):
        cc("-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", "lib/" + name, os.path.join(ROOT, "tests/fakes/libcudart.c"))
    cc("-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-Wl,-soname,libearly.so", "-o", "lib/libearly.so", "early.c",
       "lib/libcudart.so.99")
    cc("-Wl,-rpath,$ORIGIN/lib", "-Wl,--no-as-needed", "-o", "main", "main.c", "lib/libearly.so", "lib/libcudart.so.99")
    return os.path.join(where, "main")


def first_instructions():
    for mode, how in (("", "session links"), ("no-session", "multi links"), ("no-session,no-multi", "perf events")):
        main = build(path("build-" + mode.replace(",", "-")))
        status, _, err = run("--", main, "3", options=("-t", "cuda,proc"), env={"SONDE_TEST": mode})
        trace = Trace(path("t"))
        calls = sorted(e["bytes"] for e in trace.events("cuda_alloc"))
        ok(status == 3 and calls == list(range(1, 11)),
           f"{how}: every call is recorded once, from the constructors on, and the status is the command's", (status, calls, err))
        ok(not attach_gaps(trace), f"{how}: there is no attach gap", attach_gaps(trace))
        ok(end_reason(trace) == [END_COMMAND], f"{how}: the recording ended with the command", end_reason(trace))


def attach_gaps(trace):
    return [e for e in trace.events("meta_loss") if e["reason"] == LOSS_ATTACH_GAP]


def late_library():
    main = build(path("build-late"))
    sonde = Sonde(path("t"), "-t", "cuda", "--", main, "0", os.path.join(os.path.dirname(main), "lib/libcudart.so.98"), stdin=subprocess.PIPE)
    sonde.wait_trace(attach_gaps)
    sonde.process.stdin.close()
    status, blind = sonde.process.wait(), attach_gaps(Trace(path("t")))
    ok(status == 0 and len(blind) == 1, "a library that the command loads later has an attach gap, which is reported", status, sonde.messages)
    for e in blind:
        print(f"# attach gap of {(e['last'] - e['first']) / 1e6:.1f} ms")
    # the kernel passes the script's path as the second argument
    script = path("script")
    with open(script, "w") as f:
        f.write(f"#!{build(path('build-script'))} 7\n")
    os.chmod(script, 0o755)
    status, _, err = run("--", script, options=("-t", "cuda"))
    calls = sorted(e["bytes"] for e in Trace(path("t")).events("cuda_alloc"))
    ok(status == 99 and calls == list(range(1, 11)), "a script's interpreter is traced from its start",
       (status, calls, err))


def statuses():
    for what, argv, want in (("0", ["true"], 0), ("of a failure", ["sh", "-c", "exit 41"], 41),
                             ("of a signal", ["sh", "-c", "kill -9 $$"], 137),
                             ("3, which is no word of sonde's then", ["sh", "-c", "exit 3"], 3)):
        status, _, err = run("--", *argv, options=("-t", "proc"))
        ok(status == want, f"status {what}", (status, err))
    os.remove(path("t"))
    open(path("data"), "w").close()
    with open(path("no-interpreter"), "w") as f:
        f.write("#!/no/such/interpreter\n")
    os.chmod(path("no-interpreter"), 0o755)
    for what, argv, want in (("not found", ["no-such-program"], 127), ("no such path", [path("nothing")], 127),
                             ("not executable", [path("data")], 126), ("a directory", [TMP], 126),
                             ("no interpreter", [path("no-interpreter")], 127)):
        status, _, err = run("--", *argv)
        ok(status == want and argv[0] in err and not os.path.exists(path("t")),
           f"{what}: status {want}, a message that names it, no file", (status, err))
    for what, options in (("an unknown option", ["--frobnicate"]), ("an unknown family", ["-t", "cudda"]),
                          ("an output that can't be", ["-o", path("no/such/dir")]), ("no such cgroup", ["--cgroup", "/no/such"])):
        status, _, err = run("--", "touch", path("touched"), options=options)
        ok(status == 125 and not os.path.exists(path("touched")), f"{what}: status 125, and the command is not run", (status, err))


def surroundings():
    status, out, err = run("--", "sh", "-c", 'echo "$0:$1"; pwd; ls /proc/$$/fd; cat', "a", "b c", cwd=TMP)
    lines = out.split("\n")
    ok(lines[:2] == ["a:b c", os.path.realpath(TMP)] and lines[2:6] == ["0", "1", "2", ""],
       "the command gets its arguments, directory and open files unchanged", out + err)
    status, out, err = run("--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!", options=("-t", "proc"))
    os.kill(int(out), signal.SIGKILL)
    ok(status == 0 and end_reason(Trace(path("t"))) == [END_COMMAND], "sonde does not wait for processes that the command leaves behind", err)
    sonde = Sonde(path("t"), "-t", "proc", "-d", "0.3", "--", "sh", "-c", "read x; exit 4", stdin=subprocess.PIPE)
    sonde.wait_for("waiting for its end")
    sonde.process.stdin.close()
    status = sonde.process.wait()
    ok(status == 4 and end_reason(Trace(path("t"))) == [END_DURATION], "-d ends the tracing, and sonde then waits for the command",
       status, sonde.messages)


def pending(pid, sig):
    """True until the signal has been delivered"""
    with open(f"/proc/{pid}/status") as f:
        return any(int(line.split()[1], 16) >> (sig - 1) & 1 for line in f if line.startswith(("SigPnd", "ShdPnd")))


def nohup():
    """A user who runs sonde by nohup closes the terminal and expects it to continue."""
    sonde = Sonde(path("s"), "-t", "proc", prefix=("nohup",))
    sonde.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not pending(sonde.pid, signal.SIGHUP))
    child = subprocess.Popen(["true"])
    child.wait()
    recorded = sonde.wait_trace(lambda trace: any(e["child_pid"] == child.pid for e in trace.events("proc_fork")))
    ok(recorded and sonde.end() == 0, "under nohup SIGHUP ends neither sonde nor the command", sonde.messages)


def signals():
    # SIGHUP is ignored if these tests run under nohup, and a shell can't trap a signal that was ignored at its start
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
        ready = path(f"ready-{sig}")
        sonde = Sonde(path("s"), "-t", "proc", "--", "sh", "-c",
                      f"trap 'exit {40 + sig}' {sig.value}; touch {ready}; while :; do sleep 0.05; done")
        wait_for(lambda ready=ready: os.path.exists(ready))
        status = sonde.end(sig)
        ok(status == 40 + sig, f"{sig.name} is passed on", (status, sonde.messages))
        ok(end_reason(Trace(path("s"))) == [END_COMMAND], "and the trace is complete")


def on_terminal(script, ready, keys):
    """Runs sonde and the command in a terminal of their own, and presses each key when `ready` is shown."""
    pid, fd = pty.fork()
    if not pid:
        os.execv(SONDE, [SONDE, "record", "-f", "-o", path("tty"), "-t", "proc", "--", "sh", "-c", script])
    wait_for(lambda: os.path.exists(ready))
    out = b""
    for number, key in enumerate(keys, 1):
        os.write(fd, key)
        # the terminal shows the key when it has sent the signal; two that are pending at once would be one
        while out.count(b"^C") < number:
            out += os.read(fd, 65536)
        wait_for(lambda: not pending(pid, signal.SIGINT))
    # the command may keep the terminal open for longer; sonde's messages fit into its buffer
    status = os.waitpid(pid, 0)[1]
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError):
        out += os.read(fd, 65536)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), out


def terminal():
    ready = path("ready-tty")
    count = path("count")
    status, out = on_terminal(f"trap 'echo int >>{count}; exit 5' INT; touch {ready}; while :; do sleep 0.05; done", ready,
                              [b"\x03"])
    with open(count) as f:
        interrupts = f.read()
    ok(status == 5 and interrupts == "int\n", "Ctrl-C reaches the command once, and sonde waits for its end",
       (status, interrupts, out))
    ok(end_reason(Trace(path("tty"))) == [END_COMMAND], "and the trace is complete")
    ready = path("ready-tty-2")
    pidfile = path("pid")
    status, out = on_terminal(f"trap '' INT HUP; echo $$ >{pidfile}; touch {ready}; exec sleep 60", ready, [b"\x03", b"\x03"])
    with open(pidfile) as f:
        pid = int(f.read())
    ok(status == 130 and os.path.exists(f"/proc/{pid}"), "a second Ctrl-C ends sonde but not the command", (status, out))
    os.kill(pid, signal.SIGKILL)


if not shutil.which("cc"):
    skip("record -- CMD", "no C compiler")
    done()
first_instructions()
late_library()
statuses()
surroundings()
signals()
nohup()
terminal()
done()
