# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Planted causes: known functions hold the GIL for a known time while known functions
wait. The attribution in `report gil` is compared with the program's own log.
"""
import collections
import json
import os
import signal
import subprocess

import gil_lib
import tap
from sonde_cli import Sonde

SECONDS = 1.6
TRIES = 3
running = []

# scene: the planted pairs of holder and waiter; the first must be on top of the report
PLANTED = {
    "known": [("keeper", "second_victim"), ("keeper", "first_victim")],
    "three": [("sixty", "sufferer"), ("sixty", "thirty"), ("sixty", "ten"), ("thirty", "sufferer"), ("thirty", "sixty"),
              ("ten", "sufferer")],
    "long": [("in_c", "outside")],
    "convoy": [("convoy", "convoy")],
    "io": [("crunch", "short_io")],
}


class Scene:
    """A process that runs one of the scenes."""

    def __init__(self, python, place, name, priority=()):
        outside, inside = place.inside(python.root)
        self.name = name
        self.truth = os.path.join(outside, "truth-%s.json" % name)
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": inside, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
        # the preloaded library logs the GIL of pure Python code
        preload = ["/usr/bin/env", "LD_PRELOAD=%s/gil_truth.so" % inside, "GIL_TRUTH=%s/truth-%s.json" % (inside, name)]
        command = (preload if name == "io" else []) + [python.exe, "-S", inside + "/gil_planted.py", name, str(SECONDS)]
        if python.root != "/":
            command = ["/usr/sbin/chroot", python.root] + command
        self.p = subprocess.Popen([*priority, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, env=env,
                                  cwd="/")
        running.append(self.p)
        if self.p.stdout.readline().strip() != "ready":
            raise RuntimeError("%s: %s did not start" % (python.name, name))

    def end(self):
        self.logs = []
        for line in self.p.communicate(timeout=200)[0].splitlines():
            word, name, tid, turns = line.split(" ", 3)
            self.logs.append((name, int(tid), json.loads(turns)))


def overlap(a, b):
    """The ns that two sorted lists of disjoint (from, to) intervals have in common"""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def true_pairs(scene):
    """{(holder, waiter): ns} by the program's own clock"""
    holds, waits = collections.defaultdict(list), collections.defaultdict(list)
    for name, tid, turns in scene.logs:
        holds[name, tid] += [(t[0], t[1]) for t in turns]
        waits[name, tid] += [(a[2], b[0]) for a, b in zip(turns, turns[1:])]
    if scene.name == "io":
        tid = next(tid for name, tid, _ in scene.logs if name == "crunch")
        holds["crunch", tid] = gil_lib.preloaded_holds(scene.truth, tid)
        os.unlink(scene.truth)
    pairs = collections.Counter()
    for (holder, a), h in holds.items():
        for (waiter, b), w in waits.items():
            if a != b:
                pairs[holder, waiter] += overlap(sorted(h), sorted(w))
    return pairs


def blamed_pairs(out, pid):
    """({(holder, waiter): ns}, the report's first finding)"""
    p = subprocess.run([gil_lib.SONDE, "report", out, "-p", str(pid), "--format", "json", "gil"], stdout=subprocess.PIPE,
                       universal_newlines=True, check=True, timeout=200)
    report = json.loads(p.stdout)
    pairs = collections.Counter()
    for row in report["tables"]["blame"]:
        pairs[row["holder"].split(" ")[-1], row["waiter"].split(" ")[-1]] += row["wait_ns"]
    people = subprocess.run([gil_lib.SONDE, "report", out, "-p", str(pid), "gil"], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True, timeout=200).stdout
    return pairs, report["tables"]["blame"][0] if report["tables"]["blame"] else {}, people.split("\n")[0]


def check_scene(python, scene, out):
    """({planted pair: error}, [faults])"""
    true = true_pairs(scene)
    mine, top, finding = blamed_pairs(out, scene.p.pid)
    said = "\n".join("%s -> %s: %.3f ms, truly %.3f" % (h, w, mine[h, w] / 1e6, true[h, w] / 1e6)
                     for h, w in set(true) | {k for k, _ in mine.most_common(8)})
    planted = PLANTED[scene.name]
    most = max(planted, key=lambda pair: true[pair])
    wrong = []
    if (top.get("holder", "").split(" ")[-1], top["waiter"].split(" ")[-1]) != most or \
            not top["holder"].startswith("gil_planted.py:"):
        wrong.append("on top: %s" % top)
    apart = {pair: (mine[pair] - true[pair]) / true[pair] for pair in planted if true[pair]}
    if len(apart) < len(planted) or any(abs(x) > 0.02 for x in apart.values()):
        wrong.append("%s\n%s" % (apart, said))
    worst = collections.Counter()
    for (holder, _), ns in true.items():
        worst[holder] += ns
    if "% of all waiting for the GIL was caused by gil_planted.py:" not in finding or \
            " %s, holding the GIL for up to " % worst.most_common(1)[0][0] not in finding:
        wrong.append(finding)
    return apart, wrong


def act(python, place, names, options):
    """Records the scenes side by side. Returns {name: (errors, faults)}."""
    scenes = [Scene(python, place, name, gil_lib.REALTIME) for name in names]
    out = os.path.join(place.here, "blame.sonde")
    pids = [x for s in scenes for x in ("-p", str(s.p.pid))]
    sonde = Sonde(out, "-t", "gil", *options, "-d", "60", *pids)
    running.append(sonde.process)
    for s in scenes:
        s.p.stdin.write("\n")
        s.p.stdin.flush()
    for s in scenes:
        s.end()
    if sonde.end(None):
        raise RuntimeError(sonde.messages)
    return {s.name: check_scene(python, s, out) for s in scenes}


def check_python(python, place, options):
    """
    Without --gil=full sonde misses that another thread takes the free GIL while the woken waiter has no CPU yet, and counts that time
    for the waiter. The programs run before all others, but a hypervisor may still take the CPUs: a scene may be repeated.
    """
    result = act(python, place, PLANTED, options)
    for _ in range(1, TRIES):
        again = [name for name, (_, wrong) in result.items() if wrong]
        if not again:
            break
        tap.note("%s: again: %s" % (python.name, [(n, result[n][1]) for n in again]))
        # one by one, so that they have the CPUs to themselves
        for name in again:
            result.update(act(python, place, [name], options))
    for name, (_apart, wrong) in result.items():
        tap.ok(not wrong, "%s, %s: the planted pair is on top, its time within 2%%, and said in words" % (python.name, name),
               "\n".join(wrong))
    tap.note("%s: %s" % (python.name, {n: "%+.2f%%" % (100 * max(a.values(), key=abs)) for n, (a, _) in result.items() if a}))


def run(selects, options):
    """Runs the test for each CPython for which selects(name) is true."""
    try:
        with gil_lib.Workplace() as place:
            gil_lib.each_python("blame", lambda p: check_python(p, place, options) if selects(p.name) else None)
    finally:
        for p in running:
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)
                p.wait()
    tap.done()
