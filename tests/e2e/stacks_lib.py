# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Synthetic traces with stacks, and their expected contents, computed without sonde: family `sample`, waits for the GIL with
stacks, functions with several ids, names with invalid bytes."""
import collections
import os
import random
import subprocess

from sonde_cli import MAKE_TRACE, make_trace

COMMON = (("time", 8, "moment"), ("pid", 4, "task"), ("tid", 4, "task"), ("id", 2, ""), ("probe", 2, ""), ("cpu", 2, ""),
          ("flags", 2, ""))
PYTHON, NATIVE, KERNEL, CUT = 1, 2, 3, 4
HELD, NOT_SEEN, NO_STACK = "-- held by --", "-- holder unknown --", "[no stack]"
FREE = "-- free: woken, not running yet --"


def event(name, number, fields, span=False, tail=None):
    """fields: (name, bytes, unit); an enum has its name as the unit"""
    all_fields, at = [], 0
    for f, size, unit in [*COMMON, *([("start", 8, "moment")] if span else []), *fields]:
        kind = {"enum": "frame_kind"} if unit == "frame_kind" else {"unit": unit} if unit else {}
        all_fields.append({"name": f, "type": "enum" if "enum" in kind else "unsigned", "size": size, "offset": at, **kind})
        at += size
    if tail:
        all_fields.append({"name": tail, "type": "tail", "size": 0, "offset": at})
    return {"id": number, "name": name, "size": at, "fields": all_fields}


SCHEMA = {
    "families": [{"id": 0, "name": "core"}, {"id": 1, "name": "proc"}, {"id": 4, "name": "gil"}, {"id": 12, "name": "sample"},
                 {"id": 127, "name": "test"}],
    "options": [],
    "enums": [{"name": "frame_kind", "values": [{"name": n, "value": v} for n, v in (
        ("FRAME_PYTHON", PYTHON), ("FRAME_NATIVE", NATIVE), ("FRAME_KERNEL", KERNEL), ("FRAME_CUT", CUT))]}],
    "events": [
        event("meta_string", 0x0001, [("string", 4, "")], tail="text"),
        event("meta_code", 0x000a, [("code", 4, "code"), ("name", 4, "string"), ("file", 4, "string"), ("line", 4, ""),
                                    ("kind", 4, "frame_kind")]),
        event("meta_frame", 0x000b, [("offset", 8, "hex"), ("frame", 4, "stack"), ("caller", 4, "stack"),
                                     ("code", 4, "code"), ("line", 4, ""), ("kind", 4, "frame_kind")]),
        event("proc_task", 0x0101, [("comm", 16, "")]),
        event("gil_wait", 0x0401, [("gil", 8, "hex"), ("drop_time", 8, "moment"), ("dropper", 4, "task"), ("result", 4, ""),
                                   ("holder", 4, "task"), ("locked", 4, ""), ("number", 4, ""),
                                   ("stack", 4, "stack"), ("holder_stack", 4, "stack")], span=True),
        event("gil_drop", 0x0402, [("gil", 8, "hex"), ("waiter", 4, "task"), ("stack", 4, "stack")]),
        event("sample_cpu", 0x0c01, [("period", 8, "ns"), ("stack", 4, "stack")]),
        event("sample_off", 0x0c02, [("stack", 4, "stack")], span=True),
        event("test_call", 0x7f01, [("ret", 8, ""), ("stack", 4, "stack")], span=True),
        event("test_mark", 0x7f02, [("where", 4, "stack"), ("stack", 4, "stack")]),
    ]}
SCHEMA["events"][3]["fields"][-1]["type"] = "text"


def old_trace(folder):
    """Writes a trace of a version that had no stacks."""
    golden, path = os.path.join(os.environ["ROOT"], "tests", "golden"), os.path.join(folder, "old.sonde")
    subprocess.run([MAKE_TRACE, f"{golden}/schema.json", f"{golden}/run.events", path], check=True)
    return path


def quoted(data):
    data = data.encode() if isinstance(data, str) else data
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\x{b:02x}" for b in data) + '"'


class Stacks:
    """Functions and frames by number; `lines` is what make_trace reads."""

    def __init__(self):
        self.lines, self.functions, self.frames = [], [], {}
        self.weights = collections.defaultdict(collections.Counter)  # event -> {(pid, stack[, holder]): ns}
        self.events = collections.Counter()

    def line(self, event_kind, /, **fields):
        self.lines.append(event_kind + "".join(f" {k}={v}" for k, v in fields.items()))
        if event_kind in ("sample_cpu", "sample_off", "gil_wait", "test_call", "test_mark"):
            self.events[event_kind] += 1

    def function(self, name, file, line=1, kind=PYTHON):
        self.functions.append((name, file, line, kind))
        self.line("meta_code", time="@0", code=len(self.functions), name=quoted(name), file=quoted(file), line=line,
                  kind=kind)
        return len(self.functions)

    def frame(self, caller, function, line=0, kind=None, offset=0x10):
        number = len(self.frames) + 1
        kind = kind or self.functions[function - 1][3]
        self.frames[number] = (caller, function, line, kind, offset)
        self.line("meta_frame", time="@0", frame=number, caller=caller, code=function, line=line, kind=kind, offset=offset)
        return number

    def path(self, stack):
        """[(name, file, line)], outermost first"""
        out = []
        while stack:
            caller, function, line, kind, offset = self.frames[stack]
            name, file = self.functions[function - 1][:2] if function else ("", "")
            if not name:
                name = "[cut]" if kind == CUT else f"{offset:#x}" if kind != PYTHON else "[unknown]"
            out.append((name, file, line, kind))
            stack = caller
        return out[::-1]

    def sample(self, at, pid, stack, period, tid=None):
        self.line("sample_cpu", time=f"@{at:.9f}", pid=pid, tid=tid or pid, period=period, stack=stack)
        self.weights["on-cpu"][pid, stack] += period

    def span(self, kind, start, ns, pid, stack, holder=None, **more):
        view = {"sample_off": "off-cpu", "gil_wait": "gil-wait"}.get(kind, kind)
        if holder is not None:
            # a wait that timed out while a thread held the GIL, or one without known holder
            more.update({"holder_stack": holder, "gil": "0xf000000000000001", "result": 2, "locked": 1, "holder": 999} if holder else
                        {"gil": 0x1000 + self.events["gil_wait"]})
            self.weights["gil-blame"][pid, stack, holder] += ns
            self.events["pieces"] += 1
        # whole microseconds are exact in the decimals of a double
        self.line(kind, time=f"@{start + ns / 1e9:.9f}", start=f"@{start:.9f}", pid=pid, tid=more.pop("tid", pid), stack=stack, **more)
        self.weights[view][pid, stack] += ns

    def dropped(self, start, ns, pid, stack, dropper, free):
        """A wait, on a GIL of its own, that a drop ended `free` ns before the waiter ran"""
        gil, drop = 0x9000 + self.events["gil_wait"], f"@{start + (ns - free) / 1e9:.9f}"
        # an earlier drop, from which on the GIL's holders are known
        self.line("gil_drop", time=f"@{start - 0.001:.9f}", pid=pid, tid=6, gil=gil, waiter=7, stack=0)
        self.line("gil_drop", time=drop, pid=pid, tid=5, gil=gil, waiter=pid, stack=dropper)
        self.line("gil_wait", time=f"@{start + ns / 1e9:.9f}", start=f"@{start:.9f}", pid=pid, tid=pid, stack=stack, gil=gil,
                  result=1, dropper=5, drop_time=drop, holder_stack=0)
        self.weights["gil-wait"][pid, stack] += ns
        self.weights["gil-blame"][pid, stack, dropper] += ns - free
        self.weights["gil-blame"][pid, stack, FREE] += free
        self.events["pieces"] += 2

    def write(self, folder, name, schema=None):
        return make_trace(os.path.join(folder, name), self.lines, schema or SCHEMA)


NASTY = (b"</script><script>document.title='owned'</script>", b"<img src=x onerror=\"document.title='owned'\">",
         b"quote\"'`&amp;\\", b"bad\xff\xfeutf8", b"new\nline;semi 12", "\u202eturned".encode(), b"\x1b[31mred\x07",
         "line\u2028sep".encode(), b"<!--", b"@DATA@")


def sample_trace(folder, name="stacks"):
    """Writes a trace with everything that the formats show."""
    s, chance = Stacks(), random.Random(6)
    for pid, comm in ((100, "server"), (200, "</title>\"&"), (300, "py")):
        s.line("proc_task", time="@0", pid=pid, tid=pid, comm=quoted(comm))
    main = s.function("main", "/srv/app.py", 3)
    work = s.function("Worker.run", "/srv/app.py", 20)
    twin = s.function("Worker.run", "/srv/app.py", 20)  # loaded twice
    dumps = s.function("iterencode", "/usr/lib/python3.11/json/encoder.py", 200)
    copy = s.function("memcpy", "/usr/lib/libc.so.6", 0, NATIVE)
    futex = s.function("do_futex", "", 0, KERNEL)
    nameless = s.function("", "/opt/libx.so", 0, NATIVE)
    nasty = [s.function(n, b"/tmp/" + n.replace(b"/", b"") + b".py", 7) for n in NASTY]
    root = s.frame(0, main, 5)
    stacks = [root]
    for w in (work, twin):
        a = s.frame(root, w, 21)
        b = s.frame(a, dumps, 257)
        stacks += [a, b, s.frame(b, copy, 0), s.frame(s.frame(b, copy, 0), futex, 0)]
    again = s.frame(stacks[2], dumps, 258)  # another line of the same function, and a recursion
    stacks += [again, s.frame(0, nameless, 0, offset=0x1234), s.frame(s.frame(0, 0, 0, CUT), work, 22), s.frame(root, 0, 0, PYTHON)]
    stacks += [s.frame(root, f, 8) for f in nasty]
    deep = 0
    for i in range(300):
        deep = s.frame(deep, main if i % 2 else work, 5 + i % 2)
    stacks.append(deep)
    for i, stack in enumerate(stacks * 3 + [0]):
        pid = (100, 200, 300)[i % 3]
        s.sample(1 + i * 0.01, pid, stack, chance.choice((2004008, 1000000, 3000001)), tid=pid + i % 2)
        s.span("sample_off", 2 + i * 0.01, chance.randrange(1, 9000) * 1000, pid, stack)
        s.span("gil_wait", 3 + i * 0.01, chance.randrange(1, 9000) * 1000, pid, stack, holder=chance.choice(stacks + [0]))
        s.span("test_call", 4 + i * 0.01, 5000, pid, stack, ret=i)
        s.line("test_mark", time=f"@{5 + i * 0.01:.3f}", pid=pid, tid=pid, where=stack, stack=0)
    s.dropped(6, 7000000, 100, stacks[2], stacks[4], 1250000)
    return s, s.write(folder, name)
