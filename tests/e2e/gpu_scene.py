# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A synthetic trace of GPU work, and its expected contents, computed without sonde."""
import os
import subprocess

ROOT, B = os.environ["ROOT"], os.environ["B"]
from sonde_cli import make_trace
from sonde_trace import Trace

GOLDEN = os.path.join(B, "tests", "golden")
BEGIN = 1000000000000  # ns, of make_trace
US = 1000
CALLS = {"cudaLaunchKernel": ("cuda_launch", 1, 307), "cudaMemcpyAsync": ("cuda_copy", 2, 277),
         "cudaGraphLaunch": ("cuda_graph_launch", 3, 514), "cudaMemsetAsync": ("cuda_set", 4, 216)}
KERNELS = {1: ("_Z4gemmILi128EEvPfS0_S0_i", "void gemm<128>(float*, float*, float*, int)"),
           2: ("plain_kernel", "plain_kernel"), 3: ("bad\udcff\"name", "bad\udcff\"name")}
MODEL = "Made-up H100"
STACK, LABEL = 2, "train.py:12 step"


class Scene:
    """work, launches (also those that only CUPTI reported) and marks are the expected contents. Times are in us from BEGIN."""

    def __init__(self):
        self.lines, self.work, self.unprobed = [], [], []
        self.correlation = 0
        self.head()

    def line(self, event, /, **fields):
        self.lines.append(event + "".join(f" {k}={v}" for k, v in fields.items()))

    def head(self):
        for pid, tid, comm in ((100, 100, "python3"), (100, 101, "worker"), (200, 200, "plain"), (300, 300, "other"),
                               (400, 400, "taken")):
            self.line("proc_task", time="@0", pid=pid, tid=tid, ns_pid=pid, ns_tid=tid, comm=f'"{comm}"')
        for name, (_, probe, _) in CALLS.items():
            self.line("meta_probe", time="@0", number=probe, family=3, name=f'"{name}"', program='"p"', section='"s"')
        for code, (name, line) in enumerate((("main", 30), ("step", 12)), 1):
            self.line("meta_code", time="@0", code=code, name=f'"{name}"', file='"/home/u/train.py"', line=line,
                      kind="FRAME_PYTHON")
            self.line("meta_frame", time="@0", frame=code, caller=code - 1, code=code, line=line, kind="FRAME_PYTHON")
        for pid in (100, 300):
            self.line("gpu_shim", time="@0", pid=pid, state="GPU_SHIM_STARTED")
            for number, (mangled, _) in KERNELS.items():
                text = mangled.replace("\udcff", "\\xff").replace('"', '\\"')
                self.line("gpu_name", time="@0", pid=pid, name=number, text=f'"{text}"')
        for pid, device, uuid in ((100, 0, 10), (100, 1, 11), (300, 0, 11)):
            self.line("gpu_device", time="@0", pid=pid, device=device, uuid_first=uuid, major=9, minor=0,
                      memory=80 << 30, model=f'"{MODEL}"')

    @staticmethod
    def at(us):
        return BEGIN + round(us * US)

    def launch(self, us, function="cudaLaunchKernel", pid=100, tid=101, probed=True, stack=0, gil=0, cbid=None, length=10):
        """Adds a runtime call with the driver call in it. Returns the value for `launch` of the work that it launches."""
        event, probe, driver = CALLS[function]
        self.correlation += 1
        start, end = self.at(us), self.at(us + length)
        if probed:
            extra = {"stack": stack, "gil": gil}
            self.line(event, pid=pid, tid=tid, start=start, time=end, probe=probe, **extra)
        self.line("gpu_call", pid=pid, tid=tid, start=start + 1000, time=end - 1000, function=cbid or driver,
                  correlation=self.correlation)
        launch = {"pid": pid, "tid": tid, "start": start + (0 if probed else 1000), "end": end - (0 if probed else 1000),
                  "function": function, "stack": stack, "gil": {1: "held", 2: "not held"}.get(gil), "probed": probed,
                  "correlation": self.correlation}
        if not probed:
            launch["function"] = {652: "cuLaunchKernelEx"}[cbid]
            self.unprobed.append(launch)
        return launch

    def add(self, event, us, length, launch, gpu, fields, **truth):
        start, end = self.at(us), self.at(us + length)
        row = {"pid": 100, "device": 0, "context": 1, "stream": 7, "graph": 0, "graph_node": 0,
               "correlation": launch["correlation"] if launch else 9999, **fields}
        self.line(event, start=start, time=end, **row)
        row.update(truth, start=start, end=end, gpu=gpu, launch=launch)
        row["queued"] = max(0, start - launch["end"]) if launch else None
        self.work.append(row)
        return row

    def kernel(self, us, length, launch, name=1, gpu=0, **fields):
        fields = {"grid_x": 64, "grid_y": 2, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1, "registers": 40,
                  "static_shared": 1024, "dynamic_shared": 2048, **fields}
        return self.add("gpu_kernel", us, length, launch, gpu, {"name": name, **fields}, kind="kernel",
                        title=KERNELS[name][1], mangled=KERNELS[name][0])

    def copy(self, us, length, launch, size, **fields):
        return self.add("gpu_memcpy", us, length, launch, 0, {
            "bytes": size, "kind": "GPU_COPY_HTOD", "from_memory": "GPU_MEMORY_PINNED", "to_memory": "GPU_MEMORY_DEVICE",
            "asynchronous": 1, **fields}, kind="memcpy", title="[CUDA memcpy Host-to-Device]")

    def set(self, us, length, launch, size):
        return self.add("gpu_memset", us, length, launch, 0, {"bytes": size, "memory": "GPU_MEMORY_DEVICE", "asynchronous": 1},
                        kind="memset", title="[CUDA memset]")

    def mark_busy_streams(self):
        """Computes how long after each work item's launch the previous work in its stream ended."""
        last = {}
        for w in sorted(self.work, key=lambda w: w["end"]):
            stream = w["pid"], w["device"], w["context"], w["stream"]
            w["stream_busy"] = max(0, last.get(stream, 0) - w["launch"]["end"]) if w["launch"] else 0
            last[stream] = w["end"]

    def write(self, folder, name, cut=False):
        """Writes the trace by make_trace, with the schema of this build."""
        empty, end = os.path.join(folder, "empty.sonde"), "cut" if cut else "meta_end time=@10 reason=END_SIGNAL"
        subprocess.run([os.path.join(GOLDEN, "make_gpu_trace"), empty, "0"], check=True)
        return make_trace(os.path.join(folder, name), [*self.lines, end], Trace(empty).schema, encoding="latin-1")


