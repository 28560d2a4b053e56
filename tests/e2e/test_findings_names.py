#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""What happened below the user's line, in words: the function of a library that took the time, and what waits were for"""
import tempfile

from planted import END, code, findings, first_of, merged_schema, off, off_stack, process, run, written
from tap import done, ok

LIBRARY, SITE = "/usr/lib/python3.11", "/srv/venv/lib/python3.11/site-packages"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LINE = "report /app/a.py 7"


def computes(folder, *shares):
    """The text about a process that computes; shares: [(percent of its samples, functions below the line)]. A function's name is always the same code"""
    lines, codes = [*process(10, "a"), run(10, 10, 1, 6)], {}
    for number, (percent, functions) in enumerate(shares, 1):
        stack, frame = code(number, LINE, *functions)
        for i, function in enumerate((LINE, *functions)):
            own, known = 100 * number + i, codes.setdefault(function, 100 * number + i)
            stack = [line.replace(f" code={own} ", f" code={known} ") for line in stack]
        lines += [*stack, f"sample_cpu pid=10 tid=10 time=@{1 + number / 10} period={percent * 50_000_000} stack={frame}"]
    return first_of(findings(folder, *lines), kind="compute").get("text", "")


def check_callees(folder):
    """The outermost and the deepest function with 80% of the time; one for which a rule has words precedes the latter, also with 50%"""
    dumps = [f"dumps {LIBRARY}/json/__init__.py 231"]
    encode = [*dumps, f"JSONEncoder.encode {LIBRARY}/json/encoder.py 200"]
    load = [f"safe_load {SITE}/yaml/__init__.py 125", f"Loader.get_data {SITE}/yaml/constructor.py 43"]
    for shares, text in (([(85, encode), (15, ())], "85% of that in json.dumps, mostly in json.encoder.JSONEncoder.encode."),
                         ([(82, [*load, f"Reader.peek {SITE}/yaml/reader.py 87"]), (18, ())], "82% of that in yaml's safe_load, mostly in Reader.peek."),
                         ([(82, [*load, "deflate /opt/libz.so.1"]), (18, ())],
                          "82% of that in yaml's safe_load, mostly in native code: deflate (libz.so.1)."),
                         ([(79, load), (21, [f"load {SITE}/yaml/__init__.py 74", load[1]])], "100% of that in yaml's Loader.get_data."),
                         ([(100, [f"run.<locals>.wrapper {SITE}/six.py 5", f"parse {SITE}/yaml/parser.py 9"])], "100% of that in yaml's parse."),
                         ([(90, [f"compile {LIBRARY}/re/__init__.py 226", f"_compile {LIBRARY}/re/__init__.py 294"]), (10, ())],
                          "90% of that in compiling regular expressions: re.compile."),
                         ([(75, encode), (10, dumps), (15, ())], "85% of that in json.dumps."),
                         ([(79, encode), (21, ())], "in this function, mostly in Python code."),
                         ([(100, [f"parse {SITE}/yaml/parser.py 9"])], "100% of that in yaml's parse."),
                         ([(100, [f"six_move {SITE}/six.py 9"])], "100% of that in six's six_move."),
                         ([(100, ["dgemm_kernel /opt/libblas.so.3"])], "in native code: matrix products in double precision: dgemm_kernel (libblas.so.3)."),
                         ([(100, ["deflate /opt/libz.so.1"])], "mostly in native code: deflate (libz.so.1)."),
                         ([(100, ["memcpy " + LIBC])], "mostly in native code: memcpy (libc.so.6)."),
                         ([(100, ["walk /app/b.py 3"])], "in walk (b.py:3); 100% of its CPU time was in this function, mostly in Python code."),
                         ([(60, [f"format_exc {LIBRARY}/traceback.py 160", f"extract {LIBRARY}/traceback.py 400"]), (40, ())],
                          "60% of that in tracebacks as text: traceback.format_exc."),
                         ([(49, [f"format_exc {LIBRARY}/traceback.py 160"]), (51, ())], "mostly in Python code."),
                         ([(100, [f"deepcopy {LIBRARY}/copy.py 128", f"_deepcopy_dict {LIBRARY}/copy.py 231", f"deepcopy {LIBRARY}/copy.py 128"])],
                          "100% of that in deep copies: copy.deepcopy."),
                         ([(100, ["clock_nanosleep " + LIBC])], "very short sleeps, as in a loop that polls: clock_nanosleep (libc.so.6)."),
                         ([(100, ["fork " + LIBC, "_Fork " + LIBC])], "fork, which copies the page tables of the process: _Fork (libc.so.6)")):
        found = computes(folder, *shares)
        ok(text in found, text, found)


