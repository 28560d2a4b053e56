#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=120
# case: right | bpftrace, gdb: numbers of threads in containers |
"""Threads in a pid namespace wait for a mutex since before the recording: the thread that holds it, by its number outside, and both lines."""
import os
import subprocess
import time

from case import FOLDER, finish, record, say, script, start
from tap import ok

SOURCE = script("renewal.c", """#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *renew(void *arg)
{
	pthread_mutex_lock(&mutex);
	sleep(600);
	return arg;
}

static void *look_up(void *arg)
{
	pthread_mutex_lock(&mutex);
	return arg;
}

int main(void)
{
	pthread_t holder, waiter;

	pthread_create(&holder, NULL, renew, NULL);
	usleep(200000);
	pthread_create(&waiter, NULL, look_up, NULL);
	pthread_create(&waiter, NULL, look_up, NULL);
	pthread_join(holder, NULL);
}
""")
PROGRAM = os.path.join(FOLDER, "renewal")


def threads(pid):
    """The process's tids, outside and in its own pid namespace"""
    both = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            both.append([int(n) for line in f if line.startswith("NSpid:") for n in line.split()[1:]])
    return sorted(both)


subprocess.run(["cc", "-g", "-pthread", "-o", PROGRAM, SOURCE], check=True)
unshare = start("unshare", "--pid", "--fork", "--kill-child", PROGRAM)
time.sleep(1)
with open(f"/proc/{unshare.pid}/task/{unshare.pid}/children", encoding="ascii") as f:
    pid = int(f.read())
holder = threads(pid)[1]
ok(len(holder) == 2 and holder[0] != holder[1], "the namespace has numbers of its own", threads(pid))
for options in ((), ("-t", "+lock")):
    said = say("report", record("-d", "1", *options, "-p", pid))
    ok(said.startswith(f"renewal {pid} (2 threads) waited 100% of 1.000 s for a lock in look_up (renewal.c:15)\n") and
       f"held by thread {holder[0]}, which slept in clock_nanosleep in renew (renewal.c:9)\n" in said, f"report, record {' '.join(options)}", said)
said = say("report", record("-d", "1", "-t", "+lock", "-p", pid), "locks", "--format", "csv")
ok(f",{holder[0]}," in said, "report locks", said)
finish()
