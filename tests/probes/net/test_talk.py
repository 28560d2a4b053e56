#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""TCP connections over the loopback device, IPv4 and IPv6: bytes, ports and owners of both ends are those of the program's list."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import Recording, compile_c, counted
from tap import done, ok

CONNECTED, ACCEPTED = 1, 2
LOOPBACK = {4: (0, 0xffff7f000001), 6: (0, 1)}


def ends(e):
	return (e["local_high"], e["local_low"]), e["local_port"], (e["peer_high"], e["peer_low"]), e["peer_port"]


def main():
	rec = Recording([compile_c(os.path.join(HERE, "talk.c"))], "net")
	ok(rec.status == 0 and " 0 lost" in rec.messages, "recorded without losses", rec.messages)
	servers, talks, refused, none = [], [], [], []
	for line in rec.output:
		word, *numbers = line.split()
		numbers = [int(x) for x in numbers]
		if word == "server":
			servers += numbers
		elif word == "talk":
			talks.append((servers[-1], *numbers))
		else:
			(refused if word == "refused" else none).extend(numbers)
	for family in none:
		print(f"ok - IPv{family} # SKIP no such loopback address here")
	connects = list(rec.trace.events("net_connect"))
	accepts = list(rec.trace.events("net_accept"))
	closes = list(rec.trace.events("net_close"))
	wrong = {"connect": [], "accept": [], "out": [], "in": []}
	for server, family, own, port, there, back, begin, end, _closed in talks:
		home = LOOPBACK[family]
		out, into = (home, own, home, port), (home, port, home, own)
		c = [e for e in connects if ends(e) == out]
		a = [e for e in accepts if ends(e) == into]
		o = [e for e in closes if ends(e) == out]
		i = [e for e in closes if ends(e) == into]
		if [(e["pid"], e["failed"], begin <= e["start"] < e["time"] <= end) for e in c] != [(rec.pid, 0, True)]:
			wrong["connect"].append((begin, end, c))
		if [e["pid"] for e in a] != [server]:
			wrong["accept"].append((server, a))
		if [(e["pid"], e["side"], e["sent"], e["received"], e["flags"]) for e in o] != \
				[(rec.pid, CONNECTED, there, back, 0)]:
			wrong["out"].append((there, back, o))
		if [(e["pid"], e["side"], e["sent"], e["received"], e["flags"]) for e in i] != [(server, ACCEPTED, back, there, 0)]:
			wrong["in"].append((back, there, i))
	n = len(talks)
	ok(n >= 6, f"{n} connections were made")
	ok(not wrong["connect"], f"{n} connects: by the process, within the times of its own clock", wrong["connect"][:1])
	ok(not wrong["accept"], f"{n} accepts: by the server, although packets caused them", wrong["accept"][:1])
	ok(not wrong["out"], f"{n} closes of the connecting side: exact bytes in both directions", wrong["out"][:1])
	ok(not wrong["in"], f"{n} closes of the accepting side: exact bytes in both directions", wrong["in"][:1])
	failed = [e for e in connects if e["failed"]]
	ok([e["peer_port"] for e in failed] == refused, "a refused connect is reported as failed", failed)
	ok(len(connects) == n + 1 and len(accepts) == n and len(closes) == 2 * n, "no other connections are recorded",
	   f"{counted(len(connects) + len(accepts) + len(closes), 4 * n + 1)}: {len(connects)} {len(accepts)} {len(closes)}")
	done()


main()
