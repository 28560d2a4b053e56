#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""doc-tables.py SONDE: prints docs/events.md, from what `sonde list` reads from the BPF object.

`make docs` writes it, tests/e2e/test_docs.py says when it is stale.
"""
import json
import subprocess
import sys

HEAD = """# Families, events and probes

Made from the BPF object by `make docs`; the texts are in the tags of `bpf/core/*.h` and `bpf/probes/*/`.
Every event begins with the fields of `struct event`; a span has `start` too, a call also `ret`.
"""
COMMON = ("time", "pid", "tid", "id", "probe", "cpu", "flags")


def cell(text):
    return str(text if text is not None else "").replace("|", "\\|")


def table(*rows):
    head, *body = rows
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cell(c) for c in row) + " |" for row in body]) + "\n"


def main():
    words = ["families", "events", "fields", "options", "probes"]
    listed = subprocess.run([sys.argv[1], "list", *words, "--format", "json"], stdout=subprocess.PIPE, check=True)
    tables = json.loads(listed.stdout)["tables"]
    fields = {}
    for f in tables["fields"]:
        fields.setdefault(f["event"], []).append(f)
    print(HEAD)
    print("## Common fields\n")
    common = [f for f in fields[tables["events"][0]["name"]] if f["name"] in COMMON]
    print(table(("Field", "Type", "Unit", "What it is"), *((f["name"], f["type"], f["unit"], f["doc"]) for f in common)))
    for family in sorted(tables["families"], key=lambda f: f["id"]):
        print(f"## {family['name']} ({family['id']:#04x})\n\n{family['doc'][0].upper()}{family['doc'][1:]}.\n")
        for o in tables["options"]:
            if o["family"] == family["name"]:
                print(f"`{o['option']}`: {o['doc']}.\n")
        for e in tables["events"]:
            if e["family"] != family["name"]:
                continue
            print(f"### {e['name']} ({e['id']:#06x}, {e['kind']})\n\n{e['doc'][0].upper()}{e['doc'][1:]}.\n")
            own = [f for f in fields[e["name"]] if f["name"] not in COMMON]
            print(table(("Field", "Type", "Unit", "What it is"), *((f["name"], f["type"], f["unit"], f["doc"]) for f in own)))
        probes = [p for p in tables["probes"] if p["family"] == family["name"]]
        if probes:
            functions = sorted({(p["object"] or "kernel", p["function"] or p["section"], p["option"] or "") for p in probes})
            print("### Probes of " + family["name"] + "\n")
            print(table(("Where", "What", "Only with"), *((o, f"`{f}`", w) for o, f, w in functions)))


main()
