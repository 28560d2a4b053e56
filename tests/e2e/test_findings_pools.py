#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""Threads and asyncio tasks that wait for an object of a pool, and helpers of multiprocessing that wait for something to do."""
import tempfile

from planted import code, findings, first_of, off, off_stack, process, run
from tap import done, ok

SITE = "/srv/venv/lib/python3.11/site-packages"
GET = "Queue.get /usr/lib/python3.11/queue.py 171"


def check_threads(folder):
    """Threads wait in queue.Queue.get(): below a package's pool, below another function of a package, and in a pool's own thread"""
    for inner, kind in ((("track /app/a.py 7", f"HTTPConnectionPool._get_conn {SITE}/urllib3/connectionpool.py 281", GET), "queue"),
                        (("track /app/a.py 7", f"QueuePool._do_get {SITE}/sqlalchemy/pool/impl.py 168", f"Queue.get {SITE}/sqlalchemy/util/queue.py 200",
                          "Condition.wait /usr/lib/python3.11/threading.py 320"), "queue"),
                        (("main /app/a.py 7", f"Transport.listen {SITE}/sdk/transport.py 9", GET), "idle"),
                        (("main /app/a.py 7", f"Pool.worker {SITE}/jobs/pool.py 9", GET), "idle"),
                        ((f"Pool._do_get {SITE}/jobs/pool.py 9", GET), "idle"),
                        (("main /app/a.py 7", f"ApplyResult.get {SITE}/multiprocess/pool.py 768", f"ApplyResult.wait {SITE}/multiprocess/pool.py 765",
                          "Condition.wait /usr/lib/python3.11/threading.py 320"), "result"),
                        (("main /app/a.py 7", f"ThreadPool.get {SITE}/gevent/threadpool.py 500", GET), "idle"),
                        (("main /app/a.py 7", f"ProcessPool.join {SITE}/pebble/pool/base_pool.py 76", "Thread.join /usr/lib/python3.11/threading.py 1119"),
                         "result"),
                        (("main /app/a.py 7", f"Pool.submit {SITE}/jobs/pool.py 9", GET), "idle"),
                        (("main /app/a.py 7", f"Seats.get {SITE}/carpool/seats.py 9", GET), "idle")):
        stack, frame = code(1, *inner)
        lines = [*process(10, "a"), *stack]
        for i in range(30):
            at = 0.5 + i * 0.2
            lines += [off(10, 11, at, at + 0.15, at + 0.15, "SCHED_SLEEP", 10), run(10, 11, at + 0.15, at + 0.2),
                      off_stack(10, 11, at, at + 0.15, frame, "SYS_futex", "SAMPLE_LOCK") + " futex=77"]
        waits = [f for f in findings(folder, *lines) if f.get("kind") not in ("compute", None)]
        ok([(f["kind"], "until a pool had an object for it" in f["text"]) for f in waits] == ([] if kind == "idle" else [(kind, kind == "queue")]),
           f"{inner[-2].split()[0]}: {kind}", waits)


