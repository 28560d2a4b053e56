# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An importer that reads its file byte by byte with os.read, a system call for each byte."""
import os

from lib import incident

MANIFEST = {
    "title": "a file read byte by byte",
    "cause": "system calls",
    "words": [["system call", "syscall", "kernel", "CPU", "comput", "read"]],
    "must": "cause",
    "clock": "reads",
    "packages": [],
}
reads = incident.Clock("reads")


def next_line(fd):
    line = bytearray()
    while (byte := os.read(fd, 1)) not in (b"", b"\n"):  # cause
        line += byte
    return line.decode()


def import_file(path):
    fd, rows = os.open(path, os.O_RDONLY), []
    with reads:
        while line := next_line(fd):
            rows.append(line.split(","))
    os.close(fd)
    return rows


def import_forever(path):
    while True:
        import_file(path)


def main():
    path = incident.folder() + "/rows.csv"
    incident.write(path, "".join(f"{n},article {n},{n / 7}\n" for n in range(5000)))
    incident.in_background(import_forever, path)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