def waits(folder, functions, call="SYS_recvfrom", ms=150, n=30, end="", more=()):
    """The findings about a process that waits n times; end: fields of a socket that it waits for"""
    stack, frame = code(1, LINE, *functions)
    lines = [*process(10, "a"), *stack, *more]
    if end:
        lines.append(f"syscall_file time=@0 pid=10 tid=10 file=1 {end}")
    for i in range(n):
        at = 1 + i * 6 / n
        lines += [off(10, 10, at, at + ms / 1000, at + ms / 1000, "SCHED_SLEEP"), off_stack(10, 10, at, at + ms / 1000, frame, call),
                  run(10, 10, at + ms / 1000, at + 6 / n)]
        if end:
            lines.append(f"syscall pid=10 tid=10 start=@{at:.6f} time=@{at + ms / 1000:.6f} nr={call} ret=1 bytes=1 file=1 sleeps=1")
    return written(folder, "waits", [*lines, END], merged_schema(folder), "proc,sched,gil,sample,syscall")[1]


def check_waits(folder):
    """What a wait is for, by a rule's words, or by the port of a name server"""
    connect = [f"create_connection {LIBRARY}/socket.py 827"]
    for functions, kind, text in (([*connect, f"getaddrinfo {LIBRARY}/socket.py 955"], "peer", "waited 75% of 6.000 s for a name lookup (DNS) in report"),
                                  ([*connect, f"__res_context_query {LIBC}"], "peer", "for a name lookup (DNS) in report"),
                                  (connect, "peer", "for another process or machine in report"),
                                  ([f"SSLSocket.do_handshake {LIBRARY}/ssl.py 1342"], "peer", "for TLS handshakes in report"),
                                  ([f"LazyLoader._emit_lazyload {SITE}/sqlalchemy/orm/strategies.py 976", "PQgetResult /opt/libpq.so.5"], "peer",
                                   "for lazy loads of related rows (N+1 queries) in report"),
                                  ([f"Session.execute {SITE}/sqlalchemy/orm/session.py 976", "PQgetResult /opt/libpq.so.5"], "peer",
                                   "100% of these waits were in sqlalchemy's Session.execute")):
        found = first_of(waits(folder, functions), kind=kind).get("text", "")
        ok(text in found, text, found)
    for functions, text in (([f"Queue.put {LIBRARY}/queue.py 140"], "for room in a full queue (put) in report"),
                            ([f"Queue.join {LIBRARY}/queue.py 90"], "for the tasks of a queue (join) in report"),
                            ([f"QueuePool._do_get {SITE}/sqlalchemy/pool/impl.py 168", f"Queue.get {SITE}/sqlalchemy/util/queue.py 200"],
                             "for a free object of a pool in report")):
        found = first_of(waits(folder, [*functions, f"Condition.wait {LIBRARY}/threading.py 320"], "SYS_futex"), kind="queue").get("text", "")
        ok(text in found, text, found)


def check_ports(folder):
    """A client asks a name server, or another one; a server waits for datagrams, and a client that has not connected its socket does"""
    here, there = "kind=SYSCALL_FILE_SOCKET family=2 type=2 local0=0x100007f", "peer0=0x3500007f"
    for end, kind, text in ((f"{here} local_port=40000 {there} peer_port=53", "peer", "for a name lookup (DNS)"),
                            (f"{here} local_port=40000 {there} peer_port=8053", "peer", "for another process or machine"),
                            (f"{here} local_port=40000", "peer", "for another process or machine"),
                            (f"{here} local_port=53", "peer", "")):
        found = waits(folder, [], end=end)
        peer = first_of(found, kind=kind).get("text", "")
        ok(text in peer if text else found and not peer, f"{end[len(here) + 1:]}: {text or 'idle'}", found)


def check_titles(folder):
    """Three clients of PostgreSQL, of whose sessions two or one wait for a lock as tracing ends; of another server; without titles"""
    title, stack = "app shop 127.0.0.1(51234) ", code(1, LINE)
    for comm, titles, words, text in (
            ("postgres", ("UPDATE waiting", "idle in transaction", "UPDATE waiting"), "locks of other transactions in its database",
             f'; as the recording ended, 2 of 3 titles ended in "waiting": postgres 22: "{title}UPDATE waiting", '
             f'postgres 21: "{title}idle in transaction", and that of b 30 was idle in a transaction, which keeps its locks'),
            ("postgres", ("idle in transaction", "UPDATE waiting", "idle in transaction"), "another process or machine",
             '2 of 3 titles ended in "transaction"'),
            ("shopd", ("UPDATE waiting", "UPDATE waiting", "idle"), "another process or machine", f'2 of 3 titles ended in "waiting": shopd 21: "{title}'),
            ("postgres", ("idle", "idle", "idle"), "another process or machine", ""), ("postgres", (), "another process or machine", "")):
        lines = [*process(10, "a"), *stack[0]]
        if titles:
            lines += [*process(30, "b"), "syscall_file time=@0 pid=30 tid=30 file=9 kind=SYSCALL_FILE_SOCKET family=2 type=1 other_end=9",
                      f'syscall_peer time=@7.9 pid=40 tid=40 other_end=9 comm="{comm}"',
                      f'syscall_title time=@7.9 pid=40 tid=40 text="{comm}: {title}idle in transaction"']
        for n in range(3):
            lines += [f"syscall_file time=@0 pid=10 tid={11 + n} file={n + 1} kind=SYSCALL_FILE_SOCKET family=2 type=1 other_end={n + 1}",
                      f'syscall_peer time=@7.9 pid={20 + n} tid={20 + n} other_end={n + 1} comm="{comm}"',
                      *(f'syscall_title time=@7.9 pid={20 + n} tid={20 + n} text="{comm}: {title}{words}"' for words in titles[n:n + 1])]
            for i in range(20):
                at = 0.1 + 0.3 * i
                lines += [off(10, 11 + n, at, at + 0.29, at + 0.29, "SCHED_SLEEP"), run(10, 11 + n, at + 0.29, at + 0.3),
                          off_stack(10, 11 + n, at, at + 0.29, stack[1], "SYS_recvfrom") + f" file={n + 1}"]
        found = first_of(findings(folder, *lines), kind="peer").get("text", "")
        ok(f" for {words} in report" in found and (text in found if text else "titles" not in found), f"titles of {comm}: {titles}", found)


