#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Findings on GPUs, on calls of CUDA and NCCL and on connections: planted in synthetic traces, each beside one in which it is just not true."""
import tempfile

from planted import first_of, written
from tap import done, ok

END = "meta_end time=@8 reason=END_SIGNAL"
CODE = ['meta_code time=@0 code=1 name="step" file="/app/train.py" line=30 kind=FRAME_PYTHON',
        "meta_frame time=@0 frame=1 caller=0 code=1 line=33 kind=FRAME_PYTHON"]
PROBES = ['meta_probe time=@0 number=1 family=3 name="cudaMemcpy" program="cuda_copy" section="span/libcudart.so:cudaMemcpy"',
          'meta_probe time=@0 number=2 family=3 name="cudaLaunchKernel" program="cuda_launch" section="span/libcudart.so:cudaLaunchKernel"']
TASK = 'proc_task time=@0 pid=10 tid=10 ppid=1 ns_pid=10 ns_tid=10 comm="train"'
SHIM = ["gpu_shim time=@0 pid=10 tid=10 state=GPU_SHIM_STARTED groups=79 version=130000",
        'gpu_device time=@0 pid=10 device=0 major=9 model="Made-up H100"', 'gpu_name time=@0 pid=10 name=1 text="gemm"']


def copies(n, ns, size):
    return [f"cuda_copy probe=1 pid=10 tid=10 start={1000000000000 + i * 4000000} time={1000000000000 + i * 4000000 + ns} bytes={size} "
            f"kind=CUDA_COPY_HTOD stack=1" for i in range(n)]


def check_copies(folder):
    """1,500 copies of 1 ms are 1.5 of 8 s."""
    found = first_of(written(folder, "small", [TASK, *PROBES, *CODE, *copies(1500, 1000000, 4096), END], "gpu.schema.json")[1], kind="copies")
    ok(found.get("lost_ns") == 1500000000 and found["wall_ns"] == 8000000000 and found["times"] == 1500 and found["code"]["line"] == 33 and
       found["text"].startswith("train 10 spent 19% of 8.000 s in step (train.py:33) with 1,500 small copies, 4.00 KiB each on average."),
       "many small copies: their time, their number, their size, the line", found)
    for n, ns, size, why in ((900, 2000000, 4096, "few"), (1500, 1000000, 1 << 20, "large"), (1500, 100000, 4096, "quick")):
        found = written(folder, why, [TASK, *PROBES, *CODE, *copies(n, ns, size), END], "gpu.schema.json")[1]
        ok(not first_of(found, kind="copies"), f"no such finding of {why} ones", [f["text"] for f in found])


def launches(busy, every=0.1):
    """A kernel each 0.1 s, for this part of it, from second 0.1 to 7.9, launched by thread 10"""
    lines = []
    for i in range(1, 79):
        at = i * every
        lines += [f"cuda_launch probe=2 pid=10 tid=10 start=@{at:.4f} time=@{at + 0.0001:.4f} function=1",
                  f"gpu_call pid=10 tid=10 start=@{at + 0.00002:.5f} time=@{at + 0.00008:.5f} function=307 correlation={i}",
                  f"gpu_kernel pid=10 start=@{at + 0.0002:.4f} time=@{at + 0.0002 + busy * every:.4f} name=1 correlation={i} context=1 stream=7 device=0"]
    return lines


def check_gpu(folder):
    for busy in (0.5, 0.02):
        lines = [TASK, *PROBES, *SHIM, *launches(busy), "sched_run pid=10 tid=10 start=@0 time=@8 state=SCHED_SLEEP", END]
        found = written(folder, f"gpu{busy}", lines, "idle.schema.json")[1]
        idle = first_of(found, kind="gpu-idle")
        # 77 gaps of 0.1 s less the kernel
        lost = 77 * 0.1 * (1 - busy)
        ok(idle.get("device") == 0 and idle["pid"] == 10 and abs(idle["lost_ns"] / 1e9 - lost) < 0.001 and
           abs(idle["wall_ns"] / 1e9 - (7.7 + 0.1 * busy)) < 0.001 and f"busy {100 - 100 * lost / (7.7 + 0.1 * busy):.1f}% of" in idle["text"],
           f"a GPU that is busy for {busy}: its idle time", idle or [f["text"] for f in found])
        kernel = first_of(found, kind="gpu-kernel")
        ok(kernel.get("times") == 78 and abs(kernel["lost_ns"] / 1e9 - 7.8 * busy) < 0.001 or busy < 0.1, "and its kernel", kernel)
        first = found[0]["kind"]
        ok(first == ("gpu-idle" if busy > 0.1 else "compute"), "a GPU in use comes first, one that is hardly used does not", [f["text"] for f in found])


