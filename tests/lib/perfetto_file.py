# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads Perfetto files with the official message classes (PyPI `perfetto`) as trace_processor does: it orders packets by
time, keeps one stack of slices per track and one table of interned names per sequence, and chains each CPU's switches."""
import collections
import os
import subprocess
import sys

from file_lock import locked

VERSION = "0.59.1"
SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDED = 1, 2


def install(where):
    """Installs the package in this folder. Returns why it can't, else None."""
    done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", where + ".new",
                           f"perfetto=={VERSION}"], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        return f"no PyPI package perfetto: {lines[-1]}"
    os.rename(where + ".new", where)
    return None


def classes():
    """(The module of message classes, None), installed in the build directory by the first call; (None, reason) if it can't be."""
    where = os.path.join(os.environ["B"], f"perfetto-{VERSION}")
    with locked(where):
        reason = None if os.path.isdir(where) else install(where)
    if reason:
        return None, reason
    sys.path.insert(0, where)
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    _extend(perfetto_trace_pb2)
    return perfetto_trace_pb2, None


extension = {}


def _extend(pb):
    """Perfetto's extensions for GPUs, which the package leaves out: gpu_interned_data.proto, gpu_track_event.proto."""
    if extension:
        return
    from google.protobuf import descriptor_pb2, descriptor_pool
    file = descriptor_pb2.FileDescriptorProto(name="gpu_extensions.proto", package="perfetto.protos", syntax="proto2",
                                              dependency=[pb.DESCRIPTOR.name])
    message = file.message_type.add(name="GpuCorrelation")
    for i, field in enumerate(("render_stage_submission_event_ids", "render_stage_wait_event_ids")):
        message.field.add(name=field, number=i + 1, type=4, label=3)
    for name, number, of, kind, label in (("compute_kernels", 1000, "InternedData", "InternedComputeKernel", 3),
                                          ("compute_arg_names", 1001, "InternedData", "InternedComputeArgName", 3),
                                          ("gpu_correlation", 3000, "TrackEvent", "GpuCorrelation", 1)):
        file.extension.add(name=name, number=number, extendee=".perfetto.protos." + of, label=label, type=11,
                           type_name=".perfetto.protos." + kind)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    for e in file.extension:
        extension[e.name] = pool.FindExtensionByName("perfetto.protos." + e.name)
    from google.protobuf import message_factory
    message_factory.GetMessageClassesForFiles([file.name], pool)


class Slice:
    """
    A slice, or an instant, whose start is its end. An end of None means that the slice has no end. submissions: ids of the GPU work
    that it submitted.
    """

    def __init__(self, track, start, name, category, args, event, instant=False):
        self.track, self.start, self.name, self.category, self.args = track, start, name, category, args
        self.end = start if instant else None
        self.instant = instant
        self.flows, self.flows_end = list(event.flow_ids), list(event.terminating_flow_ids)
        self.depth = 0
        correlation = event.Extensions[extension["gpu_correlation"]]
        self.submissions = list(correlation.render_stage_submission_event_ids)


class GpuSlice:
    """A GpuRenderStageEvent with its interned names resolved. context is an id of this file; kernel is (name, demangled, arch) or None."""

    def __init__(self, packet, sequence):
        e, t = packet.gpu_render_stage_event, sequence.tables
        self.start, self.end, self.id, self.gpu = packet.timestamp, packet.timestamp + e.duration, e.event_id, e.gpu_id
        self.name = t["name"][e.name_iid]
        self.queue, self.queue_iid = t["specification"][e.hw_queue_iid].name, e.hw_queue_iid
        self.stage, self.category = t["specification"][e.stage_iid].name, t["specification"][e.stage_iid].category
        self.context, self.pid = e.context, t["context"][e.context].pid
        assert t["context"][e.context].Api.Name(t["context"][e.context].api) == "CUDA"
        k = t["kernel"][e.kernel_iid] if e.kernel_iid else None
        self.kernel = k and (k.name, k.demangled_name, k.arch)
        self.grid = (e.launch.grid_size.x, e.launch.grid_size.y, e.launch.grid_size.z)
        self.block = (e.launch.workgroup_size.x, e.launch.workgroup_size.y, e.launch.workgroup_size.z)
        self.args = {}
        for a in e.launch.args:
            kind = a.WhichOneof("value")
            value = t["string"][a.string_value_iid] if kind == "string_value_iid" else getattr(a, kind)
            self.args[t["launch argument"][a.name_iid]] = value


