# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that watches a folder by inotify and reads all its settings again at each event, while another process touches files there."""
import ctypes
import glob
import json
import os
import sys
import time

from lib import incident

MANIFEST = {
    "title": "settings read again at each inotify event",
    "cause": "CPU",
    "words": [["CPU", "comput"]],
    "clock": "reloads",
    "packages": [],
}
reloads = incident.Clock("reloads")
IN_CLOSE_WRITE, IN_MOVED_TO = 8, 0x80


def read_settings(path):
    with reloads:
        settings = {}
        for file in glob.glob(path + "/*.json"):
            with open(file) as f:
                settings[file] = json.load(f)  # cause
        return settings


def watch(path):
    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(0)
    libc.inotify_add_watch(fd, path.encode(), IN_CLOSE_WRITE | IN_MOVED_TO)
    while os.read(fd, 4096):
        read_settings(path)


def main():
    if sys.argv[1:]:
        print(flush=True)
        while True:
            with open(sys.argv[1] + "/heartbeat", "w") as f:
                f.write("alive")
            time.sleep(0.01)
    path = incident.folder()
    for number in range(20):
        with open(f"{path}/{number}.json", "w") as f:
            json.dump({f"key{n}": {"value": n, "names": ["a", "b", "c"]} for n in range(150)}, f)
    incident.in_background(watch, path)
    incident.again(os.path.abspath(__file__), path)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
