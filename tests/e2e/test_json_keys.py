#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""docs/json.md lists every key of every report's JSON with its type."""
import json
import os
import re
import subprocess
import tempfile

from puppet import ROOT, SONDE
from tap import done, ok

GOLDEN = os.path.join(ROOT, "tests/golden")
MAKE_TRACE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "tests/golden/make_trace")
TRACES = ("run", "os", "gpu", "nccl", "disk", "convoy")
TYPES = {bool: {"boolean"}, int: {"integer", "number"}, float: {"number"}, str: {"text"}}


def documented():
    """({key: types} of the object, {key: types} of rows)"""
    with open(os.path.join(ROOT, "docs/json.md")) as f:
        parts = f.read().split("## Rows and figures")
    return [{m[1]: set(m[2].split(", ")) for m in re.finditer(r"^\| `(\w+)` \| ([^|]*) \|", part, re.M)} for part in parts]


def make(name, folder):
    events, path = os.path.join(GOLDEN, name + ".events"), os.path.join(folder, name + ".sonde")
    with open(events) as f:
        named = re.search(r"^# schema: (.*)$", f.read(), re.M)
    schema = os.path.join(GOLDEN, named[1] if named else name + ".schema.json")
    schema = schema if os.path.exists(schema) else os.path.join(GOLDEN, "schema.json")
    subprocess.run([MAKE_TRACE, schema, events, path], check=True, cwd=GOLDEN)
    return path


def faults(output, keys):
    """The keys and types that are in neither table of the page. Values within `tables` and `figures` have keys of rows, all others keys of
    the object."""
    of_object, of_rows = keys
    found = []

    def row(r, where):
        for key, value in r.items():
            if key not in of_rows:
                found.append(f"{where}: no such key {key}")
            elif value is not None and not TYPES[type(value)] & of_rows[key]:
                found.append(f"{where}: {key} is {value!r}, not {of_rows[key]}")

    def member(o, where):
        for key, value in o.items():
            if key not in of_object:
                found.append(f"{where}: no such key {key}")
            if key == "tables":
                for name, rows in value.items():
                    for r in rows:
                        row(r, f"{where} {name}")
            elif key == "figures":
                row(value, where + " figures")
            elif isinstance(value, dict):
                member(value, f"{where} {key}")
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, dict):
                        member(item, f"{where} {key}")

    member(output, output["report"])
    return found


def run(*argv):
    out = subprocess.run([SONDE, *argv, "--format", "json"], capture_output=True, text=True)
    return json.loads(out.stdout) if out.stdout else None


def main():
    keys = documented()
    ok(all(len(k) > 30 for k in keys), "docs/json.md has both tables", [len(k) for k in keys])
    reports = [r["name"] for r in run("list", "reports")["tables"]["reports"]]
    with tempfile.TemporaryDirectory() as folder:
        for name in TRACES:
            path = make(name, folder)
            found = set()
            printed = [o for o in (run("report", path, r) for r in reports) if o]
            for output in [*printed, run("info", path)]:
                found.update(faults(output, keys))
            ok(len(printed) == len(reports) and not found, f"keys of all reports of {name}", "\n".join(sorted(found)))
    lists = ["reports", "formats", "families", "events", "fields", "options", "probes"]
    ok(not faults(run("list", *lists), keys), "keys of sonde list")
    strange = {"report": "x", "tables": {"t": [{"med_ns": 1, "pid": "1"}]}}
    ok(len(faults(strange, keys)) == 2, "the check finds a key or type that the page lacks", faults(strange, keys))
    done()


main()