class Sequence:
    def __init__(self):
        self.valid = False
        self.tables = {}

    def take(self, packet, errors):
        if packet.sequence_flags & CLEARED:
            self.valid, self.tables = True, collections.defaultdict(dict)
        elif packet.sequence_flags & NEEDED and not self.valid:
            errors.append("a packet needs incremental state, and none is valid")
        data = packet.interned_data
        for kind, field in (("category", data.event_categories), ("name", data.event_names),
                            ("argument", data.debug_annotation_names)):
            for entry in field:
                self.tables[kind][entry.iid] = entry.name
        for kind, field in (("string", data.debug_annotation_string_values), ("function", data.function_names),
                            ("source", data.source_paths), ("path", data.mapping_paths)):
            for entry in field:
                self.tables[kind][entry.iid] = entry.str.decode()
        for entry in data.Extensions[extension["compute_arg_names"]]:
            self.tables["launch argument"][entry.iid] = entry.name
        for kind, field in (("mapping", data.mappings), ("frame", data.frames), ("callstack", data.callstacks),
                            ("counters", data.gpu_counter_descriptors), ("specification", data.gpu_specifications), ("context", data.graphics_contexts),
                            ("kernel", data.Extensions[extension["compute_kernels"]])):
            for entry in field:
                self.tables[kind][entry.iid] = entry
        if packet.HasField("trace_packet_defaults"):
            self.tables["defaults"] = packet.trace_packet_defaults

    def callstack(self, iid):
        """((function, source, line), ..), outermost first. Raises KeyError if an id is not interned."""
        out = []
        for number in self.tables["callstack"][iid].frame_ids if iid else ():
            f = self.tables["frame"][number]
            for path in self.tables["mapping"][f.mapping_id].path_string_ids:
                assert self.tables["path"][path]
            out.append((self.tables["function"][f.function_name_id],
                        self.tables["source"][f.source_path_iid] if f.source_path_iid else "", f.line_number))
        return tuple(out)


