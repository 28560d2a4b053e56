# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Collects garbage, imports modules and starts threads, and prints its own log of these as a Python literal."""
import gc
import os
import sys
import threading
import time

log = {"gc": [], "threads": []}


def on_gc(phase, info):
    now = time.monotonic_ns()
    log["gc"].append([phase, now, info["generation"], info["collected"], info["uncollectable"]])


class Ring:
    pass


def make_garbage(n):
    for _ in range(n):
        ring = Ring()
        ring.self = ring


def thread():
    log["threads"].append(threading.get_native_id())
    time.sleep(0.01)


def import_again():
    for _ in range(20000):
        import threading as again  # already in sys.modules: no search
    return again


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "wait":
        print("ready", os.getpid(), flush=True)
        sys.stdin.readline()
    gc.callbacks.append(on_gc)
    gc.collect()
    for i in range(60):
        make_garbage(300)
        gc.collect(i % 3)
    import_again()
    threads = [threading.Thread(target=thread) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # a small installation lacks some of these, and searches for them without success
    for name in "argparse", "tempfile", "xml.dom.minidom", "email.mime.text", "no_such_module", "nö_such":
        try:
            __import__(name)
        except ImportError:
            pass
    gc.collect()
    gc.callbacks.remove(on_gc)
    print(log, flush=True)
    # later events are not logged
    sys.stderr.flush()
    os._exit(0)


main()
