#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=180 waits
"""`sonde inject` refuses some processes with a reason and leaves them unchanged; it handles failures during an injection."""
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import proc_files
from inject_lib import BUILD, SHIM, SONDE, TARGET, Target, has_shim, inject, shim_thread
from shim_lib import DOUBLES, training
from tap import done, ok, skip, skip_all
from waiting import state, wait_for, wait_state

ODD = os.path.join(BUILD, "tests", "probes", "gpu", "inject_odd")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PTRACE_SEIZE = 0x4206
FUTEX = "202"  # of x86-64's system calls
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
# maps a file with this name as code, so that the process looks as if it had that library
POSER = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (mmap(0, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[i], O_RDONLY), 0) == MAP_FAILED)
			return 1;
	printf("ready %d\\n", getpid());
	fflush(stdout);
	getchar();
	return 0;
}
"""
LEADERLESS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *reads(void *arg)
{
	getchar();
	exit(0);
}
int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, reads, NULL);
	printf("ready\\n");
	fflush(stdout);
	pthread_exit(NULL);
}
"""
PAUSE32 = """
.globl _start
_start:
	mov $4, %eax
	mov $1, %ebx
	mov $text, %ecx
	mov $6, %edx
	int $0x80
	mov $29, %eax
	int $0x80
text:	.ascii "ready\\n"
"""
SLOW = "#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { sleep(SECONDS); }\n"
tmp = tempfile.mkdtemp(prefix="sonde-refused-")
os.chmod(tmp, 0o755)


def built(name, source, *args, compiler="cc"):
    path = os.path.join(tmp, name)
    suffix = ".s" if compiler == "as" else ".c"
    with open(path + suffix, "w") as f:
        f.write(source)
    command = ["cc", path + suffix, "-o", path, *args]
    return path if subprocess.run(command, capture_output=True).returncode == 0 else None


def refused(name, pid, reason, target=None, status=1, **how):
    """The shim is not loaded, for this reason, and the process continues unharmed."""
    r = inject(pid, **how)
    loaded = os.path.exists(f"/proc/{pid}/maps") and has_shim(pid)
    ok(r.returncode == status and reason in r.stderr and "nothing changed" in r.stderr and not loaded, f"{name}: refused",
       r.returncode, r.stdout, r.stderr)
    if target:
        ended = target.end()
        ok(ended == 0, f"{name}: it goes on", ended, target.errors)


def no_processes():
    refused("no such process", 0x7ffffff0, "there is no such process")
    refused("a thread of the kernel", 2, "thread of the kernel")
    child = subprocess.Popen(["true"])
    wait_state(child.pid, "Z")
    refused("a zombie", child.pid, "a zombie")
    child.wait()
    path = built("leaderless", LEADERLESS)
    t = Target([path])
    wait_state(t.pid, "Z")
    refused("its main thread has ended", t.pid, "its main thread has ended", t)
    t = Target([TARGET, "-t", "1"])
    tid = next(int(i) for i in os.listdir(f"/proc/{t.pid}/task") if int(i) != t.pid)
    refused("a thread's number", tid, f"a thread of process {t.pid}", t)


