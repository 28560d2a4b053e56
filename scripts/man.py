#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""man.py SONDE DIR: writes DIR/sonde-COMMAND.1 for each command, generated from its --help.

Options of families and other lists come from `sonde list`.
"""
import json
import os
import re
import subprocess
import sys


def say(sonde, *args):
    return subprocess.run([sonde, *args], capture_output=True, text=True, check=True).stdout


def quote(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def commands(sonde):
    """[(command, one-line description)]"""
    found = []
    for line in say(sonde, "--help").splitlines():
        m = re.match(r"  (\w+) +(\S.*)", line)
        if m and subprocess.run([sonde, m[1], "--help"], capture_output=True).returncode == 0:
            found.append((m[1], m[2]))
    return found


def blocks(text):
    """The paragraphs of a text, as lists of lines"""
    return [block.splitlines() for block in re.split(r"\n\s*\n", text.strip("\n"))]


def entries(lines):
    """[(term, text)] from lines of two columns; a line with deeper indentation continues a text."""
    found = []
    for line in lines:
        m = re.match(r"^ {2,6}(\S.*?)(?: {2,}(\S.*))?$", line)
        deeper = found and re.match(r"^ {12,}\S", line)
        if deeper or not m:
            found[-1][1].append(line.strip())
        else:
            found.append((m[1], [m[2]] if m[2] else []))
    return found


def listed(sonde, what):
    return json.loads(say(sonde, "list", what, "--format", "json"))["tables"][what]


def terms(heading, rows):
    """A section with a list of terms and their texts"""
    out = [".SH " + heading]
    for term, text in rows:
        out += [".TP", ".B " + quote(term), quote(text)]
    return out


def tables(sonde, name):
    """The sections of a command's page that come from `sonde list`"""
    if name == "record":
        families = [(f["name"], f["doc"] + (" (by default)" if f["lean"] == "yes" else " (by default, not in lean)" if f["default"] == "yes" else ""))
                    for f in listed(sonde, "families") if f["id"]]
        options = [(o["option"], o["doc"]) for o in listed(sonde, "options")]
        return terms("FAMILIES", families) + terms("OPTIONS OF FAMILIES", options)
    if name == "report":
        return terms("REPORTS", [(r["name"], r["doc"]) for r in listed(sonde, "reports")])
    if name == "export":
        return terms("FORMATS", [(f["name"], f["doc"]) for f in listed(sonde, "formats")])
    return []


def page(name, doc, text, lists):
    usage, *rest = blocks(text)
    out = [f'.TH SONDE\\-{name.upper()} 1 "" sonde "sonde manual"', ".SH NAME",
           f"sonde\\-{name} \\- {quote(doc)}", ".SH SYNOPSIS", ".nf"]
    out += [quote(re.sub(r"(?i)^usage: ", "", line).strip()) for line in usage] + [".fi", ".SH DESCRIPTION"]
    for block in rest:
        head = block[0].rstrip(":").lower()
        if head == "examples":
            out += [".SH EXAMPLES", ".nf"] + [quote(line[2:]) for line in block[1:]] + [".fi"]
        elif block[0].lower().startswith("exit status"):
            out += [".SH EXIT STATUS", quote(" ".join(" ".join(block).split(":", 1)[1].split()))]
        elif all(line.startswith("  ") for line in block):
            for term, texts in entries(block):
                out += [".TP", ".B " + quote(term)] + [quote(" ".join(texts))]
        else:
            out += [".PP"] + [quote(line) for line in block]
    out += lists + [".SH SEE ALSO", ".BR sonde (1)"]
    return "\n".join(out) + "\n"


def main():
    sonde, directory = sys.argv[1:3]
    os.makedirs(directory, exist_ok=True)
    for name, doc in commands(sonde):
        with open(os.path.join(directory, f"sonde-{name}.1"), "w") as f:
            f.write(page(name, doc, say(sonde, name, "--help"), tables(sonde, name)))


main()
