# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads the findings that a report begins with: a headline, and indented lines below it; and the lines of losses at its end."""
import re


def unwrapped(text):
    """The lines of losses and warnings that a report ends with, each in one line again"""
    return re.sub(r"\n  (?=\S)", " ", text)


def cards(text):
    """[[headline, line, ..], ..]; a line of 120 columns goes on with two more blanks"""
    found = []
    for line in text.split("\n\n")[0].splitlines():
        blanks = len(line) - len(line.lstrip(" "))
        if blanks == 4:
            found[-1].append(line.strip())
        elif blanks:
            found[-1][-1] += " " + line.strip()
        else:
            found.append([line])
    return found


def card_of(finding):
    """The same of a finding in JSON"""
    if "headline" not in finding:
        return [finding["text"]]
    shown = finding["evidence"]
    if len(shown) > 3:
        shown = [*shown[:2], "; ".join(shown[2:])]
    has_next = finding["text"].endswith(f" Next: `{finding['next']}`.")
    return [finding["headline"], *shown, *([f"Next: `{finding['next']}`."] if has_next else [])]
