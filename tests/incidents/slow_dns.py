# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A job that looks up the name of a service for each request, at a resolver that answers slowly."""
import os
import socket
import struct
import subprocess
import sys
import threading
import time

from lib import incident

MANIFEST = {
    "title": "a name is resolved for each request, slowly",
    "cause": "DNS",
    "words": [["DNS", "resolv", "name lookup", "getaddrinfo", "port 53", "127.77.0.53:53"]],
    "clock": "lookups",
    "packages": ["requests"],
    "programs": ["unshare", "mount"],
}
RESOLVER = "127.77.0.53"
lookups = incident.Clock("lookups")


def fetch_rates(port):
    with lookups:
        return requests.get(f"http://rates.example:{port}/today", timeout=10).text  # cause


def fetch_forever(port, conf):
    """Runs in a mount namespace of its own, where /etc/resolv.conf names the slow resolver."""
    global requests
    import requests
    subprocess.run(["mount", "--bind", conf, "/etc/resolv.conf"], check=True)
    while True:
        fetch_rates(port)
        sum(range(100_000))


def resolver():
    """Answers each question for an IPv4 address with 127.0.0.1 after 80 ms."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((RESOLVER, 53))
    print(flush=True)
    while True:
        question, client = server.recvfrom(4096)
        threading.Thread(target=answer, args=(server, question, client), daemon=True).start()


def answer(server, question, client):
    end = question.index(b"\0", 12) + 5
    is_ipv4 = question[end - 4:end - 2] == b"\0\1"
    record = struct.pack("!HHHIH4B", 0xc00c, 1, 1, 0, 4, 127, 0, 0, 1) if is_ipv4 else b""
    time.sleep(0.08)
    server.sendto(question[:2] + struct.pack("!HHHHH", 0x8180, 1, is_ipv4, 0, 0) + question[12:end] + record, client)


def main():
    if sys.argv[1:] == ["resolver"]:
        resolver()
    if sys.argv[1:]:
        fetch_forever(int(sys.argv[1]), sys.argv[2])
    conf = os.path.join(incident.folder(), "resolv.conf")
    incident.write(conf, f"nameserver {RESOLVER}\n")
    incident.clocks_folder()
    incident.again(os.path.abspath(__file__), "resolver")
    incident.start("unshare", "-m", sys.executable, os.path.abspath(__file__), incident.slow_server(0), conf)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
