#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: right | a client that hangs because its server is stopped, which no tool that looks at the client alone shows |
"""`sonde why` of the client goes on with the server, which was not asked for: it was stopped by SIGSTOP, and `kill -CONT` lets it go on."""
import signal
import time

from case import finish, say, script, start
from tap import ok

server = start("/usr/bin/python3", script("peer.py", """import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print("port", s.getsockname()[1], flush=True)
kept = []
while True: kept.append(s.accept())
"""), until="port")
client = start("/usr/bin/python3", script("w.py", """import select, socket, sys
def wait_poll(s):
    p = select.poll(); p.register(s, select.POLLIN); p.poll()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
wait_poll(s)
"""), server.lines[0].split()[1], until="connected")
time.sleep(0.5)
server.send_signal(signal.SIGSTOP)
said = say("why", "-d", "2", client.pid)
ok(f"It waited for peer.py {server.pid} for 100% of this time.\n  Meanwhile peer.py {server.pid}, 2.000 s of waiting: 100.0% was stopped by a signal.\n"
   in said and f"  The chain ends here: `kill -CONT {server.pid}` lets it go on.\n" in said, "why the client waits", said)
said = say("why", "-d", "1", server.pid)
ok(f"peer.py {server.pid}, 1.000 s: 100.0% was stopped by a signal.\n" in said and "idle" not in said, "why the server does nothing", said)
finish()
