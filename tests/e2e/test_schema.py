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
    failed = False
    for number, (family, lines) in enumerate(sorted(by_family().items()), 1):
        path = os.path.join(ROOT, "tests", "probes", family, "schema.golden")
        if "--update" in sys.argv:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write("".join(l + "\n" for l in lines))
            continue
        golden = open(path).read().splitlines() if os.path.exists(path) else []
        lost, new = [l for l in golden if l not in lines], [l for l in lines if l not in golden]
        for l in lost:
            print(f"# changed or gone: {l}")
        for l in new:
            print(f"# not in {os.path.relpath(path, ROOT)}: {l}")
        failed |= bool(lost or new)
        print(f"{'not ok' if lost or new else 'ok'} {number} - the events of {family} are those of schema.golden")
    return failed


sys.exit(main())
