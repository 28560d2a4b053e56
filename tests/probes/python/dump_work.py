# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Threads that are parked in all kinds of code, or that run constantly. Prints a line with their tids. At SIGUSR1 faulthandler
writes the stacks of the parked threads.
"""
import faulthandler
import os
import signal
import sys
import threading
import time

native = {}
parked = threading.Event()


def note():
    native[threading.get_ident()] = threading.get_native_id()


class Shop:
    def sell(self, event):
        note()
        take = lambda: event.wait(  # noqa: E731
            timeout=1000,
        )
        return [take() for _ in range(1)][0]

    @staticmethod
    def deep(n, event):
        if n:
            return Shop.deep(n - 1, event)
        return Shop().sell(event)


def generator(event):
    note()
    with event._cond:
        try:
            yield from inner(event)
        finally:
            pass


def inner(event):
    yield 1
    time.sleep(
        1000
    )
    yield 2


def run_generator(event):
    for _ in generator(event):
        pass


def sorter(event):
    note()
    # Python code called by C code that Python called
    return sorted([2, 1], key=lambda x: (time.sleep(1000), x))


def über(event):
    note()
    exec(compile("def ünterp(e):\n\n    e.wait(1000)\nünterp(event)", "/tmp/a file.py", "exec"), {"event": event})


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def ping(n):
    return pong(n - 1) if n else None


def pong(n):
    return ping(n - 1) if n else None


def run_fast():
    note()
    while True:
        ping(30)


def run_interpreters(n):
    """Runs n interpreters, each in a thread of its own, and stores the interpreter's id for each thread."""
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            print(os.getpid(), [], flush=True)
            time.sleep(1000)

    # up to 3.12 an interpreter's first thread state is that of its creator, regardless of the thread that runs it
    def run():
        one = interpreters.create()
        native[threading.get_native_id()] = int(one)
        getattr(interpreters, "exec", interpreters.run_string)(one, "import time\ntime.sleep(1000)")

    # ids are not reused, so that the remaining ones have gaps
    interpreters.destroy(interpreters.create())
    for _ in range(n - 1):
        threading.Thread(target=run, daemon=True).start()
    native[threading.get_native_id()] = 0
    while len(native) < n:
        time.sleep(0.01)
    print(os.getpid(), sorted(native.items()), flush=True)
    time.sleep(1000)


def main():
    kind = sys.argv[1]
    if kind == "interpreters":
        run_interpreters(4)
    targets = {
        "parked": [Shop().sell, lambda e: Shop.deep(40, e), run_generator, sorter, über],
        "many": [Shop().sell] * 200,
        "spin": [lambda e: (note(), spin(1000))] * 2,
        "fast": [lambda e: run_fast()],
    }[kind]
    threads = [threading.Thread(target=t, args=(parked,), daemon=True) for t in targets]
    for t in threads:
        t.start()
    note()
    while len(native) < len(targets) + 1:
        time.sleep(0.01)
    if kind == "parked":
        truth = open(sys.argv[2], "w")
        faulthandler.register(signal.SIGUSR1, file=truth, all_threads=True)
    print(os.getpid(), sorted(native.items()), flush=True)
    parked.wait(1000)


main()
