# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that logs each request to its stdout, whose reader, a log shipper, reads slowly."""
import subprocess
import sys

from lib import incident

MANIFEST = {
    "title": "stdout to a slow reader of the pipe",
    "cause": "pipe",
    "words": [["pipe", "stdout", "reader", "write"]],
    "clock": "writes",
    "packages": [],
}
writes = incident.Clock("writes")


def log_request(number):
    with writes:
        sys.stdout.write(f"GET /item/{number} 200 {'-' * 900}\n")  # cause
        sys.stdout.flush()  # cause


def handle():
    number = 0
    while True:
        number += 1
        sum(range(20_000))
        log_request(number)


def main():
    if sys.argv[1:] == ["service"]:
        print(file=sys.stderr, flush=True)
        handle()
    shipper = incident.start(incident.build("lib/peer.c"), "drain", 2000, 50, stdin=subprocess.PIPE)
    incident.start(sys.executable, __file__, "service", stdout=shipper.stdin, stderr=subprocess.PIPE).stderr.readline()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
