# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares what a program did with what the shim reported.

The two are joined as sonde joins them: a call of the driver that the shim reported lies, by thread and time, within what
the program noted around its call; the work on the device has that call's correlation id. So counts, names, threads,
streams, order and the clock are all checked by the one join.
"""
import bisect
import collections
import statistics

SHARE, NS = 0.02, 2000  # how far a duration may be off: 2% or 2 us
EVENTS_NS = 5000  # what a pair of CUDA's events may add to a kernel's time: some 2.5 us on an H100
DEVICE_MEMORY = 3  # GPU_MEMORY_DEVICE of bpf/core/shim.h
NEAR = 1000000  # ns: what a failure shows around a wait
WITH_STREAM = (2, 3)  # kinds of a wait whose record has the stream: of a stream for an event, of the host for a stream
RECORDS = {"kernel": "kernel", "copy": "memcpy", "set": "memset", "graph": "graph"}


def far_off(reported, want):
    return abs(reported - want) > max(SHARE * want, NS)


def assign_calls(ops, calls):
    """A call for each operation by thread and time: (pairs, operations without, calls without, how far outside at most)."""
    by_thread, lists = collections.defaultdict(list), collections.defaultdict(list)
    for o in ops:
        by_thread[o["tid"]].append(o)
    for c in calls:
        lists[c["tid"]].append(c)
    pairs, lonely, extra, worst = [], [], [], 0
    for tid in set(by_thread) | set(lists):
        mine, theirs = sorted(by_thread[tid], key=lambda o: o["begin"]), sorted(lists[tid], key=lambda c: c["start"])
        at = 0
        for o in mine:
            # those that ended before this one began belong to no operation
            while at < len(theirs) and (theirs[at]["start"] + theirs[at]["time"]) / 2 < o["begin"] - NS:
                extra.append(theirs[at])
                at += 1
            if at < len(theirs) and (theirs[at]["start"] + theirs[at]["time"]) / 2 <= o["end"] + NS:
                c = theirs[at]
                at += 1
                worst = max(worst, o["begin"] - c["start"], c["time"] - o["end"])
                pairs.append((o, c))
            else:
                lonely.append(o)
        extra += theirs[at:]
    return pairs, lonely, extra, worst


def known_done(ops):
    """For each operation when the host knew that it had ended: the first end of a wait, for its stream or for all, that began
    when the operation had been enqueued."""
    waits = collections.defaultdict(list)
    for o in sorted((o for o in ops if o["op"] == "sync" and o["kind"] in (3, 4)), key=lambda o: -o["begin"]):
        of = waits["all" if o["kind"] == 4 else o["stream"]]
        # latest first: (-begin, the first end of those that begin then or later)
        of.append((-o["begin"], min(o["end"], of[-1][1] if of else o["end"])))
    found = {}
    for o in ops:
        if o["op"] in RECORDS:
            ends = []
            for of in (waits["all"], waits[o["stream"]] if o["stream"] else []):
                at = bisect.bisect_right(of, (-o["end"], 1 << 63))
                ends += [of[at - 1][1]] if at else []
            found[id(o)] = min(ends) if ends else None
    return found


def same_work(o, r, names):
    """Is this record that operation?"""
    if o["op"] == "kernel":
        return names.get(r["name"]) == o["name"] and (r["grid_x"], r["block_x"]) == (o["grid"], o["block"])
    if o["op"] == "copy":
        return (r["kind"], r["bytes"]) == (o["kind"], o["bytes"])
    if o["op"] == "set":
        return r["bytes"] == o["bytes"]
    return True


def brief(list_of):
    return [{k: v for k, v in e.items() if k in ("op", "name", "tid", "stream", "begin", "end", "kind", "bytes", "function", "start",
                                                 "time", "correlation", "text", "graph", "context")} for e in list_of[:4]]


class Joined:
    """The join of a phase: `reported` has to hold nothing else that lies in its time."""

    def __init__(self, ops, reported, begin=0, end=1 << 63):
        self.ops, self.reported = ops, reported
        work = [o for o in ops if o["op"] in RECORDS]
        self.calls = [c for c in reported.got["call"] if begin <= c["start"] < end]
        self.pairs, self.lonely, self.extra_calls, self.call_off = assign_calls(work, self.calls)
        by_correlation = collections.defaultdict(list)
        for kind in RECORDS.values():
            for r in reported.got[kind]:
                by_correlation[r["correlation"]].append((kind, r))
        self.work, self.wrong, seen = [], [], set()
        for o, c in self.pairs:
            records = by_correlation[c["correlation"]]
            seen.add(c["correlation"])
            right = [r for kind, r in records if kind == RECORDS[o["op"]] and same_work(o, r, reported.names)]
            if o["op"] == "graph":
                self.work.append((o, c, [r for _, r in records]))
            elif len(right) == 1 and len(records) == 1:
                self.work.append((o, c, right))
            else:
                self.wrong.append((o, [r for _, r in records]))
        self.extra = [r for kind in RECORDS.values() for r in reported.got[kind]
                      if r["correlation"] not in seen and begin <= r["start"] < end]

    def check(self, run, label):
        counts = dict(collections.Counter(o["op"] for o in self.ops if o["op"] in RECORDS))
        run.ok(self.pairs and not self.lonely and not self.extra_calls, f"{label}: each launch, copy and set has its call, by thread and time",
               f"without: {len(self.lonely)} {brief(self.lonely)}", f"too many: {len(self.extra_calls)} {brief(self.extra_calls)}",
               calls=len(self.pairs), outside_ns=max(0, round(self.call_off)))
        run.ok(self.work and not self.wrong and not self.extra,
               f"{label}: each call has its kernel, copy, set or graph exactly once, with its name, size and bytes",
               f"wrong: {len(self.wrong)} {[(brief([o]), brief(r)) for o, r in self.wrong[:3]]}",
               f"too many: {len(self.extra)} {brief(self.extra)}", **counts)
        if self.work:
            self.check_streams(run, label)
            self.check_clock(run, label)
        else:
            run.skip(f"{label}: streams and the clock", "there is nothing to look at")

    def streams(self):
        """For each of the program's own streams the context and stream that its work was in."""
        found = collections.defaultdict(set)
        for o, _, records in self.work:
            for r in records if o["stream"] else ():
                found[o["stream"]].add((r["context"], r["stream"]))
        return found

    def check_streams(self, run, label):
        ours, theirs = self.streams(), collections.defaultdict(set)
        for number, places in ours.items():
            for place in places:
                theirs[place].add(number)
        run.ok(all(len(v) == 1 for v in list(ours.values()) + list(theirs.values())), f"{label}: streams are distinguished, one for one",
               dict(ours), dict(theirs), streams=len(ours))

    def check_clock(self, run, label):
        """On the device not before the call began, and ended when a wait had ended."""
        done, early, late, backwards = known_done(self.ops), 0, 0, 0
        for o, _c, records in self.work:
            for r in records:
                early = max(early, o["begin"] - r["start"])
                backwards += r["time"] < r["start"]
                if done.get(id(o)):
                    late = max(late, r["time"] - done[id(o)])
        run.ok(early <= self.reported.error and late <= self.reported.error and not backwards,
               f"{label}: times on the device lie between the launch and the wait", f"may be off by {self.reported.error} ns",
               begins_early_ns=early, ends_late_ns=late, said_error_ns=self.reported.error - 2000, backwards=backwards)


