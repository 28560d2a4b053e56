# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What PyTorch does for tests/gpu/run; it runs in the Python that has PyTorch.

    torch_work.py windows OUT [--profile] [--cpu]   trainings of several kinds, each in a window of time: a line of JSON each
    torch_work.py loop [--profile] [--cpu]          asked on standard input: `go STEPS 0`, `off`; answers with seconds
    torch_work.py profilers OUT                     torch.profiler before the shim, and after it

--profile: torch.profiler is on; its kernels are put into the line. --cpu: without a GPU, to try this file alone.
"""
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback

os.environ.pop("LD_PRELOAD", None)  # what this one starts (a compiler) is to carry no shim
import torch

CPU = "--cpu" in sys.argv
PROFILE = "--profile" in sys.argv
DEVICE = "cpu" if CPU else "cuda"
STEPS, WARM = 30, 5
SPIN_CYCLES = 4000000


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def synchronize():
    if not CPU:
        torch.cuda.synchronize()


def model(n=512):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(n, 2 * n), torch.nn.GELU(), torch.nn.LayerNorm(2 * n), torch.nn.Linear(2 * n, n),
                               torch.nn.ReLU(), torch.nn.Linear(n, n)).to(DEVICE)


def trainer(autocast=None):
    net, x = model(), torch.randn(256, 512, device=DEVICE)
    target = torch.zeros(256, 512, device=DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=autocast) if autocast else contextlib.nullcontext():
            loss = torch.nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
    return step


def loader():
    """Batches from pinned memory, a loss that is read."""
    host = torch.randn(256, 512)
    host = host if CPU else host.pin_memory()
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    def step():
        x = host.to(DEVICE, non_blocking=True)
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return loss.item()
    return step


def streams():
    side = [torch.cuda.Stream() for _ in range(3)]
    matrices = [torch.randn(512, 512, device=DEVICE) for _ in side]

    def step():
        main = torch.cuda.current_stream()
        for s, m in zip(side, matrices):
            s.wait_stream(main)
            with torch.cuda.stream(s):
                (m @ m).relu_()
        for s in side:
            main.wait_stream(s)
        matrices[0].mul(2)
    return step


def graphs():
    net, x = model(), torch.randn(256, 512, device=DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    def once():
        optimizer.zero_grad(set_to_none=True)
        net(x).square().mean().backward()
        optimizer.step()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        net(x).square().mean().backward()
        optimizer.step()
    return graph.replay


def triton_kernel():
    from torch_triton import add
    x, y = torch.randn(1 << 20, device=DEVICE), torch.randn(1 << 20, device=DEVICE)
    assert torch.equal(add(x, y), x + y)

    def step():
        add(add(x, y), y)
    return step


def compiled():
    @torch.compile
    def f(x, y):
        return torch.nn.functional.gelu(x * y + 1).sum(dim=1)
    x, y = torch.randn(1024, 1024, device=DEVICE), torch.randn(1024, 1024, device=DEVICE)
    return lambda: f(x, y)


KINDS = {"fp32": trainer, "bf16": lambda: trainer(torch.bfloat16), "loader": loader, "streams": streams, "CUDA graphs": graphs,
         "Triton": triton_kernel, "torch.compile": compiled}
NEEDS_GPU = ("streams", "CUDA graphs", "Triton")


class Profiled:
    """torch.profiler around a window; afterwards what it saw."""

    def __enter__(self):
        self.profile = None
        if PROFILE:
            kinds = [torch.profiler.ProfilerActivity.CPU] if CPU else [torch.profiler.ProfilerActivity.CPU,
                                                                        torch.profiler.ProfilerActivity.CUDA]
            self.profile = torch.profiler.profile(activities=kinds)
            self.profile.__enter__()
        return self

    def __exit__(self, *args):
        if self.profile:
            self.profile.__exit__(*args)

    def found(self):
        """{"kernels": {name: [ns]}, "copies": [bytes], "sets": [bytes]}"""
        result = {"kernels": {}, "copies": [], "sets": []}
        if not self.profile:
            return {}
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            self.profile.export_chrome_trace(f.name)
            with open(f.name) as trace:
                events = json.load(trace)["traceEvents"]
        for e in events:
            kind = e.get("cat", "").lower()
            if kind == "kernel" or CPU and kind == "cpu_op":
                result["kernels"].setdefault(e["name"], []).append(round(e["dur"] * 1000))
            elif kind in ("gpu_memcpy", "gpu_memset"):
                result["copies" if kind == "gpu_memcpy" else "sets"].append(e["args"].get("bytes", 0))
        return result


def window(name, step):
    """The same work in a span of time; a spinning kernel first, behind which all is queued: so events have the GPU's time."""
    for _ in range(WARM):
        step()
    synchronize()
    with Profiled() as p:
        begin = now()
        if not CPU:
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            torch.cuda._sleep(SPIN_CYCLES)
            events[0].record()
        for _ in range(STEPS):
            step()
        recorded = [now()]
        if not CPU:
            events[1].record()
        recorded.append(now())
        synchronize()
        end = now()
    result = {"kind": name, "begin": begin, "end": end, "recorded": recorded, "steps": STEPS, "threads": [int(t) for t in os.listdir("/proc/self/task")]}
    if not CPU:
        result["event_ns"] = round(events[0].elapsed_time(events[1]) * 1e6)
    result.update(p.found())
    return result


