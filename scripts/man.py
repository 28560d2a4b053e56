#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""man.py SONDE DIR: writes sonde-COMMAND.1 for each command into DIR, from its --help: one source for both."""
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
    """(name, one line on it)"""
    found = []
    for line in say(sonde, "--help").splitlines():
        m = re.match(r"  (\w+) +(\S.*)", line)
        if m and subprocess.run([sonde, m[1], "--help"], capture_output=True).returncode == 0:
            found.append((m[1], m[2]))
    return found


def blocks(text):
    """Paragraphs, as lists of lines."""
    return [block.splitlines() for block in re.split(r"\n\s*\n", text.strip("\n"))]


def entries(lines):
    """Lines of two columns as (term, text); what is deeper is continued."""
    found = []
    for line in lines:
        m = re.match(r"^ {2,6}(\S.*?)(?: {2,}(\S.*))?$", line)
        deeper = found and re.match(r"^ {12,}\S", line)
        if deeper or not m:
            found[-1][1].append(line.strip())
        else:
            found.append((m[1], [m[2]] if m[2] else []))
    return found


def page(name, doc, text):
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
    out += [".SH SEE ALSO", ".BR sonde (1)"]
    return "\n".join(out) + "\n"


def main():
    sonde, directory = sys.argv[1:3]
    os.makedirs(directory, exist_ok=True)
    for name, doc in commands(sonde):
        with open(os.path.join(directory, f"sonde-{name}.1"), "w") as f:
            f.write(page(name, doc, say(sonde, name, "--help")))


main()