def check_durations(run, label, joined, simulated):
    """Against CUDA's events and, on a GPU, against what kernels read from the device's own timer."""
    by_event = [(r[0]["time"] - r[0]["start"], o["event_ns"]) for o, _, r in joined.work if o["event_ns"]]
    if len(by_event) < 5:
        run.skip(f"{label}: durations are those of CUDA's events", f"the host was quick enough for {len(by_event)} of them only")
    else:
        # the events themselves take the same time around each kernel
        pair = statistics.median(e - t for t, e in by_event)
        bad = [(t, e) for t, e in by_event if far_off(t, e - pair)]
        run.ok(not bad and -NS <= pair <= EVENTS_NS, f"{label}: durations are those of CUDA's events, within 2% or 2 us", f"reported, event (ns): {bad[:8]}",
               kernels=len(by_event), events_take_ns=round(pair), off_ns=max(abs(t - e + pair) for t, e in by_event), shortest_ns=min(e for _, e in by_event))
    inside = [(r[0]["time"] - r[0]["start"], o["inside_ns"]) for o, _, r in joined.work if o["inside_ns"]]
    if simulated:
        run.skip(f"{label}: durations hold what the kernel itself measured", "the doubles run no code")
        return
    off = [t - i for t, i in inside]
    run.ok(inside and all(-NS <= d <= NS for d in off), f"{label}: durations hold what the kernel itself measured",
           f"reported, inside (ns): {inside[:8]}", kernels=len(inside), longer_by_ns_from=min(off, default=None),
           longer_by_ns_to=max(off, default=None))


