#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""--no-args: no event of the trace has a command line, a directory or a cgroup's path."""
import os
import shutil
import subprocess

from puppet import LIBRARY, SONDE, TMP, Puppet, allocs, numbered
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok

SECRET = "hunter2secret"
DIRECTORY = os.path.join(TMP, SECRET)


def path(name):
    return os.path.join(TMP, name)


def unpacked(trace):
    return subprocess.run(["zstd", "-dc", trace], stdout=subprocess.PIPE, check=True).stdout


def record(*options):
    """Records an existing program and one that sonde starts, with secrets in arguments, directories, cwd and environment."""
    os.environ["SONDE_SECRET"] = SECRET
    puppet = Puppet(library=os.path.join(DIRECTORY, "libcudart.so.97"))
    sonde = Sonde(path("t"), "-t", "+sched,syscall,lock,disk,net", "-p", str(puppet.pid), *options, "--", "sh", "-c",
                  f"cd {DIRECTORY}; ./program {SECRET}=1; cat {DIRECTORY}/program >{DIRECTORY}/copy; read x; exit 0; : {SECRET}", stdin=subprocess.PIPE)
    puppet.do("calls 1 5")
    puppet.exec(os.path.join(DIRECTORY, "python3"))
    puppet.do("calls 6 5")
    status = sonde.end(sig=None)  # closes the command's standard input
    puppet.end()
    return puppet.pid, status, sonde.messages


os.mkdir(DIRECTORY)
shutil.copy(LIBRARY, os.path.join(DIRECTORY, "libcudart.so.97"))
shutil.copy("/bin/true", os.path.join(DIRECTORY, "program"))
shutil.copy("/usr/bin/python3", os.path.join(DIRECTORY, "python3"))
pid, status, messages = record()
ok(status == 0 and SECRET.encode() in unpacked(path("t")), "without --no-args the secrets are in the trace", messages)
pid, status, messages = record("--no-args")
ok(status == 0 and SECRET.encode() not in unpacked(path("t")), "with --no-args they are not", messages)
trace = Trace(path("t"))
ok(set(numbered(pid, 1, 5)) <= set(allocs(trace)), "the same events are recorded", allocs(trace))
execs = {str(e["path"]) if not isinstance(e["path"], bytes) else e["path"].decode() for e in trace.events("proc_exec")}
ok("program" in execs and not any("/" in p for p in execs), "paths are reduced to the file's name", execs)
maps = {str(e["path_text"]) for e in trace.events("proc_map")}
ok("libcudart.so.97" in maps and not any("/" in p for p in maps), "paths of libraries too", maps)
objects = {str(e["path_text"]) for e in trace.events("meta_object")}
ok(objects and not any("/" in p for p in objects), "and paths of probed files", objects)
images = list(trace.events("proc_image"))
ok(images and not any(e["command"] or e["cgroup"] for e in images), "no command lines, no cgroup paths", images[:2])
info = subprocess.run([SONDE, "info", path("t")], stdout=subprocess.PIPE, text=True).stdout
ok("--no-args" in info, "info says that the trace was recorded with --no-args", info)

# stacks distinguish the user's code from Python's library by the path
with open(os.path.join(DIRECTORY, "mine.py"), "w") as file:
    file.write("""import json, time
data = list(range(5000))
def work():
    return json.dumps(data, indent=1)
while time.process_time() < 1.5:
    work()
""")
sonde = Sonde(path("t"), "-F", "499", "--no-args", "--", "/usr/bin/python3", "-S", os.path.join(DIRECTORY, "mine.py"))
status = sonde.end(sig=None)
files = {str(e["file_text"]) for e in Trace(path("t")).events("meta_code") if str(e["file_text"]).endswith(".py")}
ok(status == 0 and "mine.py" in files and any(f.startswith("/lib/python3.") and f.endswith("/json/encoder.py") for f in files) and
   SECRET.encode() not in unpacked(path("t")), "files of Python's library keep their path in it", files)
done()
