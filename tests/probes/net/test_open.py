#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Connections that are open when the recording stops, while others start and end: each is recorded once, with its own addresses."""
import os
import socket
import sys
import threading
import time

from recording import EVENT_OPEN, Recording
from tap import done, ok

CONNECTED = 1
CLIENTS = 8
ENOUGH = 50  # connections that were closed before the recording stops


def serve(listener):
	def answer(c):
		while data := c.recv(4096):
			c.sendall(data[:10])
		c.close()

	while True:
		threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def client(port, closed):
	while True:
		c = socket.create_connection(("127.0.0.1", port))
		for _ in range(5):
			c.sendall(b"q" * 100)
			c.recv(100)
			time.sleep(0.001)
		c.close()
		closed.release()


def program():
	listener = socket.create_server(("127.0.0.1", 0), backlog=100)
	port = listener.getsockname()[1]
	server = os.fork()
	if not server:
		serve(listener)
	listener.close()
	print(server, port, flush=True)
	sys.stdin.readline()
	closed = threading.Semaphore(0)
	for _ in range(CLIENTS):
		threading.Thread(target=client, args=(port, closed), daemon=True).start()
	for _ in range(ENOUGH):
		closed.acquire()
	print("enough", flush=True)
	sys.stdin.read()
	os.kill(server, 9)
	os._exit(0)


def main():
	# probes of other families make the end of the recording longer
	rec = Recording(["/usr/bin/python3", os.path.abspath(__file__), "program"], "proc,net,gil", stop_at="enough")
	server, port = map(int, rec.output[0].split())
	closes = list(rec.trace.events("net_close"))
	still = [e for e in closes if e["flags"] & EVENT_OPEN]
	ok(rec.status == 0 and len(closes) >= ENOUGH and still, f"recorded: {len(still)} of {len(closes)} were open at the end", rec.messages)
	wrong = [e for e in closes if (e["pid"], e["local_port"]) != (server, port) and (e["pid"], e["peer_port"]) != (rec.pid, port)]
	ok(not wrong, "each has its own process and addresses", wrong)
	# a client sends ten times as much as it receives, and its last answer may be in flight
	odd = [e for e in closes if e["pid"] == rec.pid and e["side"] == CONNECTED and
	       not e["received"] * 10 <= e["sent"] <= e["received"] * 10 + 100]
	ok(not odd, "each has its own bytes", odd)
	keys = [(e["pid"], e["local_port"], e["peer_port"], e["start"]) for e in closes]
	ok(len(keys) == len(set(keys)), "none is recorded twice", [k for k in keys if keys.count(k) > 1])
	done()


if sys.argv[1:] == ["program"]:
	program()
main()
