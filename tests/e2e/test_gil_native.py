#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""The C function that `report gil` names for a GIL holder: which samples count, and the text of the finding."""
import json
import os
import subprocess
import tempfile

import stacks_lib
from cards import cards
from tap import done, ok

SONDE = os.environ.get("SONDE", "build/test/sonde")
HELD, NOT_HELD = 1, 2
HOLDER, WAITER = 101, 100


class Trace:
    """encode() holds the GIL for 100 ms, beginning at 1 s, while handle() waits in the given number of threads."""

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
        """(value of the column, the finding, the whole report)"""
        with tempfile.TemporaryDirectory() as folder:
            path = self.s.write(folder, "t")
            run = [SONDE, "report", path, "gil", *options]
            text = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
            rows = json.loads(subprocess.run([*run, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
        return rows["tables"]["blame"][0]["native"], cards(text)[0][0], text


# sonde record writes the field `gil` of samples, which the schema that the tests share lacks
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
    ok(native == "deflate (libz.so.1)", f"only samples of the holder during a wait count {options}", native)
    ok(", 89% of 9 samples in C: deflate (libz.so.1); affected: app.py:22 handle." in finding,
       "a share significantly above half is in the finding's text", finding)

t = Trace()
t.samples(4, t.native("deflate", "/lib/libz.so.1"))
t.samples(3, t.native("crc32", "/lib/libz.so.1"))
t.samples(3, t.encode)
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)" and " in C: " not in finding, "a share below half is only in the column", (native, finding))

t = Trace()
t.samples(6, t.encode)
t.samples(4, t.native("deflate", "/lib/libz.so.1"))
native, finding, text = t.says()
ok(native is None and " in C: " not in finding and "record -F" not in text, "samples of Python code name no C function", text)

t = Trace()
for i in range(9):
    t.samples(1, t.native(f"libx.so+{i:#x}", "/opt/libx.so"))
t.samples(1, t.native("deflate", "/lib/libz.so.1"))
native, finding, _ = t.says()
ok(native == "libx.so" and " in C: libx.so; " in finding, "addresses without a symbol are named by their file", (native, finding))

t = Trace()
t.samples(5, t.native("python3.11+0x5", "/usr/bin/python3.11"))
native, finding, _ = t.says()
ok(native == "python3.11" and " in C: " not in finding, "an interpreter without symbols is not named as C code", (native, finding))

t = Trace()
t.samples(5, t.native("[vdso]", "", t.native("turns", "/opt/plant.so")))
t.samples(9, t.s.frame(0, 0, 0, stacks_lib.CUT))
t.samples(9, 0)
native, finding, _ = t.says()
ok(native == "turns (plant.so)" and " in C: turns (plant.so);" in finding, "samples in the vdso and with unknown stacks do not count",
   (native, finding))

t = Trace()
t.samples(2, t.native("deflate", "/lib/libz.so.1"))
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)" and " in C: " not in finding, "two samples are too few for the text", (native, finding))

t = Trace(waiters=4)
t.samples(1, t.native("getpid", "/lib/libc.so.6"))
native, finding, _ = t.says()
ok(" in C: " not in finding, "one sample counts once, regardless of the number of waiters", (native, finding))

t = Trace()
t.samples(6, t.native("deflate", "/lib/libz.so.1"))
t.samples(4, t.native("crc32", "/lib/libz.so.1"))
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)" and " in C: " not in finding, "six of ten samples are not significantly more than half", finding)

t = Trace()
other = t.s.frame(0, t.s.function("log", "/srv/app.py", 40), 41)
t.samples(20, t.native("getpid", "/lib/libc.so.6", other))
t.samples(2, t.encode)
native, finding, _ = t.says()
ok(native is None and " in C: " not in finding, "samples of the thread in another Python function do not count", (native, finding))

t = Trace()
burn = t.native("burn_one", "/opt/plant.so", t.native("burn", "/opt/plant.so", t.native("python3.11+0x5", "/usr/bin/python3.11")))
t.samples(20, t.native("__sin_fma", "/lib/libm.so.6", burn))
t.samples(2, burn)
native, finding, _ = t.says()
ok(native == "burn_one (plant.so)" and ", 100% of 22 samples in C: burn_one (plant.so);" in finding,
   "the library that Python calls is named, not one that it calls in turn", (native, finding))

t = Trace()
inside = t.native("_call_function_pointer", "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so")
t.samples(9, t.native("deflate", "/lib/libz.so.1", t.native("ffi_call", "/lib/libffi.so.8", inside)))
native, finding, _ = t.says()
ok(native == "deflate (libz.so.1)", "ctypes is skipped: the function that it calls is named", native)

native, finding, text = Trace().says()
ok(native is None and "`sonde record -F 99` names the C function" in text, "without samples the report names the flag that adds them", text)
done()
