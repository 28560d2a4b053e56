# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs functions whose files are those of the command line, by their names alone, each for a while. later.py is changed after this program's
start; forked.py, too, and then runs in a process that was forked from it.
"""
import os
import sys
import time

TEXT = """
def busy():
    end = time.process_time() + 0.25
    while time.process_time() < end: pass
"""

folder = sys.argv[1]
input()
for name in ("later.py", "forked.py"):
    with open(os.path.join(folder, name), "a", encoding="ascii") as f:
        f.write("# changed\n")
time.sleep(0.1)
for path in sys.argv[2:]:
    space = {"time": time}
    exec(compile(TEXT.replace("busy", "busy_" + path.rsplit("/", 1)[-1].split(".")[0].strip("<>")), path, "exec"), space)  # pylint: disable=exec-used
    busy = next(v for k, v in space.items() if k.startswith("busy_"))
    child = os.fork() if path.endswith("forked.py") else 0
    if not child:
        busy()
        if path.endswith("forked.py"):
            time.sleep(0.5)
            os._exit(0)
    else:
        os.waitpid(child, 0)
time.sleep(0.5)
