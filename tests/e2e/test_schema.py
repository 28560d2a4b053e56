#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Old traces must stay readable, so ids, fields and their places keep their meaning: each family's events and fields
as `sonde list` gives them, against tests/probes/FAMILY/schema.golden. What is new is a failure too, until
`tests/e2e/test_schema.py --update` has written it down; lines that the update changes or takes away break old traces.
test: parallel"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import done, ok

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))


def by_family():
    """{family: [line]}: an event a line, and a line a field."""
    listed = subprocess.run([SONDE, "list", "families", "events", "fields", "--format", "json"],
                            stdout=subprocess.PIPE, check=True).stdout
    tables = json.loads(listed)["tables"]
    family_of = {e["name"]: e["family"] for e in tables["events"]}
    lines = {f["name"]: [f"family {f['id']:#04x}"] for f in tables["families"]}
    for e in tables["events"]:
        lines[e["family"]].append(f"{e['name']} {e['id']:#06x} {e['kind']}")
    for f in tables["fields"]:
        lines[family_of[f["event"]]].append(
            f"{f['event']}.{f['name']} {f['type']} {f['bytes']} at {f['offset_bytes']} {f['unit'] or ''}".rstrip())
    return lines


def main():
    for family, lines in sorted(by_family().items()):
        path = os.path.join(ROOT, "tests", "probes", family, "schema.golden")
        if "--update" in sys.argv:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write("".join(line + "\n" for line in lines))
            continue
        golden = open(path).read().splitlines() if os.path.exists(path) else []
        lost, new = [line for line in golden if line not in lines], [line for line in lines if line not in golden]
        ok(not lost and not new, f"the events of {family} are those of schema.golden", *(f"changed or gone: {line}" for line in lost),
           *(f"not in {os.path.relpath(path, ROOT)}: {line}" for line in new))


main()
done()