def states():
    t = Target([TARGET])
    os.kill(t.pid, signal.SIGSTOP)
    wait_state(t.pid, "T")
    refused("stopped", t.pid, "it is stopped")
    os.kill(t.pid, signal.SIGCONT)
    libc.ptrace(PTRACE_SEIZE, t.pid, None, None)
    refused("another tracer", t.pid, f"being traced by process {os.getpid()}")
    t.kill()
    t = Target([TARGET])
    # other users may have no access to the build directory
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(SHIM, folder)
        r = inject(t.pid, prefix=NOBODY, sonde=shutil.copy(SONDE, folder))
    ok(r.returncode == 1 and "belongs to root and is left out" in r.stderr and "sudo sonde inject" in r.stderr and
       not has_shim(t.pid), "another user's process: refused", r.stderr)
    t.kill()
    child = subprocess.Popen([ODD, "vfork"], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    with open(f"/proc/{child.pid}/task/{child.pid}/children") as f:
        grandchild = int(f.read().split()[0])
    refused("a child of vfork", grandchild, "child of vfork")
    os.kill(grandchild, 9)
    child.wait()
    t = Target([ODD, "ignores"])
    refused("SIGSEGV is ignored", t.pid, "ignores SIGSEGV", t)


def programs():
    path = built("static", POSER, "-static")
    if path:
        t = Target([path])
        refused("a static program", t.pid, "statically linked", t)
        for name, reason in (("ld-musl-x86_64.so.1", "musl"), ("libc.so.6", "too old: the shim needs GLIBC_")):
            script = os.path.join(tmp, "versions")
            with open(script, "w") as f:
                f.write("GLIBC_2.2.5 { global: *; };\n")
            lib = built(name, "int dlopen(void) { return 0; }\n", "-shared", "-nostdlib", "-fPIC",
                        f"-Wl,--version-script={script}")
            t = Target([path, lib])
            refused(f"its C library is {name}", t.pid, reason, t)
    else:
        skip("static programs", "there is no static libc")
    obj, path = os.path.join(tmp, "pause32.o"), os.path.join(tmp, "pause32")
    with open(obj[:-1] + "s", "w") as f:
        f.write(PAUSE32)
    made = not subprocess.run(["as", "--32", obj[:-1] + "s", "-o", obj], capture_output=True).returncode and \
        not subprocess.run(["ld", "-m", "elf_i386", "-N", obj, "-o", path], capture_output=True).returncode
    try:
        t = Target([path]) if made else None
    except OSError:
        t = None
    if t and t.ready:
        refused("a 32-bit program", t.pid, "32-bit")
        t.kill()
    else:
        skip("a 32-bit program", "32-bit programs can't be built or run")


def filters():
    t = Target([ODD, "docker"])
    r = inject(t.pid)
    ok(r.returncode == 0 and has_shim(t.pid), "a seccomp filter like a container's: loaded", r.stderr)
    ok(wait_for(lambda: shim_thread(t.pid)), "a seccomp filter like a container's: the shim's thread runs")
    ok(t.end() == 0 and "errno 99" in t.output, "a seccomp filter like a container's: the process continues", t.output, t.errors)
    t = Target([ODD, "kills"])
    refused("a filter that kills", t.pid, "would kill it for mprotect", t)
    t = Target([ODD, "kills"])
    refused("--force does not kill, either", t.pid, "would kill it for mprotect", t, force=True)
    t = Target([ODD, "denies"])
    refused("a filter that denies", t.pid, "does not let it call mmap", t)


def places():
    t = Target([ODD, "forks"])
    wait_state(t.pid, "S")
    refused("all its threads hold locks", t.pid, "inside libc.so.6")
    t.kill()


def wait_injected(pid):
    """Waits until a thread of the process loads the shim for sonde, and waits for the loader's lock."""
    def waits_in_loader(tid):
        call = (proc_files.read(f"/proc/{pid}/task/{tid}/syscall") or "").split(" ")[0]
        return (proc_files.status(pid, tid) or {}).get("TracerPid", "0") != "0" and state(pid, tid) == "S" and call == FUTEX
    ok(wait_for(lambda: any(waits_in_loader(tid) for tid in proc_files.threads(pid)), 60), "a thread that sonde has taken waits for the loader's lock")


def wait_released(pid):
    wait_for(lambda: has_shim(pid) and all((proc_files.status(pid, tid) or {}).get("TracerPid", "0") == "0" for tid in proc_files.threads(pid)), 60)


def held_up():
    """Another thread holds the loader's lock for a while or for too long; signals or SIGKILL arrive meanwhile."""
    short = built("slow1.so", SLOW, "-shared", "-fPIC", "-DSECONDS=3")
    t = Target([ODD, "loads", short])
    p = subprocess.Popen([SONDE, "inject", str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_injected(t.pid)
    for _ in range(3):
        libc.tgkill(t.pid, t.pid, signal.SIGUSR1)
        time.sleep(0.05)
    os.kill(t.pid, signal.SIGSTOP)
    wait_state(t.pid, "T", 1)
    os.kill(t.pid, signal.SIGCONT)
    out, err = p.communicate(timeout=60)
    ok(p.returncode == 0 and has_shim(t.pid), "the loader is busy: sonde waits", out, err)
    status = t.end()
    # a pending signal is queued once
    ok(status == 0 and "handled 1 " in t.output, "signals that arrived meanwhile are delivered afterwards", status, t.output)
    long = built("slow2.so", SLOW, "-shared", "-fPIC", "-DSECONDS=12")
    t = Target([ODD, "loads", long])
    r = inject(t.pid)
    ok(r.returncode == 1 and "took more than 5 s" in r.stderr, "the loader is busy for too long: a message", r.stderr)
    t.go()
    ok(t.child.stdout.readline() == "handled 0 errno 99\n", "the loader is busy for too long: the process continues")
    t.kill()
    t = Target([ODD, "loads", long])
    p = subprocess.Popen([SONDE, "inject", str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_injected(t.pid)
    os.kill(t.pid, 9)
    out, err = p.communicate(timeout=60)
    ok(p.returncode == 1 and "it ended" in err, "the target is killed meanwhile: a message", out, err)
    t.kill()
    t = Target([ODD, "loads", short])
    p = subprocess.Popen([SONDE, "inject", str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_injected(t.pid)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    wait_released(t.pid)
    status = t.end()
    ok(status == 0 and "errno 99" in t.output, "sonde gets SIGTERM meanwhile: it completes the injection", status, t.output)
    t = Target([ODD, "loads", short])
    p = subprocess.Popen([SONDE, "inject", str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_injected(t.pid)
    os.killpg(p.pid, signal.SIGKILL)
    p.communicate(timeout=60)
    wait_released(t.pid)
    status = t.end()
    ok(status == 0 and "errno 99" in t.output, "sonde's process group is killed meanwhile: the injection is completed", status, t.output)


def together():
    t = Target([TARGET, "-t", "2"])
    all_of_them = [subprocess.Popen([SONDE, "inject", str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for _ in range(6)]
    said = [(*p.communicate(timeout=60), p.returncode) for p in all_of_them]
    ok(sum("loaded" in out for out, _, _ in said) == 1 and not any(status for _, _, status in said),
       "six at once: one loads the shim, the others find it loaded", said)
    t.kill()


def no_thread():
    t = Target([TARGET])
    with open(f"/proc/{t.pid}/statm") as f:
        mapped = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    # there is room for the calls' stack and the library, but not for the arena and stack of a thread
    resource.prlimit(t.pid, resource.RLIMIT_AS, (mapped + 1500000,) * 2)
    r = inject(t.pid)
    ok(r.returncode == 1 and "could not start its thread" in r.stderr, "no memory for the shim's thread: a message", r.stdout, r.stderr)
    status = t.end()
    ok(status == 0, "no memory for the shim's thread: the process continues", status, t.errors)


def other_numbers():
    """In a pid namespace with the /proc of another namespace, a pid in /proc is another process than for ptrace."""
    r = subprocess.run(["unshare", "--pid", "--fork", "sh", "-c", f"sleep 9 & {SONDE} inject $!; s=$?; kill $!; exit $s"],
                       capture_output=True, text=True, timeout=60)
    if "unshare" in r.stderr:
        skip("a /proc of another pid namespace", r.stderr.strip())
    else:
        ok(r.returncode == 1 and "/proc is of another pid namespace" in r.stderr, "a /proc of another pid namespace: refused",
           r.returncode, r.stderr)


def command_line():
    def run(*args):
        return subprocess.run([SONDE, "inject", *args], capture_output=True, text=True)
    ok(run().returncode == 2 and run("x").returncode == 2 and run("--what", "1").returncode == 2 and run("0").returncode == 2,
       "wrong usage")
    t = Target([TARGET])
    r = inject(t.pid, 0x7ffffff0)
    ok(r.returncode == 3 and has_shim(t.pid), "one of two processes refused: status 3", r.stdout, r.stderr)
    with open("/dev/full", "w") as full:
        r = subprocess.run([SONDE, "inject", str(t.pid)], stdout=full, stderr=subprocess.PIPE, text=True)
    ok(r.returncode == 1 and "cannot print: No space left" in r.stderr, "a full disk: a message", r.returncode, r.stderr)
    t.kill()


def doctor():
    def device_times(pid):
        out = subprocess.run([SONDE, "doctor", "--format", "json"], capture_output=True, text=True, timeout=60).stdout
        return next((r for r in json.loads(out)["tables"]["device_times"] if r["pid"] == pid), {})
    if not os.path.exists(os.path.join(DOUBLES, "13", "fake_training")):
        skip("doctor", "there are no doubles of CUDA")
        return
    env = dict(os.environ, CUDA_INJECTION64_PATH="")
    t = Target([training("13"), "-w"], env=env)
    row = device_times(t.pid)
    ok(row.get("device_times") == "once loaded" and f"sonde inject {t.pid}" in row["how"], "doctor: how the shim can be loaded", row)
    inject(t.pid)
    row = device_times(t.pid)
    ok(row.get("device_times") == "yes" and f"-p {t.pid}" in row["how"], "doctor: a process has the shim", row)
    t.end()
    t = Target([training("13"), "-w"], env=dict(env, CUDA_INJECTION64_PATH="/opt/other.so"))
    os.kill(t.pid, signal.SIGSTOP)
    wait_state(t.pid, "T")
    row = device_times(t.pid)
    ok(row.get("device_times") == "no" and "stopped" in row["how"] and f"CUDA_INJECTION64_PATH={SHIM}" in row["how"] and
       "/opt/other.so" in row["how"], "doctor: why the shim can't be loaded, and another profiler", row)
    os.kill(t.pid, signal.SIGCONT)
    t.end()


def main():
    if os.geteuid():
        skip_all("needs root")
    for test in (no_processes, states, programs, filters, places, held_up, together, no_thread, other_numbers, command_line, doctor):
        test()
    done()


main()
