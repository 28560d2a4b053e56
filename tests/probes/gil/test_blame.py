#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""
Planted causes: known functions hold the GIL for a known time while known functions
wait. What `report gil` blames on whom is what the program's own clock says, in each CPython.
"""
import collections
import json
import os
import signal
import subprocess
import sys

import gil_lib

tap = gil_lib.Tap()
SECONDS = 1.6
OPTIONS = sys.argv[1:]

# scene: the planted pairs, holder and waiter; the first is to be on top
PLANTED = {
    "known": [("keeper", "second_victim"), ("keeper", "first_victim")],
    "three": [("sixty", "sufferer"), ("sixty", "thirty"), ("sixty", "ten"), ("thirty", "sufferer"), ("thirty", "sixty"),
              ("ten", "sufferer")],
    "long": [("in_c", "outside")],
    "convoy": [("convoy", "convoy")],
    "io": [("crunch", "short_io")],
}


class Scene:
    """A process that acts one of the scenes."""

    def __init__(self, python, name):
        outside, inside = place.inside(python.root)
        self.name = name
        self.truth = os.path.join(outside, "truth-%s.json" % name)
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": inside, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
        # what pure Python does is logged by the preloaded library
        preload = ["/usr/bin/env", "LD_PRELOAD=%s/gil_truth.so" % inside, "GIL_TRUTH=%s/truth-%s.json" % (inside, name)]
        command = (preload if name == "io" else []) + [python.exe, "-S", inside + "/gil_planted.py", name, str(SECONDS)]
        if python.root != "/":
            command = ["/usr/sbin/chroot", python.root] + command
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, env=env,
                                  cwd="/")
        running.append(self.p)
        if self.p.stdout.readline().strip() != "ready":
            raise RuntimeError("%s: %s did not start" % (python.name, name))

    def end(self):
        self.logs = []
        for line in self.p.communicate(timeout=60)[0].splitlines():
            word, name, tid, turns = line.split(" ", 3)
            self.logs.append((name, int(tid), json.loads(turns)))


def overlap(a, b):
    """ns that two lists of (from, to), each in order and apart, have in common."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def true_pairs(scene):
    """{(holder, waiter): ns}"""
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
                       universal_newlines=True, check=True, timeout=60)
    report = json.loads(p.stdout)
    pairs = collections.Counter()
    for row in report["tables"]["blame"]:
        pairs[row["holder"].split(" ")[-1], row["waiter"].split(" ")[-1]] += row["wait_ns"]
    people = subprocess.run([gil_lib.SONDE, "report", out, "-p", str(pid), "gil"], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True, timeout=60).stdout
    return pairs, report["tables"]["blame"][0] if report["tables"]["blame"] else {}, people.split("\n")[0]


def check_scene(python, scene, out):
    true = true_pairs(scene)
    mine, top, finding = blamed_pairs(out, scene.p.pid)
    said = ["%s -> %s: %.3f ms, truly %.3f" % (h, w, mine[h, w] / 1e6, true[h, w] / 1e6) for h, w in
            set(true) | {k for k, _ in mine.most_common(8)}]
    name = "%s, %s" % (python.name, scene.name)
    planted = PLANTED[scene.name]
    most = max(planted, key=lambda pair: true[pair])
    tap.ok((top["holder"].split(" ")[-1], top["waiter"].split(" ")[-1]) == most and
           top["holder"].startswith("gil_planted.py:"), "%s: the planted pair is on top" % name, "%s\n%s" % (top, "\n".join(said)))
    apart = {pair: (mine[pair] - true[pair]) / true[pair] for pair in planted if true[pair]}
    tap.ok(len(apart) == len(planted) and all(abs(x) <= 0.02 for x in apart.values()),
           "%s: its time within 2%%" % name, "%s\n%s" % (apart, "\n".join(said)))
    worst = collections.Counter()
    for (holder, _), ns in true.items():
        worst[holder] += ns
    holder = worst.most_common(1)[0][0]
    tap.ok("%% of all waiting was caused by gil_planted.py" in finding.replace("%", "%%") and
           " %s, holding up to " % holder in finding, "%s: said in words" % name, finding)
    return apart


def check_python(python):
    scenes = [Scene(python, name) for name in PLANTED]
    out = os.path.join(place.here, "blame.sonde")
    pids = [x for s in scenes for x in ("-p", str(s.p.pid))]
    sonde = subprocess.Popen([gil_lib.SONDE, "record", "-t", "gil", *OPTIONS, "-f", "-o", out, "-d", "60", *pids],
                             stderr=subprocess.PIPE, universal_newlines=True)
    running.append(sonde)
    while "tracing into" not in (sonde.stderr.readline() or "tracing into"):
        pass
    for s in scenes:
        s.p.stdin.write("\n")
        s.p.stdin.flush()
    for s in scenes:
        s.end()
    messages = sonde.communicate(timeout=60)[1]
    worst = {s.name: check_scene(python, s, out) for s in scenes}
    tap.ok(sonde.returncode == 0, "%s: recorded" % python.name, messages)
    tap.note("%s: %s" % (python.name, {n: "%+.2f%%" % (100 * max(a.values(), key=abs)) for n, a in worst.items() if a}))
    if not os.environ.get("GIL_PYTHON"):
        os.unlink(out)


running = []
try:
    with gil_lib.Workplace() as place:
        gil_lib.each_python(tap, "blame", check_python)
finally:
    for p in running:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()
tap.end()
