# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `pytorch`: trainings with the shim, and the same with torch.profiler, in turns: CUPTI has one subscription a process."""
import collections
import ctypes
import json
import os
import re
import statistics
import sys

from facts import with_cuda
from judge import NS, SHARE
from lib import Asked, Skip, read_text
from shim_records import ALL, NODES, STARTED, STOPPED
from shimmed import environment, read_reported

from build import SHIM, need_shim

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 2


def usable(run):
    return run.doubles or bool(run.result["machine"]["torch"].get("available"))


def why_not(run):
    t = run.result["machine"]["torch"]
    return t.get("why") or f"PyTorch {t.get('version')} of {t.get('python')} sees no GPU"


def command(run, args):
    """The doubles have no PyTorch: something in its place does what these checks need, so that they are proved."""
    if run.doubles:
        return [sys.executable, os.path.join(HERE, "torch_standin.py"), *args]
    return [run.result["machine"]["torch"]["python"], os.path.join(HERE, "torch_work.py"), *args]


def settings(run, env):
    # CUPTI and libcudart are PyTorch's own; caches are shared by the rounds, and deleted at the end
    if not run.doubles:
        env.pop("LD_LIBRARY_PATH", None)
        if "LD_LIBRARY_PATH" in os.environ:
            env["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    env.update(TORCHINDUCTOR_CACHE_DIR=os.path.join(run.tmp, "inductor"), TRITON_CACHE_DIR=os.path.join(run.tmp, "triton"),
               TORCHINDUCTOR_COMPILE_THREADS="1", PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1",
               # graphs that are older than a profiler are to be seen by it
               DISABLE_CUPTI_LAZY_REINIT="1", TEARDOWN_CUPTI="0")
    return env


def work(run, args, limit, shim_out=None, later=False):
    env = environment(run, shim_out, groups=ALL | NODES, later=later) if shim_out else with_cuda(run)
    return run.command(command(run, args), limit, env=settings(run, env))


def asked(run, args, shim_out=None, dormant=False):
    env = environment(run, shim_out) if shim_out else with_cuda(run, CUDA_INJECTION64_PATH=SHIM if dormant else None)
    return Asked(command(run, args), settings(run, env), run.file("log"))


def read_lines(path):
    found = []
    for line in read_text(path).splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


class Demangler:
    """Names as torch.profiler writes them."""

    def __init__(self):
        try:
            library = ctypes.CDLL("libstdc++.so.6")
            self.function = getattr(library, "__cxa_demangle")  # as text: a class changes such names
            self.function.restype = ctypes.c_void_p
            self.libc = ctypes.CDLL(None)
        except (OSError, AttributeError):
            self.function = None

    def __call__(self, name):
        if not self.function or not name.startswith("_Z"):
            return name
        status = ctypes.c_int()
        at = self.function(name.encode(), None, None, ctypes.byref(status))
        if not at or status.value:
            return name
        text = ctypes.string_at(at).decode(errors="replace")
        self.libc.free(ctypes.c_void_p(at))
        return text


def plain(name):
    """Demanglers differ in blanks; torch.profiler writes / for \\ and a capital for a kernel named kernel."""
    name = re.sub(r"\s+", "", name.replace("\\", "/"))
    return "Kernel" if name == "kernel" else name


def of_shim(run, out, path):
    """{kind: what the shim reported of its window}"""
    reported, demangle, found = read_reported(out), Demangler(), {}
    names = {n: plain(demangle(text)) for n, text in reported.names.items()}
    for w in read_lines(path):
        if "error" in w:
            found[w["kind"]] = w
            continue
        inside = {k: [r for r in reported.got[k] if w["begin"] <= r["start"] < w["end"]] for k in ("kernel", "memcpy", "memset", "call", "sync")}
        kernels = collections.defaultdict(list)
        for k in inside["kernel"]:
            kernels[names.get(k["name"], "?")].append(k["time"] - k["start"])
        found[w["kind"]] = dict(w, kernels=dict(kernels), copies=[c["bytes"] for c in inside["memcpy"]],
                                sets=[c["bytes"] for c in inside["memset"]], inside=inside, error_ns=reported.error)
    return reported, found


def check_joins(run, kind, w):
    calls = {c["correlation"]: c for c in w["inside"]["call"]}
    work_ = w["inside"]["kernel"] + w["inside"]["memcpy"] + w["inside"]["memset"]
    alone = [r for r in work_ if r["correlation"] not in calls]
    early = max([calls[r["correlation"]]["start"] - r["start"] for r in work_ if r["correlation"] in calls], default=0)
    late = max([r["time"] - w["end"] for r in work_], default=0)
    threads = {calls[r["correlation"]]["tid"] for r in work_ if r["correlation"] in calls}
    run.ok(work_ and not alone and threads <= set(w["threads"]), f"{kind}: each kernel, copy and set has its call, of a thread of the process",
           f"{len(alone)} of {len(work_)} without: {alone[:2]}", threads, w["threads"], launched=len(work_), threads=len(threads))
    run.ok(early <= w["error_ns"] and late <= w["error_ns"], f"{kind}: times on the device lie between the launch and the wait",
           begins_early_ns=early, ends_late_ns=late, allowed_ns=w["error_ns"])


