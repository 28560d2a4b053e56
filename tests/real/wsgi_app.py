# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small web service: /ping answers at once, /report serialises a large document, which json does in one go in C."""
import gc
import json
import threading
import time

DOCUMENT = [{"id": i, "name": f"item {i}", "tags": ["a", "b", str(i)], "price": i / 7} for i in range(20000)]
# what it knows of itself, for comparison: seconds on the CPU and in all, by handler
spent = {"ping": [0, 0.0, 0.0], "report": [0, 0.0, 0.0]}
lock = threading.Lock()


def ping():
    return json.dumps({"ok": True, "digits": sum(i * i for i in range(300))})


def report():
    return json.dumps(DOCUMENT)


def application(environ, start_response):
    name = environ["PATH_INFO"].strip("/")
    if name == "spent":
        body = json.dumps({"handlers": spent, "collections": sum(g["collections"] for g in gc.get_stats())})
    else:
        start, cpu = time.monotonic(), time.thread_time()
        body = {"ping": ping, "report": report}[name]()
        with lock:
            numbers = spent[name]
            numbers[0] += 1
            numbers[1] += time.thread_time() - cpu
            numbers[2] += time.monotonic() - start
    data = body.encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]