def write_line(path, line):
    with open(path, "a") as f:
        f.write(json.dumps(line) + "\n")


def windows(path):
    if PROFILE:  # what it does the first time belongs to no window
        with Profiled():
            torch.ones(1, device=DEVICE).add_(1)
            synchronize()
    for name, make in KINDS.items():
        if CPU and name in NEEDS_GPU:
            continue
        try:
            write_line(path, window(name, make()))
        except Exception as error:
            write_line(path, {"kind": name, "error": f"{type(error).__name__}: {error}"[:800], "where": traceback.format_exc()[-800:]})


def told_so_far():
    path = os.environ.get("SHIM_OUT")
    return os.path.getsize(path) if path and os.path.exists(path) else None


def switch(on, seconds=30):
    """As a tracer would; until the shim has said something. Seconds; None: it did not."""
    before, began = told_so_far(), time.monotonic()
    if before is None:
        return None
    os.kill(os.getpid(), signal.SIGUSR1 if on else signal.SIGUSR2)
    while time.monotonic() < began + seconds:
        time.sleep(0.005)
        if told_so_far() != before:
            time.sleep(0.5)
            return round(time.monotonic() - began, 3)
    return None


def loop():
    step = trainer()
    for _ in range(WARM):
        step()
    synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        words, began = line.split(), time.perf_counter()
        inside, ended = began, None
        if words[0] == "go":
            with Profiled():
                inside = time.perf_counter()
                for _ in range(int(words[1])):
                    step()
                synchronize()
                ended = time.perf_counter()
        else:
            switch(words[0] == "on")
        print(f"{(ended or time.perf_counter()) - inside:.9f} {time.perf_counter() - began:.9f}", flush=True)


def profilers(path):
    """torch.profiler first: the shim, started during it, has to step aside. Then the other way round."""
    global PROFILE
    PROFILE, step = True, trainer()
    for _ in range(WARM):
        step()
    synchronize()

    def profiled(what, inside=None):
        begin = now()
        try:
            with Profiled() as p:
                for i in range(STEPS):
                    step()
                    if i == STEPS // 2 and inside:
                        inside()
                synchronize()
            kernels = sum(len(v) for v in p.found()["kernels"].values())
            write_line(path, {"what": what, "begin": begin, "end": now(), "kernels": kernels})
        except Exception as error:
            write_line(path, {"what": what, "begin": begin, "end": now(), "kernels": 0, "error": str(error)[:500]})

    def asked():
        write_line(path, {"switched_on_s": switch(True, 5)})
    profiled("torch.profiler first", asked)
    # the shim looks again ten seconds after it was refused
    until = time.monotonic() + 12
    begin = now()
    while time.monotonic() < until:
        step()
        time.sleep(0.02)
    synchronize()
    write_line(path, {"what": "the profiler has ended", "begin": begin, "end": now()})
    profiled("torch.profiler while the shim waits or is on")
    begin = now()
    for _ in range(STEPS):
        step()
    synchronize()
    write_line(path, {"what": "after it", "begin": begin, "end": now(), "switched_off_s": switch(False, 5)})


def main():
    for sig in (signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(sig) == signal.SIG_DFL:
            signal.signal(sig, signal.SIG_IGN)
    what = sys.argv[1]
    if what == "windows":
        windows(sys.argv[2])
    elif what == "loop":
        loop()
    elif what == "profilers":
        profilers(sys.argv[2])


if __name__ == "__main__":
    main()
