#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""What processes are called, by their kernel names, command lines and programs, as docs/reading-a-trace.md states."""
import json
import os

from sonde_cli import ROOT, make_trace, tables
from tap import done, ok

PYTHON, UWSGI = "/usr/bin/python3.11", "/opt/v/bin/uwsgi"
CASES = (  # the kernel's name, program, command line, the right name
    ("python3", PYTHON, "python3 -u /opt/srv.py --port 80", "srv.py"),
    ("python3", PYTHON, "'/home/my files/bin/python3' -W ignore -Xutf8 '/srv/my app.py'", "my app.py"),
    ("my python", PYTHON, "'/home/my files/bin/my python' -m pkg.mod", "pkg.mod"),
    ("python3", PYTHON, "python3 -um pip install x==1 --user", "pip"),
    ("python3", PYTHON, "python3 -Omhttp.server 8000", "http.server"),
    ("python3", PYTHON, "python3 -c 'import x' y.py", "python3"),
    ("python3", PYTHON, "python3 - y.py", "python3"),
    ("python3", PYTHON, "", "python3"),
    ("celery", PYTHON, "/v/bin/python3 /v/bin/celery -A app worker -b redis://u:pw@h -c 2", "celery worker"),
    ("serve", PYTHON, "/v/bin/python3 /v/bin/serve start --token s3cret", "serve start"),
    ("train.py", PYTHON, "/usr/bin/python3 ./train.py --lr 1 fast", "train.py"),
    ("uwsgi", UWSGI, "uwsgi --http :80 --wsgi-file /srv/app.py --master", "uwsgi app.py"),
    ("uwsgi", UWSGI, "uwsgi --ini " + "x" * 40, "uwsgi"),
    ("worker-7", PYTHON, "/usr/bin/python3 /opt/srv.py", "worker-7"),
    ("gunicorn: worke", PYTHON, "gunicorn: worker [app:app]", "gunicorn: worker [app:app]"),
    ("sh", "/usr/bin/dash", "sh -e /opt/run.sh now", "run.sh"),
    ("sh", "/usr/bin/dash", "sh -ec 'exit 1'", "sh"),
    ("python3", PYTHON, "python3 -X dev -u --check-hash-based-pycs never srv.py x", "srv.py"),
    ("node", "/usr/bin/node", "node -r fs --max-old-space-size=99 /srv/app.js", "app.js"),
    ("node", "/usr/bin/node", "node -e 'for(;;) f()'", "node"),
    ("perl", "/usr/bin/perl", "perl -w -Mstrict -ne 'print 1'", "perl"),
    ("perl", "/usr/bin/perl", "perl -w /srv/run.pl x", "run.pl"),
    ("java", "/usr/bin/java", "java -cp /srv/lib -Xmx1g Main", "Main"),
    ("make", "/usr/bin/make", "make -j all", "make"),
)

lines = []
for pid, (comm, exe, command, _) in enumerate(CASES, 100):
    lines += [f'proc_task time=@0 pid={pid} tid={pid} ppid=1 comm="{comm}"',
              f'proc_image time=@0 pid={pid} tid={pid} exe="{exe}" command="{command}"']
    if exe == UWSGI:
        lines.append(f'proc_python time=@1 pid={pid} tid={pid} library="/usr/lib/python3.11" script=""')
with open(f"{ROOT}/tests/golden/schema.json", encoding="utf-8") as f:
    schema = json.load(f)
# proc_python has the layout that proc_image had in that schema
image = next(e for e in schema["events"] if e["name"] == "proc_image")
fields = [{**field, "name": {"exe": "library", "command": "script"}.get(field["name"], field["name"])} for field in image["fields"]]
schema["events"].append({**image, "id": 0x010a, "name": "proc_python", "fields": fields})
path = make_trace(os.path.join(os.environ["TMPDIR"], "names"), lines + ["meta_end time=@8 reason=END_SIGNAL"], schema)
names = {r["pid"]: r["name"] for r in tables("report", path, "processes")["processes"]}
for pid, (comm, _, command, right) in enumerate(CASES, 100):
    ok(names[pid] == right, f"{comm}: {command}", names[pid])
done()
