#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Old traces must stay readable, so ids, fields and their order must not change: compares each family's events and fields in
`sonde list` with tests/probes/FAMILY/schema.golden. Additions fail too, until `tests/e2e/test_schema.py --update` has
stored them; lines that the update changes or removes break old traces.
test: parallel gate"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# --update is used without tests/run, which sets PYTHONPATH
sys.path.append(os.path.join(ROOT, "tests/lib"))
from sonde_cli import tables  # noqa: E402
from tap import done, ok  # noqa: E402


def by_family():
    """{family: [line]}, with one line per event and one per field."""
    listed = tables("list", "families", "events", "fields")
    family_of = {e["name"]: e["family"] for e in listed["events"]}
    lines = {f["name"]: [f"family {f['id']:#04x}"] for f in listed["families"]}
    for e in listed["events"]:
        lines[e["family"]].append(f"{e['name']} {e['id']:#06x} {e['kind']}")
    for f in listed["fields"]:
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
