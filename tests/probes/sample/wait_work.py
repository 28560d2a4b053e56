# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits in every way that test_waits.py needs, each in its own thread, ROUNDS times for 20 ms. Prints the objects of the waits as JSON."""
import ctypes
import json
import os
import select
import socket
import sys
import tempfile
import threading
import time

ROUNDS, WAIT = 10, 0.02
truth = {}
libc = ctypes.CDLL(None, use_errno=True)


def note(name, **facts):
    truth[name] = {"tid": threading.get_native_id(), **facts}


def feeder(write, sends):
    """Sends a byte WAIT seconds after the reader was ready."""
    def feed():
        for _ in range(sends):
            time.sleep(WAIT)
            write(b"x")
    thread = threading.Thread(target=feed)
    thread.start()
    return thread


def pipe_read():
    r, w = os.pipe()
    note("pipe_read", ino=os.fstat(r).st_ino)
    thread = feeder(lambda b: os.write(w, b), ROUNDS)
    for _ in range(ROUNDS):
        os.read(r, 1)
    thread.join()


def tcp_pair(port=0):
    server = socket.create_server(("127.0.0.1", port))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    # both stay open until the recording ends
    kept.extend([server, client, accepted])
    return client, accepted


kept = []
with socket.create_server(("127.0.0.1", 0)) as reserved:
    free_port = reserved.getsockname()[1]


def tcp_recv():
    client, accepted = tcp_pair(free_port)
    note("tcp_recv", local=client.getsockname()[1], peer=client.getpeername()[1])
    thread = feeder(accepted.send, ROUNDS)
    for _ in range(ROUNDS):
        client.recv(1)
    thread.join()


def poll_one():
    client, accepted = tcp_pair()
    client.setblocking(False)
    note("poll_one", local=client.getsockname()[1], peer=client.getpeername()[1], timeout=5_000_000_000)
    thread = feeder(accepted.send, ROUNDS)
    poll = select.poll()
    poll.register(client, select.POLLIN)
    for _ in range(ROUNDS):
        poll.poll(5000)
        client.recv(1)
    thread.join()


def select_one():
    a, b = socket.socketpair()
    # a descriptor beyond 63, in the second word of the set
    high = os.dup2(a.fileno(), 100)
    note("select_one", ino=os.fstat(high).st_ino, peer_ino=os.fstat(b.fileno()).st_ino)
    thread = feeder(b.send, ROUNDS)
    for _ in range(ROUNDS):
        select.select([high], [], [])
        os.read(high, 1)
    thread.join()
    kept.extend([a, b])


def unix_recv():
    path = os.path.join(tempfile.mkdtemp(), "listener")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    accepted, _ = server.accept()
    kept.extend([server, client, accepted])
    note("unix_recv", path=path)
    thread = feeder(accepted.send, ROUNDS)
    for _ in range(ROUNDS):
        client.recv(1)
    thread.join()
    os.unlink(path)
    os.rmdir(os.path.dirname(path))


def silent_child():
    """
    A pipe without data and a listener that accepts no connection. The child also has the port of tcp_recv, for UDP and in
    another network namespace.
    """
    r, w = os.pipe()
    server = socket.create_server(("127.0.0.1", 0))
    mute.append(server.getsockname())
    pid = os.fork()
    if not pid:
        os.close(r)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", free_port))
        if not libc.unshare(0x40000000):
            kept.extend([udp, socket.create_server(("", free_port))])
        ctypes.CDLL(None).prctl(15, b"silent_writer", 0, 0, 0)
        time.sleep(60)
        os._exit(0)
    os.close(w)
    server.close()
    # a process with a lower pid that has no listener of the connection's type
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(mute[0])
    kept.append(udp)
    return r, pid


mute = []


def unaccepted():
    client = socket.create_connection(mute[0])
    note("unaccepted", peer=client.getpeername()[1])
    try:
        client.recv(1)
    except ConnectionError:
        pass


def hang(r, child):
    note("hang", ino=os.fstat(r).st_ino, child=child)
    os.read(r, 1)


def set_title(text):
    """As setproctitle does: overwrites the arguments with one text."""
    with open("/proc/self/stat") as f:
        start, end = map(int, f.read().rsplit(") ", 1)[1].split()[45:47])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, min(len(text), end - start - 1))


def child_pipe():
    """A pipe whose other end is another process's."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(r)
        ctypes.CDLL(None).prctl(15, b"slow_writer", 0, 0, 0)
        set_title(b"slow_writer: UPDATE\n\x1b[1mwaiting")
        for _ in range(300):
            os.dup(w)
        for _ in range(ROUNDS):
            time.sleep(WAIT)
            os.write(w, b"x")
        time.sleep(60)
        os._exit(0)
    os.close(w)
    note("child_pipe", ino=os.fstat(r).st_ino, child=pid)
    for _ in range(ROUNDS):
        os.read(r, 1)
    return pid


def futex():
    word = ctypes.c_uint32(7)
    times = (ctypes.c_long * 2)(0, int(WAIT * 1e9))
    note("futex", address=ctypes.addressof(word), timeout=int(WAIT * 1e9))
    for _ in range(ROUNDS):
        libc.syscall(ctypes.c_long(202), ctypes.byref(word), ctypes.c_long(0), ctypes.c_long(7), times, None, ctypes.c_long(0))


def nap():
    note("nap", timeout=int(WAIT * 1e9))
    for _ in range(ROUNDS):
        time.sleep(WAIT)


def epoll():
    e = select.epoll()
    note("epoll", timeout=int(WAIT * 1e9))
    for _ in range(ROUNDS):
        e.poll(WAIT)


def main():
    # forks while there is only one thread
    sys.stdin.readline()
    silent = silent_child()
    child = child_pipe()
    threading.Thread(target=hang, args=silent, daemon=True).start()
    threading.Thread(target=unaccepted, daemon=True).start()
    threads = [threading.Thread(target=f) for f in (pipe_read, tcp_recv, poll_one, select_one, unix_recv, futex, nap, epoll)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps({"pid": os.getpid(), "stdin": os.fstat(0).st_ino, "waits": truth}), flush=True)
    sys.stdin.read()
    for pid in (child, silent[1]):
        os.kill(pid, 9)
        os.waitpid(pid, 0)


main()