def without_next(finding):
    return finding.get("text", "").split(" Next: ")[0]


def check_calls(folder):
    """A call that fails twice, and one that never returns"""
    lines = [TASK, *PROBES, "cuda_copy probe=1 pid=10 tid=10 start=@1 time=@1.1 bytes=1 ret=2",
             "cuda_copy probe=1 pid=10 tid=10 start=@2 time=@2.1 bytes=1 ret=2",
             "cuda_copy probe=1 pid=10 tid=10 start=@3 time=@5 bytes=1 ret=600",
             *(f"cuda_copy probe=1 pid=10 tid=10 start=@5.{i} time=@5.{i}1 bytes=1 ret=4" for i in range(3))]
    found = written(folder, "errors", [*lines, END], "gpu.schema.json")[1]
    failed = first_of(found, kind="errors")
    text = "2 CUDA calls failed; most often cudaMemcpy with cudaErrorMemoryAllocation in train 10."
    ok(without_next(failed) == text and failed["times"] == 2 and found.index(failed) > 0 and failed["lost_ns"] == 0 and failed["share_percent"] is None,
       "errors are counted, and come after what cost time; 'not ready' and 'the driver was unloaded' are none", found)
    ok(not first_of(found, kind="stuck"), "no call is stuck", found)
    found = written(folder, "stuck", [*lines, "cuda_copy probe=1 pid=10 tid=10 start=@4 time=@8 bytes=1 flags=1", END], "gpu.schema.json")[1]
    ok(found[0]["kind"] == "stuck" and found[0]["lost_ns"] == 4000000000 and
       found[0]["text"].startswith("1 CUDA call had not returned at the end of the trace; the longest was cudaMemcpy of train 10, for 4.000 s."),
       "a call that never returned comes first", [f["text"] for f in found])
    ok(sum("cudaMemcpy" in f["text"] for f in found) == 2, "no second sentence has the same wait", [f["text"] for f in found])


def check_net(folder):
    lines = [TASK, "net_connect pid=10 tid=10 start=@1 time=@1.1 local_low=1 peer_low=1 local_port=4001 peer_port=81 failed=1",
             "net_connect pid=10 tid=10 start=@2 time=@2.1 local_low=1 peer_low=1 local_port=4002 peer_port=81 failed=1",
             "net_connect pid=10 tid=10 start=@2 time=@2.1 local_low=1 peer_low=1 local_port=4002 peer_port=82 failed=1",
             "net_connect pid=10 tid=10 start=@3 time=@3.1 local_low=1 peer_low=1 local_port=4003 peer_port=80",
             "net_close pid=10 tid=10 start=@3 time=@4 local_low=1 peer_low=1 local_port=4003 peer_port=80 "
             "sent=10 received=20 retransmits=7 side=NET_CONNECTED"]
    found = written(folder, "net", [*lines, END], "disk.schema.json")[1]
    ok(without_next(first_of(found, kind="errors")) == "3 connects failed; most often to ::1 port 81 in train 10.", "failed connects: where to", found)
    ok(without_next(first_of(found, kind="resent")) == "7 TCP segments were retransmitted, most of them between train 10 and ::1 port 80.",
       "retransmitted segments: where to", found)
    found = written(folder, "quiet", [TASK, lines[4], lines[5].replace("retransmits=7", "retransmits=0"), END], "disk.schema.json")[1]
    ok(not first_of(found, kind="errors") and not first_of(found, kind="resent"), "neither of a connection without trouble", found)


def check_faults(folder):
    for minor in (200000, 100000):
        found = written(folder, "faults", [TASK, f"disk_task pid=10 tid=10 start=@0 time=@8 flags=1 major=3 minor={minor} read=1", END], "disk.schema.json")[1]
        faults = first_of(found, kind="page-faults")
        ok(bool(faults) == (minor == 200000) and (not faults or faults["text"].startswith(
            "train 10 had 200,000 page faults in 8.000 s, and 3 that read from a disk.")),
           f"{minor} page faults in 8 s", found)


with tempfile.TemporaryDirectory() as there:
    for check in (check_copies, check_gpu, check_calls, check_net, check_faults):
        check(there)
done()