def scene():
    s = Scene()
    # two streams that overlap; the copy has a stream of its own
    first = s.launch(100, stack=STACK, gil=1)
    s.kernel(120, 200, first)
    s.copy(150, 50, s.launch(112, "cudaMemcpyAsync", gil=2), 65536, stream=13)
    # queued behind the first item of its stream; starts within its call; has no duration
    behind = s.launch(130)
    s.kernel(320, 30, behind, name=2)
    s.kernel(405, 10, s.launch(400), stream=14)
    s.kernel(500, 0, s.launch(480), name=3, stream=14)
    # only CUPTI reported it
    s.kernel(620, 20, s.launch(600, probed=False, cbid=652), name=2)
    # a graph with three nodes in two streams
    graph = s.launch(700, "cudaGraphLaunch", stack=STACK)
    for i, (at, stream) in enumerate(((720, 7), (725, 13), (740, 7)), 1):
        s.kernel(at, 10, graph, graph=5, graph_node=70 + i, stream=stream)
    s.set(820, 8, s.launch(800, "cudaMemsetAsync"), 4096)
    # its launch is unknown
    s.kernel(900, 10, None)
    # one stream id of two processes on one GPU, which the processes number differently
    s.kernel(1020, 30, s.launch(1000), gpu=1, device=1, context=2)
    s.kernel(1030, 40, s.launch(1000, pid=300, tid=300), gpu=1, pid=300)
    # still running when the trace ends
    s.kernel(2000, 500, s.launch(1980), flags=1, stream=14)
    s.mark_busy_streams()
    host_times(s)
    others(s)
    return s


def host_times(s):
    """Adds a process without a shim, and one whose shim can't measure."""
    s.line("cuda_launch", pid=200, tid=200, start=s.at(3000), time=s.at(3010), probe=1)
    s.line("cuda_copy", pid=200, tid=200, start=s.at(3020), time=s.at(3040), probe=2, bytes=4096, kind="CUDA_COPY_DTOH")
    s.line("gpu_shim", time=s.at(2900), pid=400, state="GPU_SHIM_REFUSED", text='"another profiler has CUPTI"')


def others(s):
    for at, error in ((0, 150), (1000, 90)):
        s.line("gpu_clock", time=s.at(at), pid=100, device_time=at, error=error)
    s.line("gpu_dropped", time=s.at(950), pid=100, records=12, reason=1)
    s.line("gpu_dropped", time=s.at(960), pid=100, records=3, bytes=1048576, reason=1)
    s.line("gpu_sync", pid=100, start=s.at(1100), time=s.at(1200), context=1, stream=7, correlation=77, kind="GPU_SYNC_STREAM")
    for at, address, size, operation, memory in (
            (50, 0x1000, 1 << 20, "ALLOCATE", "DEVICE"), (60, 0x9000, 1 << 30, "ALLOCATE", "PINNED"),
            (70, 0x2000, 1 << 21, "ALLOCATE", "DEVICE"), (1500, 0x1000, 1 << 20, "RELEASE", "DEVICE"),
            (1600, 0x9000, 1 << 30, "RELEASE", "PINNED")):
        s.line("gpu_memory", time=s.at(at), pid=100, address=address, bytes=size, device=0, context=1,
               operation="GPU_MEMORY_" + operation, memory="GPU_MEMORY_" + memory)
