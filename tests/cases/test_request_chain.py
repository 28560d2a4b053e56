#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate timeout=180
# case: right | three services, each of which asks the next one over TCP; only the last one computes |
"""A wait for an answer over TCP leads to the thread that sent it, and to what that thread did, over two hops and in a forked worker."""
import csv
import io
import time

from case import finish, record, run, say, script, start
from tap import ok

SERVICE = script("service.py", """import os, socket, sys, threading, time
ahead = socket.create_connection(("127.0.0.1", int(sys.argv[1]))) if len(sys.argv) > 1 else None
def count_stock():
    return sum(i * i for i in range(600000))
def ask_next(request):
    ahead.sendall(request)
    return ahead.recv(64)
def answer(c):
    while True:
        request = c.recv(64)
        if not request:
            return
        if ahead: ask_next(request)
        else: count_stock()
        c.sendall(b"done")
s = socket.socket()
for port in range(20000 + os.getpid() % 9000, 32000):
    try:
        s.bind(("127.0.0.1", port))
        break
    except OSError: pass
s.listen()
print("port", s.getsockname()[1], flush=True)
if not ahead and os.fork(): os.wait()
while True: answer(s.accept()[0])
""")
CLIENT = script("client.py", """import socket, sys, time
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def price():
    c.sendall(b"price")
    return c.recv(64)
print("connected", flush=True)
while True:
    price()
    time.sleep(0.02)
""")


def port(service):
    return service.lines[0].split()[1]


# also with a connection and a thread for each request
EACH = script("each.py", """import http.server, sys, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ask_next() if len(sys.argv) > 2 else count_stock()
        self.send_response(200); self.end_headers()
    def log_message(self, *args): pass
def count_stock():
    return sum(i * i for i in range(300000))
def ask_next():
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}").read()
s = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("port", s.server_port, flush=True)
s.serve_forever()
""")
ASKS = script("asks.py", """import sys, urllib.request
print("ready", flush=True)
while True:
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}").read()
""")
last = start("/usr/bin/python3", EACH, "0", until="port")
middle = start("/usr/bin/python3", EACH, "0", port(last), until="port")
client = start("/usr/bin/python3", ASKS, port(middle), until="ready")
time.sleep(1)
said = say("report", record("-d", "4"))
card = next((c for c in said.split("\n\n")[0].split("    Next:") if f"asks.py {client.pid} waited" in c), "")
ok("in <module> (asks.py:4)" in card and f"in the end it waited for each.py {last.pid}, which computed in count_stock" in " ".join(card.split()),
   "with a thread for each request the wait leads to the last process", said[:3000])
for program in (client, middle, last):
    program.kill()
last = start("/usr/bin/python3", SERVICE, until="port")
middle = start("/usr/bin/python3", SERVICE, port(last), until="port")
client = start("/usr/bin/python3", CLIENT, port(middle), until="connected")
time.sleep(1)
trace = record("-d", "4")
said = say("report", trace)
card = next((c for c in said.split("\n\n")[0].split("    Next:") if f"client.py {client.pid} waited" in c), "")
ok("in price (client.py:5)" in card and "in the end it waited for" in card and "which computed in count_stock" in " ".join(card.split()),
   "the client's wait leads to the function of the last service", said[:3000])
ok("in answer (service.py" not in said.split("\n\n")[0], "no service waits for the requests of a client that sleeps", said[:3000])
card = next((c for c in said.split("\n\n")[0].split("    Next:") if f"service.py {middle.pid} waited" in c), "")
ok("in ask_next (service.py:7)" in card and "which computed in count_stock" in " ".join(card.split()), "so does the wait of the service between", said[:3000])
waits = list(csv.DictReader(io.StringIO(run("export", trace, "--to", "csv", "--event", "sched_off", "-p", str(middle.pid)).stdout)))
sender = [r for r in waits if r["waker"] == "WAKER_SOFTIRQ"]
known = [r for r in sender if r["waker_pid"] not in ("0", str(middle.pid))]
ok(len(known) > 100 and len(known) >= 0.9 * len(sender), "a packet's sender is the thread that the softirq ran in", len(known), len(sender))
finish()
