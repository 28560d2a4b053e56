#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""--no-args: no command line, no directory and no cgroup's path in the trace, wherever it comes from."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from puppet import LIBRARY, SONDE, TMP, Puppet, Sonde, allocs, numbered
from sonde_trace import Trace
from tap import done, ok

SECRET = "hunter2secret"
DIRECTORY = os.path.join(TMP, SECRET)


def path(name):
    return os.path.join(TMP, name)


def unpacked(trace):
    return subprocess.run(["zstd", "-dc", trace], stdout=subprocess.PIPE, check=True).stdout


def record(*options):
    """A program that was there before and one that sonde starts: secrets in arguments, directories, cwd, environment."""
    os.environ["SONDE_SECRET"] = SECRET
    puppet = Puppet(library=os.path.join(DIRECTORY, "libcudart.so.97"))
    sonde = Sonde(path("t"), "-t", "+sched,syscall,lock,disk,net", "-p", str(puppet.pid), *options, "--", "sh", "-c",
                  f"cd {DIRECTORY}; ./program {SECRET}=1; cat {DIRECTORY}/program >{DIRECTORY}/copy; sleep 0.3; exit 0; : {SECRET}")
    puppet.do("calls 1 5")
    puppet.exec(os.path.join(DIRECTORY, "python3"))
    puppet.do("calls 6 5")
    status = sonde.end(sig=None)
    puppet.end()
    return puppet.pid, status, sonde.messages


os.mkdir(DIRECTORY)
shutil.copy(LIBRARY, os.path.join(DIRECTORY, "libcudart.so.97"))
shutil.copy("/bin/true", os.path.join(DIRECTORY, "program"))
shutil.copy("/usr/bin/python3", os.path.join(DIRECTORY, "python3"))
pid, status, messages = record()
ok(status == 0 and SECRET.encode() in unpacked(path("t")), "without it they are in the trace", messages)
pid, status, messages = record("--no-args")
ok(status == 0 and SECRET.encode() not in unpacked(path("t")), "with it they are not", messages)
trace = Trace(path("t"))
ok(set(numbered(pid, 1, 5)) <= set(allocs(trace)), "what is traced is the same", allocs(trace))
execs = {str(e["path"]) if not isinstance(e["path"], bytes) else e["path"].decode() for e in trace.events("proc_exec")}
ok("program" in execs and not any("/" in p for p in execs), "of paths the file's name is left", execs)
maps = {str(e["path_text"]) for e in trace.events("proc_map")}
ok("libcudart.so.97" in maps and not any("/" in p for p in maps), "of libraries too", maps)
objects = {str(e["path_text"]) for e in trace.events("meta_object")}
ok(objects and not any("/" in p for p in objects), "and of what was probed", objects)
ok(not any(e["command"] or e["cgroup"] for e in trace.events("proc_image")), "no command lines, no cgroup paths")
info = subprocess.run([SONDE, "info", path("t")], stdout=subprocess.PIPE, text=True).stdout
ok("--no-args" in info, "info says that it was recorded so", info)

# stacks: the user's own code is distinguished from Python's library by the path
with open(os.path.join(DIRECTORY, "mine.py"), "w") as file:
    file.write("""import json, time
data = list(range(5000))
def work():
    return json.dumps(data, indent=1)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    work()
""")
sonde = Sonde(path("t"), "-F", "499", "--no-args", "--", "/usr/bin/python3", "-S", os.path.join(DIRECTORY, "mine.py"))
status = sonde.end(sig=None)
files = {str(e["file_text"]) for e in Trace(path("t")).events("meta_code") if str(e["file_text"]).endswith(".py")}
ok(status == 0 and "mine.py" in files and any(f.startswith("/lib/python3.") and f.endswith("/json/encoder.py") for f in files) and
   SECRET.encode() not in unpacked(path("t")), "of Python's own library it is kept where in it", files)
done()
