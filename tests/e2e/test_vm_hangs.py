#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests/vm does if something hangs: a step is ended with a report of its threads, a recording that several tests share
continues without a killed test, and the kernel of a machine that does not end is asked where it is.
test: parallel waits"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.environ["ROOT"]
VM = os.path.join(ROOT, "tests", "vm")
sys.path[:0] = [VM, os.path.join(ROOT, "tests", "lib")]
import machine
from tap import done, ok, skip_all

def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)


def alone(command, **env):
    """The output of a command that runs as the first process of a pid namespace"""
    child = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command], env=dict(os.environ, **env),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        return child.communicate(timeout=80)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        return "it does not end"


# Runs as the first process of a pid namespace, as tests/vm/guest.sh does in its machine
STEP = f"""
import subprocess, sys
sys.path.insert(0, {VM!r})
import bounded
bound = bounded.Bound(2)
bound.command, bound.output = "sleep 1234", lambda: "printed before\\n"
subprocess.call(["sleep", "1234"])
bound.timer.join()
"""


def step():
    first = "/usr/bin/python3 -c \"$STEP\"; cat /proc/[0-9]*/comm | grep -c sleep; : tests/vm/guest.sh"
    text = alone(["bash", "-c", first], STEP=STEP)
    lines = text.splitlines()
    ok(any(line.startswith("not ok - it ends within 2 s") for line in lines), "a step that hangs has failed", text)
    ok(any(" sleep S, " in line and "system call" in line for line in lines) and "# printed before" in lines,
       "its report has each thread and the output so far", text)
    ok(lines[-1:] == ["0"], "the processes that the step left are ended", text)


RECORDER = """#!/bin/bash
case $1 in list) echo "core 0x0"; exit ;; esac
trap 'exit 0' INT
echo "tracing into x" >&2
while :; do sleep 0.1; done
"""
# Two tests whose sonde is killed while it waits for the shared recording, and while it takes part in it
TESTS = {
    "waits": """#!/bin/bash
"$SONDE" record -d 1 -o /dev/null &
until [[ -e $JOINED/ready.$! ]]; do sleep 0.1; done
kill -9 $!
wait $!
touch "$JOINED/killed"
""",
    "takes": """#!/bin/bash
"$SONDE" record -o /dev/null &
until [[ -e $JOINED/go.$! ]]; do sleep 0.1; done
kill -9 $!
wait $!
""",
    "plain": """#!/bin/bash
until [[ -e $JOINED/killed ]]; do sleep 0.1; done
"$SONDE" record -d 1 -o /dev/null
echo "ok 1 - recorded"
""",
}
TOGETHER = f"""
import sys
sys.path.insert(0, {VM!r})
import together
t = together.Together([["waits"], ["takes"], ["plain"]], {{}}, 1)
t.run()
print(t.tests[2].output())
"""


def together(tmp):
    for name, text in TESTS.items():
        put(os.path.join(tmp, "tests", name), text)
    put(os.path.join(tmp, "recorder"), RECORDER)
    os.makedirs(os.path.join(tmp, "tests", "vm"))
    shutil.copy(os.path.join(VM, "joined.py"), os.path.join(tmp, "tests", "vm"))
    text = alone(["/usr/bin/python3", "-c", TOGETHER], ROOT=tmp, SONDE=os.path.join(tmp, "recorder"), TMPDIR=tmp)
    ok("ok 1 - recorded" in text, "a shared recording continues without a killed process", text)


# A simulated machine that boots and answers to the requests in ANSWERS
QEMU = """#!/bin/bash
echo "tests/vm/init.sh runs"
echo "step detach"
task() { echo "[    1.1] task:$1 state:S stack:0 pid:$2 ppid:0      flags:0x0"; }
while IFS= read -r -n 1 key; do
	keys+=$key
	case $ANSWERS$keys in
	sysrq*$'\\001b't)
		echo "[    1.0] sysrq: Show State"
		task init 1
		printf '%s\\n' "[    1.1] Call Trace:" "[    1.1]  do_wait+0x1/0x2"
		task kthreadd 2
		;;
	nmi*nmi) echo "[    1.3] NMI: panic" ;;
	esac
done
"""


def hung_machine(tmp, answers):
    put(os.path.join(tmp, "bin", "qemu-system-x86_64"), QEMU)
    logs = tempfile.mkdtemp(dir=tmp)
    saved = dict(os.environ)
    os.environ.update(PATH=f"{tmp}/bin:{saved['PATH']}", ANSWERS=answers)
    machine.ANSWER, machine.SILENCE = 2, 1
    try:
        m = machine.Machine(tmp, logs, "ramfs", [], "arguments")
        m.run(1)
    finally:
        os.environ.clear()
        os.environ.update(saved)
    return m


def machines(tmp):
    m = hung_machine(tmp, "sysrq")
    ok(m.hung and not m.frozen and "init S pid 1 of 0: do_wait" in m.why, "a kernel that answers is asked for what its processes wait in", "\n".join(m.why))
    ok("step detach" in m.why and not any("kthreadd" in line for line in m.why), "its console is printed, its kernel threads are not", "\n".join(m.why))
    m = hung_machine(tmp, "nmi")
    ok(m.hung and not m.frozen and any("NMI: panic" in line for line in m.why), "a machine that answers a non-maskable interrupt is not reported as frozen",
       "\n".join(m.why))
    m = hung_machine(tmp, "")
    ok(m.hung and m.frozen, "a machine that answers nothing is reported as frozen", "\n".join(m.why))


def main():
    if os.geteuid():
        skip_all("not root")
    tmp = tempfile.mkdtemp(prefix="vm-hangs-")
    step()
    together(tmp)
    machines(tmp)
    shutil.rmtree(tmp)
    done()


main()
