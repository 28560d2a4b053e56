#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""The C function that `report gil` names for a holder: which samples count for it, and what is said of them."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import stacks_lib
from tap import done, ok

SONDE = os.environ.get("SONDE", "build/sonde")
HELD, NOT_HELD = 1, 2
HOLDER, WAITER = 101, 100


class Trace:
    """encode() holds for the 100 ms from 1 s on while handle() waits, in so many threads."""

    def __init__(self, waiters=1):
        s = self.s = stacks_lib.Stacks()
        self.encode = s.frame(0, s.function("encode", "/srv/app.py", 3), 5)
        handle = s.frame(0, s.function("handle", "/srv/app.py", 20), 22)
        for i in range(waiters):
            s.line("gil_wait", time="@1.1", start="@1", pid=WAITER, tid=WAITER if not i else 200 + i, stack=handle,
                   holder_stack=self.encode, gil=0x1000, result=2, locked=1, holder=HOLDER)
        self.tick = 0

    def native(self, name, file, caller=None):
        return self.s.frame(caller or self.encode, self.s.function(name, file, 0, stacks_lib.NATIVE))

    def samples(self, n, stack, at=1.01, tid=HOLDER, gil=HELD):
        for _ in range(n):
            self.tick += 1
            self.s.line("sample_cpu", time=f"@{at + self.tick / 1e5:.6f}", pid=WAITER, tid=tid, period=10000000, stack=stack, gil=gil)

    def says(self, *options):
        """(the column's value, the finding, the whole report)"""
        with tempfile.TemporaryDirectory() as folder:
            path = self.s.write(folder, "t")
            run = [SONDE, "report", path, "gil", *options]
            text = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
            rows = json.loads(subprocess.run([*run, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
        return rows["tables"]["blame"][0]["native"], text.splitlines()[0], text


# as the recorder writes it; other tests have traces without
for event in stacks_lib.SCHEMA["events"]:
    if event["name"] == "sample_cpu":
        event["fields"].append({"name": "gil", "type": "unsigned", "size": 4, "offset": event["size"]})
        event["size"] += 4

t = Trace()
deflate, crc = t.native("deflate", "/lib/libz.so.1"), t.native("crc32", "/lib/libz.so.1")
t.samples(8, deflate)
t.samples(1, crc)
t.samples(50, crc, at=1.2)
t.samples(50, crc, at=0.9)
t.samples(50, crc, tid=WAITER)
t.samples(50, crc, gil=NOT_HELD)
for options in ((), ("--tid", str(WAITER))):
    native, finding, _ = t.says(*options)
    ok(native == "deflate (libz.so.1)", f"what the holder did while it was waited for counts, nothing else {options}", native)
    ok(", 89% of 9 samples in C: deflate (libz.so.1); affected: app.py:22 handle." in finding,
       "what is shown to be more than half is said in words, with its share", finding)

t = Trace()
t.samples(4, t.native("deflate", "/lib/libz.so.1"))
t.samples(3, t.native("crc32", "/lib/libz.so.1"))
t.samples(3, t.encode)
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)" and " in C: " not in finding, "less than half is in the column alone", (native, finding))

t = Trace()
t.samples(6, t.encode)
t.samples(4, t.native("deflate", "/lib/libz.so.1"))
native, finding, text = t.says()
ok(native is None and " in C: " not in finding and "record -F" not in text, "Python code is no C function", text)

t = Trace()
for i in range(9):
    t.samples(1, t.native(f"libx.so+{i:#x}", "/opt/libx.so"))
t.samples(1, t.native("deflate", "/lib/libz.so.1"))
native, finding, _ = t.says()
ok(native == "libx.so" and " in C: libx.so; " in finding, "addresses without a name are their file's", (native, finding))

t = Trace()
t.samples(5, t.native("python3.11+0x5", "/usr/bin/python3.11"))
native, finding, _ = t.says()
ok(native == "python3.11" and " in C: " not in finding, "a nameless interpreter is not said to be C code", (native, finding))

t = Trace()
t.samples(5, t.native("[vdso]", "", t.native("turns", "/opt/plant.so")))
t.samples(9, t.s.frame(0, 0, 0, stacks_lib.CUT))
t.samples(9, 0)
native, finding, _ = t.says()
ok(native == "turns (plant.so)" and " in C: turns (plant.so);" in finding, "the vdso and unknown stacks do not count",
   (native, finding))

t = Trace()
t.samples(2, t.native("deflate", "/lib/libz.so.1"))
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)" and " in C: " not in finding, "two samples say nothing in words", (native, finding))

t = Trace(waiters=4)
t.samples(1, t.native("getpid", "/lib/libc.so.6"))
native, finding, _ = t.says()
ok(" in C: " not in finding, "one sample is one, however many threads waited just then", (native, finding))

t = Trace()
t.samples(6, t.native("deflate", "/lib/libz.so.1"))
t.samples(4, t.native("crc32", "/lib/libz.so.1"))
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)" and " in C: " not in finding, "six of ten do not show that it was more than half", finding)

t = Trace()
other = t.s.frame(0, t.s.function("log", "/srv/app.py", 40), 41)
t.samples(20, t.native("getpid", "/lib/libc.so.6", other))
t.samples(2, t.encode)
native, finding, _ = t.says()
ok(native is None and " in C: " not in finding, "what its thread did in another function is not the function's", (native, finding))

t = Trace()
burn = t.native("burn_one", "/opt/plant.so", t.native("burn", "/opt/plant.so", t.native("python3.11+0x5", "/usr/bin/python3.11")))
t.samples(20, t.native("__sin_fma", "/lib/libm.so.6", burn))
t.samples(2, burn)
native, finding, _ = t.says()
ok(native == "burn_one (plant.so)" and ", 100% of 22 samples in C: burn_one (plant.so);" in finding,
   "the library that Python called is named, not the one that this calls", (native, finding))

t = Trace()
inside = t.native("_call_function_pointer", "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so")
t.samples(9, t.native("deflate", "/lib/libz.so.1", t.native("ffi_call", "/lib/libffi.so.8", inside)))
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)", "ctypes is passed over: the function that it calls is named", native)

native, finding, text = Trace().says()
ok(native is None and "`sonde record -F 99` names the C function" in text, "without samples it is said how to get it", text)
done()