class PerfettoFile:
    """
    tracks: uuid -> TrackDescriptor; slices: all, also instants; counters: uuid -> [(time, value)]; switches:
    cpu -> [(time, prev tid or None, prev state, next tid, next name)]; wakings: [(time, tid, cpu, waker, flags)];
    samples: [(time, cpu, pid, tid, callstack)]; work: GpuSlices; gpus: GpuInfo.Gpu messages;
    processes: pid -> ProcessTree.Process; clocks: [{clock: time}]; errors: what trace_processor would report
    """

    def __init__(self, pb, data):
        trace = pb.Trace()
        trace.ParseFromString(data)
        self.packets = trace.packet
        self.tracks, self.processes, self.counters = {}, {}, collections.defaultdict(list)
        self.slices, self.wakings, self.clocks, self.errors, self.samples = [], [], [], [], []
        self.work, self.gpus, self.uuids = [], [], set()
        self._gpu_counters = collections.defaultdict(list)
        self.system = None
        self._switches = collections.defaultdict(list)
        self._events = []
        self._sequences = collections.defaultdict(Sequence)
        for packet in self.packets:
            self._packet(packet)
        self._events.sort(key=lambda e: e[0])
        self._check_flows()
        stacks = collections.defaultdict(list)
        for _, event in self._events:
            self._track_event(event, stacks)
        self.open = [s for stack in stacks.values() for s in stack]
        self.switches = {cpu: self._chain(cpu, s) for cpu, s in self._switches.items()}

    def _check_flows(self):
        """trace_processor drops a flow whose end precedes its begin."""
        ended = set()
        for _, (time, event, *_) in self._events:
            if ended.intersection(event.flow_ids):
                self.errors.append(f"a flow ends before it begins at {time}")
            ended.update(event.terminating_flow_ids)

    def _packet(self, packet):
        sequence = self._sequences[packet.trusted_packet_sequence_id]
        sequence.take(packet, self.errors)
        if packet.HasField("track_descriptor"):
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        elif packet.HasField("process_tree"):
            for p in packet.process_tree.processes:
                self.processes[p.pid] = p
        elif packet.HasField("clock_snapshot"):
            self.clocks.append({c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks})
        elif packet.HasField("system_info"):
            self.system = packet.system_info
        elif packet.HasField("gpu_info"):
            self.gpus = list(packet.gpu_info.gpus)
        elif packet.HasField("trace_uuid"):
            self.uuids.add((packet.trace_uuid.msb, packet.trace_uuid.lsb))
        elif packet.HasField("gpu_counter_event"):
            self._gpu_counter(packet.gpu_counter_event, packet.timestamp, sequence)
        elif packet.HasField("gpu_render_stage_event"):
            try:
                self.work.append(GpuSlice(packet, sequence))
            except KeyError as e:
                self.errors.append(f"GPU work: {e} is not interned")
        elif packet.HasField("ftrace_events"):
            if self.system is None:
                self.errors.append("an ftrace packet precedes the kernel's version")
            self._ftrace(packet.ftrace_events)
        elif packet.HasField("track_event"):
            self._resolve(packet, sequence)
        elif packet.HasField("perf_sample"):
            sample = packet.perf_sample
            try:
                self.samples.append((packet.timestamp, sample.cpu, sample.pid, sample.tid, sequence.callstack(sample.callstack_iid)))
                assert sequence.tables["defaults"].perf_sample_defaults.timebase.period
            except (KeyError, AttributeError) as e:
                self.errors.append(f"sample: {e} is not interned")

    def _gpu_counter(self, event, time, sequence):
        try:
            known = sequence.tables["counters"][event.counter_descriptor_iid]
            assert known.gpu_id == event.gpu_id
            names = {s.counter_id: s.name for s in known.counter_descriptor.specs}
            for c in event.counters:
                self._gpu_counters[event.gpu_id, names[c.counter_id]].append((time, c.double_value))
        except KeyError as e:
            self.errors.append(f"GPU counter: {e} is not interned")

    def gpu_counter(self, gpu, name):
        """[(time, value from then on)], as trace_processor stores it: the file's events hold the value of the time before them."""
        events = self._gpu_counters.get((gpu, name), [])
        return [(a[0], b[1]) for a, b in zip(events, events[1:])] + [(t, 0) for t, _ in events[-1:]]

    def _resolve(self, packet, sequence):
        event = packet.track_event
        if event.track_uuid not in self.tracks:
            self.errors.append(f"an event on an unknown track {event.track_uuid}")
        if event.type == COUNTER:
            value = event.double_counter_value if event.HasField("double_counter_value") else event.counter_value
            self.counters[event.track_uuid].append((packet.timestamp, value))
            return
        try:
            name = sequence.tables["name"][event.name_iid] if event.name_iid else event.name
            category = ",".join(sequence.tables["category"][i] for i in event.category_iids)
            callstack = sequence.callstack(event.callstack_iid)
            args = {sequence.tables["argument"][a.name_iid]: self._value(a, sequence) for a in event.debug_annotations}
        except KeyError as e:
            self.errors.append(f"nothing interned as {e}")
            return
        self._events.append((packet.timestamp, (packet.timestamp, event, name, category, args, callstack)))

    @staticmethod
    def _value(a, sequence):
        kind = a.WhichOneof("value")
        return sequence.tables["string"][a.string_value_iid] if kind == "string_value_iid" else getattr(a, kind)

    def _track_event(self, resolved, stacks):
        time, event, name, category, args, callstack = resolved
        stack = stacks[event.track_uuid]
        if event.type == SLICE_END:
            if stack:
                stack.pop().end = time
            else:
                self.errors.append(f"an end without a beginning at {time}")
            return
        s = Slice(event.track_uuid, time, name, category, args, event, event.type == INSTANT)
        s.depth, s.callstack = len(stack), callstack
        self.slices.append(s)
        if not s.instant:
            stack.append(s)

    def _ftrace(self, bundle):
        rows = self._switches[bundle.cpu]
        for e in bundle.event:
            if e.HasField("sched_switch"):
                w = e.sched_switch
                rows.append((e.timestamp, w.prev_pid, w.prev_state, w.next_pid, w.next_comm))
            elif e.HasField("sched_waking"):
                self.wakings.append((e.timestamp, e.sched_waking.pid, e.sched_waking.target_cpu, e.pid,
                                     e.common_flags))
        c, time = bundle.compact_sched, 0
        for i, delta in enumerate(c.switch_timestamp):
            time += delta
            rows.append((time, None, c.switch_prev_state[i], c.switch_next_pid[i],
                         c.intern_table[c.switch_next_comm_index[i]]))

    def _chain(self, cpu, rows):
        """The runs of a CPU. A compact switch does not name the previous thread: it is the last one that was switched to."""
        rows.sort(key=lambda r: r[0])
        out, running = [], None
        for time, prev, state, tid, name in rows:
            if prev is None and running is None:
                self.errors.append(f"CPU {cpu} begins with a compact switch")
            if prev is not None and running is not None and prev != running:
                self.errors.append(f"CPU {cpu}: {prev} leaves where {running} ran")
            out.append((time, running if prev is None else prev, state, tid, name))
            running = tid
        return out

    def runs(self):
        """[(cpu, tid, start, end, state)] of all threads except the idle threads."""
        out = []
        for cpu, rows in self.switches.items():
            for a, b in zip(rows, rows[1:]):
                if a[3]:
                    out.append((cpu, a[3], a[0], b[0], b[2]))
            if rows and rows[-1][3]:
                self.errors.append(f"CPU {cpu}: {rows[-1][3]} never leaves")
        return out

    def thread_of(self, uuid):
        """(pid, tid) of a track or of its nearest ancestor that has one; None if no thread owns the track."""
        t = self.tracks[uuid]
        while not t.HasField("thread"):
            if not t.parent_uuid or t.parent_uuid not in self.tracks:
                return None
            t = self.tracks[t.parent_uuid]
        return t.thread.pid, t.thread.tid

    def counter(self, name, pid=0):
        """[[(time, value)]] of the counters with that name, of one process if pid is given."""
        out = []
        for uuid, values in self.counters.items():
            t = self.tracks[uuid]
            parent = self.tracks[t.parent_uuid].process.pid if t.parent_uuid else 0
            if t.name == name and parent == pid and t.HasField("counter"):
                out.append(values)
        return out
