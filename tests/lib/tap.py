# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a test prints: a line of TAP for each check, and at the end how many checks there were."""
import sys

SHORT = 200  # bytes: a detail of one line up to this is a figure, and is printed of a check that passes, too
LONG = 3000  # bytes of a longer detail that are printed where a check fails
checks = failed = 0


def ok(passed, name, *details):
    """Prints the result of a check, and returns whether it passed. Long details are printed where it failed."""
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
    """A check that this machine cannot make, and the reason."""
    global checks
    checks += 1
    print(f"ok {checks} - {name} # SKIP {' '.join(str(why).split())}", flush=True)


def note(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def done():
    """Ends the test."""
    print(f"1..{checks}", flush=True)
    sys.exit(failed > 0)


def skip_all(why):
    """Ends a test that this machine cannot run."""
    skip("everything", why)
    done()