def check_graphs(run, label, joined, nodes):
    launches = [(o, r) for o, _, r in joined.work if o["op"] == "graph"]
    if nodes:
        right = [1 for _, r in launches if len(r) == 4 and all(e.get("graph_node") for e in r)]
        what = "three kernels and a set as nodes"
    else:
        right = [1 for _, r in launches if len(r) == 1 and "graph_node" not in r[0]]
        what = "one span"
    run.ok(launches and len(right) == len(launches), f"{label}: each launch of a graph is {what}",
           [brief(r) for _, r in launches[:2]], launches=len(launches))


def pair_up(candidates):
    """As many pairs as there can be: candidates[i] are the records that the i-th wait can be. {record: wait}."""
    taken = {}

    def place(i, tried):
        for k in candidates[i]:
            if k not in tried:
                tried.add(k)
                if k not in taken or place(taken[k], tried):
                    taken[k] = i
                    return True
        return False

    for i in range(len(candidates)):
        place(i, set())
    return taken


def check_waits(run, label, joined):
    """A synchronisation for each that the program made, at its time and in its stream; what else CUPTI reports is only counted.

    Threads wait side by side, and the program notes more than the wait itself. So a record can lie within the notes of two
    waits. The stream distinguishes most of these. Waits for an event or for the whole context have none: these are paired so that
    as many as possible have a record, because the closest record is not always the right one.
    """
    waits, reported, streams = [o for o in joined.ops if o["op"] == "sync"], joined.reported, joined.streams()

    def can_be(o, r):
        where = streams.get(o["stream"]) if o["kind"] in WITH_STREAM else None
        return r["kind"] == o["kind"] and (not where or (r["context"], r["stream"]) in where) and \
            r["start"] >= o["begin"] - reported.error and r["time"] <= o["end"] + reported.error

    taken = pair_up([[k for k, r in enumerate(reported.got["sync"]) if can_be(o, r)] for o in waits])
    found = set(taken.values())
    missing = [o for i, o in enumerate(waits) if i not in found]
    left = [r for k, r in enumerate(reported.got["sync"]) if k not in taken]
    others = collections.Counter(r["kind"] for r in left)
    near = [r for r in left if any(r["kind"] == o["kind"] and r["start"] < o["end"] + NEAR and r["time"] > o["begin"] - NEAR
                                   for o in missing)]
    run.ok(waits and not missing, f"{label}: each wait is reported, at its time", f"{len(missing)} not: {brief(missing)}",
           f"without a wait, near these: {brief(near)}", f"may be off by {reported.error} ns", waits=len(waits), others=dict(others))


def check_memory(run, label, ops, reported):
    """The program notes memory of the device alone. It may get an address again that it has freed."""
    device = [r for r in reported.got["memory"] if r["memory"] == DEVICE_MEMORY]
    got = collections.Counter((r["operation"], r["address"], r["bytes"] if r["operation"] == 1 else 0) for r in device)
    want = collections.Counter((1 if o["op"] == "alloc" else 2, o["address"], o["bytes"]) for o in ops if o["op"] in ("alloc", "free"))
    run.ok(want and got == want, f"{label}: allocations with their address and size", f"missing: {list((want - got).items())[:4]}",
           f"too many: {list((got - want).items())[:4]}", reported=sum(got.values()), made=sum(want.values()),
           pinned=len(reported.got["memory"]) - len(device))
