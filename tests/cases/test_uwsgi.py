#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: right | uWSGI: its threads take turns to accept, so that all but one wait for a lock |
"""Without requests the server is idle: the holder of the lock is, so those that wait for it are, too. With requests the first line is what computes."""
import re
import subprocess
import time

from case import finish, record, say, script, start
from tap import ok

SERVER = script("server.py", """import ctypes, socket, threading, time
c = ctypes.CDLL(None); m = ctypes.create_string_buffer(64)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(64)
def slow():
    end = time.thread_time() + .1; x = 0
    while time.thread_time() < end:
        for _ in range(1000): x = (x * 31 + 7) % 1000003
def serve():
    while True:
        c.pthread_mutex_lock(m)
        try:
            connection = s.accept()[0]
        finally:
            c.pthread_mutex_unlock(m)
        slow()
        connection.close()
for _ in range(4): threading.Thread(target=serve, daemon=True).start()
print("port", s.getsockname()[1], flush=True)
time.sleep(900)
""")
CLIENT = script("client.py", """import socket, sys
while True:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s: s.recv(1)
""")

server = start("/usr/bin/python3", SERVER, until="port")
time.sleep(0.5)
said = say("report", record("-d", "2", "-p", server.pid, name="idle"))
rows = re.findall(r"^ *\d+  server.py  (\S+) ", said, re.M)
ok("for a lock" not in said and rows and set(rows) <= {"idle"}, "without requests", said)
for _ in range(3):
    start("/usr/bin/python3", CLIENT, server.lines[0].split()[1], stderr=subprocess.DEVNULL)
time.sleep(0.5)
said = say("report", record("-d", "3", "-p", server.pid, name="busy"))
ok("for a lock" not in said.split("\n\n")[0] and "slow (server.py:" in said.splitlines()[0], "with requests", said)
finish()
