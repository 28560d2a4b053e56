#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Real Python programs under sonde: tests/real/python.py [--seconds S] [--keep DIR] [--no-install] [gunicorn] [torch] [cpython]

Runs gunicorn with four threads under load, a PyTorch training loop with a DataLoader and a helper thread that spins, and
CPython's own test modules. Records each as `record`, with -F 99, with --gil=full and with -t +python, and leaves the traces and
the reports that belong to them in build/real/NAME, with what the program says of itself. `make real` runs it.

As root. What is missing is installed: PyPI's gunicorn and CPU torch into build/venv, Debian's wrk and libpython3.11-testsuite.
"""
import argparse
import glob
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
loader = importlib.machinery.SourceFileLoader("real", os.path.join(HERE, "run"))
real = importlib.util.module_from_spec(importlib.util.spec_from_loader("real", loader))
loader.exec_module(real)

# how it is recorded: options, and the reports to look at
WAYS = {
    "default": ((), ("summary", "gil")),
    "sampled": (("-F", "99"), ("python", "lines", "stacks", "gil")),
    "full": (("--gil=full",), ("gil",)),
    "python": (("-t", "+python"), ("gc", "imports")),
}
MODULES = ("test_json", "test_threading", "test_asyncio", "test_re")


def apt(*packages):
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], env=env, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, check=False)


class Gunicorn:
    """One worker of four threads; seven connections ask for /ping, one for /report."""
    name = "gunicorn"
    program = os.path.join(real.VENV, "bin/gunicorn")

    @classmethod
    def there(cls):
        return os.path.exists(cls.program) and bool(real.shutil.which("wrk"))

    @staticmethod
    def install():
        real.pip_packages.install(os.path.join(real.VENV, "bin/python"), "gunicorn")
        apt("wrk")

    def __init__(self, tmp):
        self.url = f"http://127.0.0.1:{real.free_port()}"
        self.server = subprocess.Popen([self.program, "--chdir", HERE, "--threads", "4", "-w", "1", "--keep-alive", "60", "-b",
                                        self.url[7:], "wsgi_app"], cwd=tmp, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        real.wait_for(self.answers)
        self.pid = self.server.pid

    def answers(self):
        try:
            return urllib.request.urlopen(self.url + "/ping", timeout=5).status == 200
        except OSError:
            return False

    def spent(self):
        return json.load(urllib.request.urlopen(self.url + "/spent", timeout=60))

    def work(self, seconds):
        before = self.spent()
        load = [subprocess.Popen(["wrk", "-t", "1", "-c", c, "-d", f"{seconds}s", self.url + path], stdout=subprocess.DEVNULL)
                for c, path in (("7", "/ping"), ("1", "/report"))]
        for p in load:
            p.wait()
        said = ""
        after = self.spent()
        for name, now in after["handlers"].items():
            n, cpu, wall = (a - b for a, b in zip(now, before["handlers"][name]))
            said += (f"/{name}: {n} requests in {seconds} s; of a handler's time {1e3 * cpu / n:.2f} ms on the CPU, "
                     f"{1e3 * wall / n:.2f} ms in all; together {cpu:.2f} s and {wall:.2f} s\n")
        return said + f"garbage collections: {after['collections'] - before['collections']}\n"

    def stop(self):
        self.server.terminate()
        self.server.wait(20)


class Torch(real.DataLoader):
    """A training loop that two DataLoader workers feed, beside a thread that spins."""
    name, option = "torch", ["spin"]

    def __init__(self, tmp):
        super().__init__(tmp)
        self.pid = self.job.pid

    def work(self, seconds):
        return f"{super().work(seconds):.2f} batches/s\n"


class Cpython:
    """CPython's own tests, each module in turn."""
    name = "cpython"
    python = "/usr/bin/python3.11"

    @classmethod
    def there(cls):
        return bool(glob.glob("/usr/lib/python3.11/test/test_json"))

    @staticmethod
    def install():
        apt("libpython3.11-testsuite")

    # they end by themselves: sonde starts them
    pid = None

    def __init__(self, tmp):
        self.tmp = tmp

    def command(self):
        return [self.python, "-m", "test", "-q", "--tempdir", self.tmp, *MODULES]

    def stop(self):
        pass


PROGRAMS = {p.name: p for p in (Gunicorn, Torch, Cpython)}


def reports(trace, folder, way, names):
    for name in names:
        with open(os.path.join(folder, f"{way}-{name}.txt"), "w") as f:
            subprocess.run([real.SONDE, "report", trace, name], stdout=f, stderr=subprocess.STDOUT, check=False)


def record(program, way, seconds, folder):
    """What sonde and the program say."""
    options, names = WAYS[way]
    trace = os.path.join(folder, way + ".sonde")
    command = [real.SONDE, "record", "-f", "-o", trace, *options]
    if program.pid is None:
        p = subprocess.run([*command, "--", *program.command()], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        said = p.stdout[-600:] + "\n".join(line for line in p.stderr.splitlines() if line.startswith("sonde:"))
    else:
        sonde = subprocess.Popen([*command, "-p", str(program.pid)], stderr=subprocess.PIPE, text=True)
        first = ""
        while "tracing into" not in first:
            first = sonde.stderr.readline()
            assert first, "sonde ended"
        own = program.work(seconds)
        sonde.send_signal(real.signal.SIGINT)
        said = own + first + sonde.communicate(timeout=120)[1]
    reports(trace, folder, way, names)
    return said.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--keep", default=os.path.join(real.B, "real"))
    parser.add_argument("--no-install", action="store_true")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("tests/real/python.py: tracing needs root")
    for name in args.programs or PROGRAMS:
        if name not in PROGRAMS:
            sys.exit(f"tests/real/python.py: no program '{name}'; there are: {', '.join(PROGRAMS)}")
        kind = PROGRAMS[name]
        if not kind.there() and not args.no_install:
            kind.install()
        print(f"\n== {name}: {kind.__doc__}", flush=True)
        if not kind.there():
            print("left out, it is not installed", flush=True)
            continue
        folder = os.path.join(args.keep, name)
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="sonde-real-", dir="/tmp") as tmp:
            program = kind(tmp)
            try:
                if program.pid:
                    print("-- without sonde\n" + program.work(args.seconds).strip(), flush=True)
                for way in WAYS:
                    print(f"-- {way}: record {' '.join(WAYS[way][0])}\n{record(program, way, args.seconds, folder)}", flush=True)
            finally:
                program.stop()
        print(f"reports: {os.path.relpath(folder)}/*.txt", flush=True)


if __name__ == "__main__":
    main()