def check_events(run, kind, w):
    """From the end of the kernel before which all was queued to the last one's, or to the second event where the host came later."""
    work_ = sorted((r["start"], r["time"]) for r in w["inside"]["kernel"] + w["inside"]["memcpy"] + w["inside"]["memset"])
    if len(work_) < 2 or not w.get("event_ns"):
        run.skip(f"{kind}: the span is that of CUDA's events", "no events")
        return
    ended, (before, after) = max(t for _, t in work_[1:]), w["recorded"]
    ends = [max(ended, before), max(ended, after)]
    spans = [end - work_[0][1] for end in ends]
    off = min((s - w["event_ns"] for s in spans), key=abs) if not spans[0] <= w["event_ns"] <= spans[1] else 0
    run.ok(abs(off) <= max(SHARE * w["event_ns"], 5 * NS), f"{kind}: the span is that of CUDA's events, within 2% or 10 us",
           off_ns=off, event_ns=w["event_ns"])


def check_counts(run, kind, shims, profiles):
    want = profiles[0]
    a, b = ({name: len(v) for name, v in w["kernels"].items()} for w in (shims[0], want))
    # torch.profiler's names went through another demangler
    b = collections.Counter()
    for name, v in want["kernels"].items():
        b[plain(name)] += len(v)
    differ = {n: (a.get(n, 0), b.get(n, 0)) for n in set(a) | set(b) if a.get(n, 0) != b.get(n, 0)}
    run.ok(a and not differ, f"{kind}: kernels by name as torch.profiler counts them", f"name: (shim, profiler): {dict(list(differ.items())[:6])}",
           kernels=sum(a.values()), names=len(a), profiler=sum(b.values()))
    for what in ("copies", "sets"):
        run.ok(sorted(shims[0][what]) == sorted(want[what]), f"{kind}: {what} and their bytes as torch.profiler reports them",
               sorted(shims[0][what])[:10], sorted(want[what])[:10], **{what: len(want[what])})


def check_times(run, kind, shims, profiles):
    """Medians by name. The rounds of each differ among themselves, and by so much the two may differ, too."""
    def medians(rounds, name):
        return [statistics.median(v) for w in rounds for n, v in w["kernels"].items() if plain(n) == name]
    bad, worst, total, compared = [], 0, 0, 0
    for name in {plain(n) for n in shims[0]["kernels"]}:
        a, b = medians(shims, name), medians(profiles, name)
        if not a or not b:
            continue
        compared += 1
        allowed = max(SHARE * max(b), NS, max(a) - min(a), max(b) - min(b))
        off = statistics.median(a) - statistics.median(b)
        worst = max(worst, abs(off))
        if abs(off) > allowed:
            bad.append((name[:80], a, b))
    total = [sum(sum(v) for v in w["kernels"].values()) for w in (shims[0], profiles[0])]
    run.ok(compared and not bad, f"{kind}: durations as torch.profiler has them, within 2%, 2 us or what its rounds differ by", bad[:5],
           names=compared, worst_ns=worst, shim_total_ns=total[0], profiler_total_ns=total[1])


def check_kind(run, kind, shims, profiles):
    if not shims:
        run.skip(kind, "no time was left for it")
        return
    if "error" in shims[0]:
        # it may be this PyTorch and not the shim: does it go without?
        same = profiles and "error" in profiles[0]
        (run.skip if same else lambda name, why: run.ok(False, name, why))(kind, shims[0]["error"])
        return
    check_joins(run, kind, shims[0])
    check_events(run, kind, shims[0])
    profiles = [p for p in profiles if "error" not in p]
    if not profiles:
        run.skip(f"{kind}: as torch.profiler has it", "torch.profiler did not get that far")
        return
    check_counts(run, kind, shims, profiles)
    check_times(run, kind, shims, profiles)


def rounds(run):
    """[(reported, {kind: window})] of the shim, [{kind: window}] of torch.profiler, for as long as there is time."""
    shims, profiles, took = [], [], 0
    for i in range(ROUNDS):
        for profiled in (False, True):
            if i and run.left() < took + 20:
                return shims, profiles
            path, out = run.file("windows"), run.file("shim")
            open(out, "w").close()
            done = work(run, ["windows", path] + (["--profile"] if profiled else []), 80, None if profiled else out)
            took = max(took if i else 0, done.seconds)
            run.ok(done.status == 0, f"{'torch.profiler' if profiled else 'the shim'}, round {i + 1}: the program ends well", done.why(),
                   seconds=round(done.seconds, 1))
            if profiled:
                profiles.append({w["kind"]: w for w in read_lines(path)})
            else:
                shims.append(of_shim(run, out, path))
    return shims, profiles


def run(run):
    need_shim()
    if not usable(run):
        raise Skip(why_not(run))
    shims, profiles = rounds(run)
    for i, (reported, _) in enumerate(shims):
        run.ok(reported.states[:1] == [STARTED] and reported.states[-1:] == [STOPPED] and not reported.dropped and reported.whole is True,
               f"the shim, round {i + 1}: starts and stops, nothing dropped", reported.states, reported.texts, reported.dropped)
    kinds = [k for _, found in shims[:1] for k in found] or ["trainings"]
    for kind in kinds:
        check_kind(run, kind, [found[kind] for _, found in shims if kind in found and "error" not in found[kind]] or
                   [found[kind] for _, found in shims[:1] if kind in found], [p[kind] for p in profiles if kind in p])
