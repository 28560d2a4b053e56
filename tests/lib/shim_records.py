# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads the batches that the shim passes to its probe site, as stored by tests/fakes/cuda/consumer.c. The layouts are copied by
hand from bpf/core/shim.h, so that a change there fails a test.

    from shim_records import read_batches
    records, whole = read_batches("out")
    for k in records["kernel"]:
        print(k["start"], k["time"], k["device"])

It needs only Python 3.8 and its standard library, as tests/gpu runs it on machines that have nothing else.
"""
import collections
import struct

# bpf/core/shim.h
KERNELS, COPIES, SYNC, MEMORY, GRAPHS, NODES, CALLS = (1 << i for i in range(7))
ALL = KERNELS | COPIES | SYNC | MEMORY | CALLS
KINDS = ["", "kernel", "memcpy", "memset", "sync", "graph", "memory", "pool", "call", "device", "context", "stream",
         "name", "clock", "dropped", "shim"]
STARTED, STOPPED, REFUSED, WAITING, LEFT, IMPAIRED = 1, 2, 3, 4, 5, 6
BODIES = {
    "kernel": ("QQIIIIIIIIIIIIIIIIIIIi", "name graph_node device context stream correlation graph grid_x grid_y grid_z "
               "block_x block_y block_z cluster_x cluster_y cluster_z registers static_shared dynamic_shared local_memory "
               "channel priority"),
    "memcpy": ("QQQIIIIIIIIIIIB", "bytes graph_node copies device context stream correlation graph channel kind "
               "from_memory to_memory from_device to_device asynchronous"),
    "memset": ("QQIIIIIIIIII", "bytes graph_node device context stream correlation graph channel value memory "
               "asynchronous channel_type"),
    "sync": ("QIIIIII", "event_sync context stream correlation cuda_event kind result"),
    "graph": ("IIIII", "device context stream correlation graph"),
    "memory": ("QQQQQIIIIII", "address bytes pool pool_size pool_used device context stream correlation operation memory"),
    "call": ("IIiI", "function correlation result runtime"),
    "device": ("QQI", "memory bandwidth device"),
    "context": ("IIII", "context device null_stream api"),
    "stream": ("IIII", "context stream priority stream_kind"),
    "name": ("Q", "name"),
    "clock": ("QQqII", "device_time error drift_ppb reads restarted"),
    "dropped": ("QQI", "records bytes reason"),
    "shim": ("QQII", "told version state groups"),
}


def read_batches(path):
    """(Records by kind in order, summary). The summary has the number of batches and whether their sequence numbers have gaps."""
    data, pos, found, numbers = open(path, "rb").read(), 0, collections.defaultdict(list), []
    while pos < len(data):
        magic, _, n, size, _, number = struct.unpack_from("<IHHIIQ", data, pos)
        assert magic == 0x65646e73 and size <= 16384 and n <= 128, (magic, size, n)
        numbers.append(number)
        at, end = pos + 24, pos + size
        for _ in range(n):
            length, kind, tid, start, stop = struct.unpack_from("<HHIQQ", data, at)
            name = KINDS[kind]
            form, fields = BODIES.get(name, ("", ""))
            e = dict(zip(fields.split(), struct.unpack_from("<" + form, data, at + 24)), tid=tid, start=start, time=stop)
            if name in ("name", "shim"):
                body = 8 if name == "name" else 24
                e["text"] = data[at + 24 + body:at + length].split(b"\0")[0].decode(errors="replace")
            found[name].append(e)
            at += length
        assert at == end, "records and their batch disagree"
        pos = end
    return found, numbers == list(range(1, len(numbers) + 1)) or numbers
