# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A virtual machine under QEMU's emulation: runs it until it ends, and finds out where it hangs if it does not end.

The console and QEMU's monitor share one channel: the machine's output and the monitor's are in LOGS/console, and what is written
to QEMU's standard input goes to the console, or after Ctrl-A c to the monitor. LOGS/progress is the second serial port, on which
a step writes what it prints.
"""
import os
import re
import subprocess
import time

# both processors in one thread, to avoid faults of concurrent emulation, such as a processor that sees half-patched
# code
TCG = os.environ.get("TCG", "single")
BOOT_LIMIT = 180  # seconds until the machine's init runs
ANSWER, SILENCE = 10, 3  # seconds for the kernel to begin an answer; without a line of it, after which it has ended
INIT_RUNS = "tests/vm/init.sh runs"  # what it prints
MONITOR, BREAK = b"\x01c", b"\x01b"
# system requests: their keys, names, and the parts of their output to print
SYSRQ = {"9": "all messages", "l": "backtraces of the processors", "w": "blocked tasks", "t": "processes", "q": "timers"}


def read(*path):
    try:
        with open(os.path.join(*path), errors="replace") as f:
            return f.read()
    except OSError:
        return ""


class Machine:
    """
    One run. hung: it was ended here, for it had not come to its own end; frozen: and neither a system request nor a
    non-maskable interrupt made its kernel print anything; why: lines for a person.
    """

    def __init__(self, kernel, logs, ramfs, disks, arguments):
        self.logs, self.seconds, self.hung, self.frozen, self.why = logs, 0, False, False, []
        self.command = [
            "qemu-system-x86_64", "-accel", f"tcg,thread={TCG}", "-cpu", "max", "-smp", "2", "-m", "2048", "-no-reboot",
            "-display", "none", "-nic", "none", "-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console",
            "-mon", "chardev=console", "-serial", "file:" + os.path.join(logs, "progress"),
            "-kernel", os.path.join(kernel, "vmlinuz"), "-initrd", ramfs,
            *[a for disk in disks for a in ("-drive", disk)],
            # no_timer_check: on a busy machine the timer's first interrupts are too late for a kernel that tests it at
            # boot, and it panics
            "-append", f"console=ttyS0 quiet panic=-1 no_timer_check sysrq_always_enabled unknown_nmi_panic=1 rdinit=/init -- {arguments}"]

    def console(self):
        return read(self.logs, "console")

    def booted(self):
        return INIT_RUNS in self.console()

    def run(self, limit):
        began = time.monotonic()
        with open(os.path.join(self.logs, "console"), "wb") as out, open(os.path.join(self.logs, "qemu"), "wb") as err:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=out, stderr=err, bufsize=0)
        try:
            if not self.ends(min(limit, BOOT_LIMIT)) and not (self.booted() and self.ends(limit - (time.monotonic() - began))):
                self.hung = True
                self.examine(time.monotonic() - began)
        finally:
            self.child.kill()
            self.child.wait()
            self.seconds = time.monotonic() - began

    def ends(self, seconds):
        try:
            self.child.wait(max(0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def send(self, keys):
        try:
            self.child.stdin.write(keys)
        except OSError:  # QEMU has ended
            pass

    def answer(self, keys, first=None):
        """Sends keys to the console and returns its output until it is silent."""
        before = len(self.console())
        self.send(keys)
        size, until = before, time.monotonic() + (first or ANSWER)
        while time.monotonic() < until and not self.ends(0.5):
            now = len(self.console())
            if now != size:
                size, until = now, time.monotonic() + SILENCE
        return self.console()[before:]

    def monitor(self, command):
        text = self.answer(MONITOR + command.encode() + b"\n" + MONITOR, SILENCE)
        return re.sub(r"\x1b\[[0-9]*[A-Z]", "", text)

    def examine(self, seconds):
        self.why += [f"after {seconds:.0f} s it runs still; the end of its console before that:", *self.console().splitlines()[-10:]]
        self.why += ["the end of what the last step has printed:", *read(self.logs, "progress").splitlines()[-60:]]
        self.why += registers(self.monitor("info registers -a"), self.monitor("info registers -a"))
        answers = {key: self.answer(BREAK + key.encode()) for key in SYSRQ}
        # the kernel may echo the keys as input of a terminal
        answered = any("sysrq:" in text for text in answers.values())
        for key, lines in ("l", kernel_lines(answers["l"])[:80]), ("w", tasks(answers["w"])[:30]), ("t", processes(tasks(answers["t"]))[:80]):
            self.why += [f"{SYSRQ[key]}:", *lines]
        if not answered:
            text = self.monitor("nmi")
            self.why += ["no answer to system requests; after a non-maskable interrupt:", *kernel_lines(text)[:80]]
            self.frozen = not kernel_lines(text)


def kernel_lines(text):
    return [line.rstrip() for line in text.splitlines() if re.match(r"\[ *\d+\.\d+\] ", line)]


def registers(first, second):
    """Two readings of the processors' positions"""
    def where(text):
        return [f"{m[1]}{', halted' if m[2] == '1' else ''}" for m in re.finditer(r"RIP=([0-9a-f]+) .*HLT=(\d)", text)]
    return [f"instruction pointers of the processors: {'; '.join(where(first))}; a moment later: {'; '.join(where(second))}"]


def tasks(text):
    """A line per task with what it waits in"""
    found = []
    for line in kernel_lines(text):
        line = re.sub(r"^\[ *[\d.]+\] ", "", line)
        m = re.match(r"task:(\S+) +state:(\w).*\bpid: *(\d+) .*?\bppid: *(\d+)", line)
        if m:
            found.append(f"{m[1]} {m[2]} pid {m[3]} of {m[4]}:")
        elif found and re.match(r" +[\w.]+\+0x", line):
            found[-1] += " " + line.split("+")[0].strip()
    return found


def processes(lines):
    """The lines without those of kernel threads, which are children of the second task"""
    return [line for line in lines if not re.match(r"\S+ \w pid (2 of 0|\d+ of 2):", line)]