def check_nagle(folder):
    """Both ends of a connection wait for 44 ms at the same time; for 90 ms; in turn; the second one for something else"""
    stack, other = code(1, LINE), code(2, "serve /app/b.py 9")
    ends = "kind=SYSCALL_FILE_SOCKET family=2 type=1 local0=0x100007f peer0=0x100007f"
    for wait, start, file, is_found in ((0.044, 0, 2, True), (0.09, 0, 2, False), (0.044, 0.044, 2, False), (0.044, 0, 0, False)):
        lines = [*process(10, "a"), *process(20, "b"), *stack[0], *other[0],
                 f"syscall_file time=@0 pid=10 tid=10 file=1 {ends} local_port=40000 peer_port=80",
                 f"syscall_file time=@0 pid=20 tid=20 file=2 {ends} local_port=80 peer_port=40000"]
        step = 2 * wait if start else wait + 0.001
        for i in range(int(7.9 / step)):
            for pid, at, frame, number in ((10, i * step, stack[1], 1), (20, i * step + start, other[1], file)):
                lines += [off(pid, pid, at, at + wait, at + wait + 0.0002, "SCHED_SLEEP"), run(pid, pid, at + wait + 0.0002, at + wait + 0.0005),
                          off_stack(pid, pid, at, at + wait, frame, "SYS_recvfrom") + f" file={number}"]
        found = first_of(findings(folder, *lines), kind="peer", pid=10).get("text", "")
        ok(found and (" for delayed ACKs, as Nagle's algorithm holds small writes back in report (a.py:7)" in found and
           "both ends of the connection waited for each other at the same time, 44.000 ms in each round trip" in found) == is_found,
           f"waits of {1000 * wait:.0f} ms, the other end's from {1000 * start:.0f} ms on, of {'the connection' if file else 'another file'}", found)


def check_memory(folder):
    """The memory limit of its cgroup, or of the one above, makes a process wait for pages of files; or it is hardly reached, or it waits for fsync()"""
    for reached, call, is_cause in ((20, "SYS_read", True), (4, "SYS_read", False), (20, "SYS_fsync", False)):
        limits = [f'sched_memory time=@{second + 1} pid=10 since=@{second} limit=50331648 reached={n} cgroup="{cgroup}"'
                  for second in range(8) for cgroup, n in (("/pod", reached), ("/", reached - 1))]
        stack, frame = code(1, LINE)
        lines = [*process(10, "a"), *stack, *limits]
        for i in range(30):
            at = 1 + i * 0.2
            lines += [off(10, 10, at, at + 0.15, at + 0.15, "SCHED_BLOCKED"), run(10, 10, at + 0.15, at + 0.2),
                      off_stack(10, 10, at, at + 0.15, frame, call),
                      f"syscall pid=10 tid=10 start=@{at:.6f} time=@{at + 0.15:.6f} nr={call} ret=1 bytes=1 sleeps=1"]
        text = first_of(written(folder, "memory", [*lines, END], merged_schema(folder), "proc,sched,gil,sample,syscall")[1], kind="disk").get("text", "")
        ok(("for pages of files that the memory limit of its cgroup evicts in report (a.py:7)" in text and
            "; its cgroup /pod reached its memory limit of 48.00 MiB 160 times: the kernel frees pages, which are read again" in text) == is_cause and text,
           f"a limit reached {reached} times a second, and {call}", text)


with tempfile.TemporaryDirectory() as room:
    check_callees(room)
    check_waits(room)
    check_ports(room)
    check_titles(room)
    check_nagle(room)
    check_memory(room)
done()
