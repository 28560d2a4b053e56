# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints the TAP output of a test: one line per check, and the plan at the end."""
import sys

SHORT = 200  # a one-line detail of fewer characters is printed even if the check passes
LONG = 3000  # a failed check prints this many characters of the end of each detail
checks = failed = 0


def ok(passed, name, *details):
    """Prints the result of a check and returns it. Long details are printed only if the check failed."""
    global checks, failed
    checks += 1
    failed += not passed
    print(f"{'ok' if passed else 'not ok'} {checks} - {name}")
    for text in map(str, details):
        if text and (not passed or (len(text) < SHORT and "\n" not in text)):
            note(text[-LONG:])
    sys.stdout.flush()
    return passed


def skip(name, why):
    """Reports a check that this machine cannot make, and the reason."""
    global checks
    checks += 1
    print(f"ok {checks} - {name} # SKIP {' '.join(str(why).split())}", flush=True)


def note(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def done():
    """Prints the plan and ends the test."""
    print(f"1..{checks}", flush=True)
    sys.exit(failed > 0)


def skip_all(why):
    """Skips the whole test, for a reason."""
    skip("everything", why)
    done()