def tasks(folder, *functions, begun=60):
    stack, frame = code(1, *functions)
    lines = [*process(10, "a"), *stack, run(10, 10, 1, 1.1)]
    lines += [f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 stack={frame} tasks=3 begun={int(i < begun)} all=4" for i in range(60)]
    return next((f for f in findings(folder, *lines) if "asyncio tasks" in f["text"]), {})


def check_tasks(folder):
    """A task waits for a connection of a client library's pool, or through the pool for the answer"""
    connector, pool = f"{SITE}/aiohttp/connector.py", f"{SITE}/httpcore/_async/connection_pool.py"
    for functions, kind in (((f"BaseConnector.connect {connector} 500", f"BaseConnector._wait_for_available_connection {connector} 520"), "queue"),
                            ((f"AsyncConnectionPool.handle_async_request {pool} 200", f"AsyncPoolRequest.wait_for_connection {pool} 20",
                              f"Event.wait {SITE}/anyio/_backends/_asyncio.py 17", "Event.wait /usr/lib/python3.11/asyncio/locks.py 213"), "queue"),
                            ((f"AsyncConnectionPool.handle_async_request {pool} 200", f"SocketStream.receive {SITE}/anyio/_backends/_asyncio.py 12"), "peer")):
        found = tasks(folder, "fetch /app/a.py 7", *functions)
        ok(found.get("kind") == kind and found["code"]["line"] == 7, f"a task that waits in {functions[-1].split()[0]}: {kind}", found)
    found = tasks(folder, "recommend /app/a.py 4", "ask /app/a.py 9", "StreamReader.readline /usr/lib/python3.11/asyncio/streams.py 500")
    ok("in ask (a.py:9)" in found.get("text", "") and "; called by recommend (a.py:4)" in found["text"], "a helper's caller is named", found)


def check_lock(folder):
    """Tasks wait for a lock, whose holder awaits a task, which awaits a reply"""
    read, peer = "StreamReader.readline /usr/lib/python3.11/asyncio/streams.py 500", f"peer_low={0xffff7f000001} peer_port=8441"
    waits, wait = code(1, "request /app/a.py 11", "Lock.acquire /usr/lib/python3.11/asyncio/locks.py 114")
    holds, hold = code(4, "token /app/a.py 8")
    holds_alone, hold_alone = code(5, "token /app/a.py 9", read)
    fetches, fetch = code(7, "fetch /app/a.py 5", read)
    sleeps, sleep = code(8, "rest /app/a.py 20", "sleep /usr/lib/python3.11/asyncio/tasks.py 639")
    for chain, text in ((f"holder={hold} last={fetch} {peer}", "token (a.py:8), which awaited a reply from 127.0.0.1:8441 in fetch (a.py:5)."),
                        (f"holder={hold} last={sleep}", "token (a.py:8), which awaited sleep in rest (a.py:20)."),
                        (f"holder={hold_alone} {peer}", "token (a.py:9), which awaited a reply from 127.0.0.1:8441."),
                        (f"holder={hold_alone}", "token (a.py:9), which awaited StreamReader.readline."),
                        (f"holder={hold}", "token (a.py:8).")):
        lines = [*process(10, "a"), *waits, *holds, *holds_alone, *fetches, *sleeps, run(10, 10, 1, 1.1)]
        lines += [f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 stack={wait} tasks={29 + i % 2} begun=1 all=40 {chain}"
                  for i in range(60)]
        found = first_of(findings(folder, *lines), kind="lock")
        ok("(30 of 40 asyncio tasks) waited " in found.get("text", "") and " for a lock in request (a.py:11)" in found["text"]
           and "held by " + text in found["text"], f"a lock held by {text}", found)
    stack, frame = code(1, "ask /app/a.py 7", read)
    lines = [*process(10, "a"), *stack, run(10, 10, 1, 1.1)]
    lines += [f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 stack={frame} tasks=1 begun=1 all=2 {peer}" for i in range(60)]
    found = first_of(findings(folder, *lines), kind="peer")
    ok("(1 of 2 asyncio tasks)" in found.get("text", "") and "await of StreamReader.readline, peer 127.0.0.1:8441" in found["text"], "the peer is named", found)


def check_long_waits(folder):
    """Tasks that wait for seconds are idle, unless they wait to send something"""
    for function, expected in (("StreamReader.readline", False), ("StreamWriter.drain", True)):
        found = tasks(folder, "publish /app/a.py 7", f"{function} /usr/lib/python3.11/asyncio/streams.py 378", begun=1)
        ok(("in publish (a.py:7)" in found.get("text", "")) == expected, f"a wait of 6 s in {function}: {'a finding' if expected else 'idle'}", found)


def check_queue_as_pool(folder):
    """Tasks wait in asyncio.Queue.get() of the user's own code: for a connection while all are in use, and workers for something to do"""
    getting, get = code(1, "client /app/a.py 3", "fetch /app/a.py 7", "Queue.get /usr/lib/python3.11/asyncio/queues.py 158")
    using, use = code(4, "client /app/a.py 3", "fetch /app/a.py 9", "StreamReader.readline /usr/lib/python3.11/asyncio/streams.py 500")
    # both stacks are of the same function
    using = [line.replace("code=401", "code=101") for line in using if not line.startswith("meta_code time=@0 code=401")]
    for text, in_use in (("is a pool", lambda i: 2 if i % 8 else 1), ("is idle", lambda i: i % 3), ("is idle, too", lambda i: 0)):
        lines = [*process(10, "a"), *getting, *using, run(10, 10, 1, 1.1)]
        for i in range(60):
            row = f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 begun=1 all=9"
            lines += [f"{row} stack={get} tasks=5"] + [f"{row} stack={use} tasks={in_use(i)}"] * (in_use(i) > 0)
        found = [f for f in findings(folder, *lines) if f.get("kind") == "queue"]
        ok([f["code"]["line"] for f in found] == ([7] if text == "is a pool" else []), f"a queue with tasks that wait in get() {text}", found)


def check_queue_of_workers(folder):
    """Four workers take from an asyncio.Queue, whose producer puts one object at a time: always one of them works"""
    getting, get = code(1, "work /app/a.py 7", "Queue.get /usr/lib/python3.11/asyncio/queues.py 158")
    using, use = code(4, "work /app/a.py 9", "StreamReader.readline /usr/lib/python3.11/asyncio/streams.py 500")
    using = [line.replace("code=400", "code=100") for line in using if not line.startswith("meta_code time=@0 code=400")]
    lines = [*process(10, "a"), *getting, *using, run(10, 10, 1, 1.1)]
    for i in range(60):
        row = f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 begun=1 all=5"
        lines += [f"{row} stack={get} tasks=3", f"{row} stack={use} tasks=1"]
    found = [f for f in findings(folder, *lines) if f.get("kind") == "queue"]
    ok(not found, "workers that wait in get() while one works are idle", found)


def check_recursion(folder):
    """A function that uses an object of a pool calls itself three times in one of two tasks: both readings have all objects in use"""
    getting, get = code(1, "client /app/a.py 3", "fetch /app/a.py 7", "Queue.get /usr/lib/python3.11/asyncio/queues.py 158")
    read = "StreamReader.readline /usr/lib/python3.11/asyncio/streams.py 500"
    flat, use = code(4, "client /app/a.py 3", "fetch /app/a.py 9", read)
    deep, recurse = code(5, "client /app/a.py 3", "fetch /app/a.py 9", "fetch /app/a.py 9", "fetch /app/a.py 9", read)
    lines = [*process(10, "a"), *getting, *flat, *deep, run(10, 10, 1, 1.1)]
    # all these frames are of the function `fetch`
    for frame in (401, 501, 502, 503):
        lines = [line.replace(f"code={frame}", "code=101") for line in lines if not line.startswith(f"meta_code time=@0 code={frame}")]
    for i in range(60):
        row = f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 begun=1 all=9"
        lines += [f"{row} stack={get} tasks=5", f"{row} stack={use} tasks={2 if i % 2 else 1}"] + [f"{row} stack={recurse} tasks=1"] * (i % 2 == 0)
    found = [f for f in findings(folder, *lines) if f.get("kind") == "queue"]
    ok([f["code"]["line"] for f in found] == [7], "a recursive function counts once for each task", found)


def check_requests(folder):
    """Tasks wait for an asyncio.Event or a future: in a request, and where this may be idle"""
    web, event = f"RequestResponseCycle.run_asgi {SITE}/uvicorn/protocols/http/h11_impl.py 411", "Event.wait /usr/lib/python3.11/asyncio/locks.py 213"
    endpoint = f"run_endpoint_function {SITE}/fastapi/routing.py 290"
    for functions, kind in (((web, endpoint, "price /app/a.py 7", event), "condition"), ((web, endpoint, "price /app/a.py 7"), "result"),
                            ((web, endpoint, "price /app/a.py 7", "sleep /usr/lib/python3.11/asyncio/tasks.py 639"), None),
                            ((web, f"StreamingResponse.stream_response {SITE}/starlette/responses.py 250", "news /app/a.py 7", event), None),
                            ((f"WebSocketProtocol.run_asgi {SITE}/uvicorn/protocols/websockets/a.py 2", "news /app/a.py 7", event), None),
                            (("price /app/a.py 7", event), None), (("price /app/a.py 7",), None)):
        found = tasks(folder, *functions)
        ok(found.get("kind") == kind and "called by" not in found.get("text", ""), f"{' > '.join(f.split()[0] for f in functions)}: {kind}", found)


def check_executor(folder):
    """A request waits for a pool's thread, which waits for child processes"""
    waits, waiting = code(1, "request /app/a.py 7", "Future.result /usr/lib/python3.11/concurrent/futures/_base.py 451")
    runs, running = code(2, "_worker /usr/lib/python3.11/concurrent/futures/thread.py 83", "export /app/a.py 3", "run /usr/lib/python3.11/subprocess.py 500")
    lines = [*process(10, "a"), *waits, *runs]
    for i in range(30):
        at = 0.5 + i * 0.2
        lines += [off(10, 10, at, at + 0.19, at + 0.19, "SCHED_SLEEP", 10).replace("waker_tid=10", "waker_tid=12"), run(10, 10, at + 0.19, at + 0.2),
                  off_stack(10, 10, at, at + 0.19, waiting, "SYS_futex", "SAMPLE_LOCK") + " futex=77",
                  off(10, 12, at, at + 0.19, at + 0.19, "SCHED_SLEEP"), run(10, 12, at + 0.19, at + 0.2),
                  off_stack(10, 12, at, at + 0.19, running, "SYS_wait4")]
    found = first_of(findings(folder, *lines), kind="result")
    ok("which waited for a child process in export (a.py:3)" in found.get("text", ""), "the wait is followed to the child process of the pool's thread", found)


def check_tracker(folder):
    """The helper process that multiprocessing starts reads requests all the time"""
    stack, frame = code(1, "<module> <string> 1", "main /usr/lib/python3.11/multiprocessing/resource_tracker.py 235")
    lines = [*process(10, "python"), *stack]
    for i in range(30):
        at = 0.5 + i * 0.2
        lines += [off(10, 10, at, at + 0.199, at + 0.199, "SCHED_SLEEP", 20), run(10, 10, at + 0.199, at + 0.2),
                  off_stack(10, 10, at, at + 0.199, frame, "SYS_read")]
    found = findings(folder, *lines)
    ok(found[0]["kind"] == "idle", "it is idle", found[0])


def check_busy_pool(folder):
    """All threads of an executor fetch something, and one or three threads wait for a result; or a further thread of it has nothing to do"""
    library = "/usr/lib/python3.11/concurrent/futures"
    worker = f"_worker {library}/thread.py 81"
    fetches, fetching = code(1, worker, f"_WorkItem.run {library}/thread.py 58", "fetch /app/a.py 9")
    idles, idling = code(2, worker)
    waits, waiting = code(3, "report /app/a.py 7", f"Future.result {library}/_base.py 451", "Condition.wait /usr/lib/python3.11/threading.py 320")
    for free, waiters in ((False, 1), (False, 3), (True, 1)):
        lines = [*process(10, "a"), *fetches, *idles, *waits]
        for tid, frame, call in [(10, waiting, "futex"), (11, fetching, "recvfrom"), (12, fetching, "recvfrom")] + [(13, idling, "futex")] * free + [
                (20 + n, waiting, "futex") for n in range(waiters - 1)]:
            for i in range(30):
                at = 1 + i * 0.2
                lines += [off(10, tid, at, at + 0.19, at + 0.19, "SCHED_SLEEP"), run(10, tid, at + 0.19, at + 0.2),
                          off_stack(10, tid, at, at + 0.19, frame, "SYS_" + call)]
        found = findings(folder, *lines)
        texts = [first_of(found, kind=kind).get("text", "") for kind in ("peer", "result")]
        said = "; all 2 threads of the pool were busy for 100% of the time" + (": tasks waited for a free one." if waiters > 2 else ".")
        ok(all(texts) and [said in text for text in texts] == [not free] * 2,
           "a thread of the pool is free" if free else f"all threads of a pool are busy, {waiters} wait", texts)


with tempfile.TemporaryDirectory() as there:
    check_threads(there)
    check_tasks(there)
    check_busy_pool(there)
    check_lock(there)
    check_long_waits(there)
    check_queue_as_pool(there)
    check_queue_of_workers(there)
    check_recursion(there)
    check_requests(there)
    check_executor(there)
    check_tracker(there)
done()
