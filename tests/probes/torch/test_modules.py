#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report modules: shares of the time by path of modules, compared with clocks in the program's own forward hooks. And report torch by module: each
operator and backward node belongs to its module.
test: timeout=300"""
import json

from bounds import share
from planted import say
from tap import done, ok
from torch_env import Recording, python

STEPS = 20

PROGRAM = """
import json
import random
import sys
import time

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(256, 256)

    def forward(self, x):
        query = self.query(x)
        return torch.softmax(query @ query.transpose(-1, -2), -1) @ x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.up, self.down = nn.Linear(256, 512), nn.Linear(512, 256)

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.down(torch.relu(self.up(x)))


def model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(Block(), Block())
            self.head = nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.blocks(x))

    return Model()


def before(module, args):
    running.append((type(module).__name__, time.thread_time_ns()))


def after(module, args, out):
    name, start = running.pop()
    path = " > ".join([n for n, _ in running] + [name])
    spent[path] = spent.get(path, 0) + time.thread_time_ns() - start


torch.set_num_threads(1)
spent, running = {}, []
net = model()
for module in net.modules():
    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
x = torch.rand(4, 64, 256)
print("ready", flush=True)
input()
for _ in range(int(sys.argv[1])):
    net(x).sum().backward()
# steps differ, as equal ones could keep in step with the sampling clock
while not int(sys.argv[1]) and spent.get("Model", 0) < 4e9:
    net(x[:random.randint(1, 4)]).sum().backward()
print(json.dumps(spent))
print("done", flush=True)
input()
"""


def sampled():
    """Shares of 4 s of CPU time in forward(), with a sample in each ms"""
    r = Recording([python(), "-c", PROGRAM, "0"], "-F", "999", families="sample,proc")
    truth = json.loads(r.output[-1])
    report = json.loads(say("report", r.path, "modules", "--format", "json"))
    found = {row["module"]: row["total_samples"] for row in report["tables"]["modules"]}
    ok(set(found) == set(truth), "exactly the program's modules were found", set(found) ^ set(truth))
    samples = found["Model"]
    why = "the clocks are around forward()"
    for path, ns in truth.items():
        share(f"{path}: its share", found.get(path, 0) / samples, ns / truth["Model"], samples, systematic=0.01, why=why)
    linear = sum(row["samples"] for row in report["tables"]["classes"] if row["class"] == "Linear")
    true = sum(ns for path, ns in truth.items() if path.endswith("Linear")) / truth["Model"]
    share("the share of a class", linear / samples, true, samples, systematic=0.01, why=why)


def operators():
    """A Linear calls addmm once, and its backward node mm twice; but once in the first one, as no gradient of the model's input is needed."""
    r = Recording([python(), "-c", PROGRAM, str(STEPS)], "--torch=stacks")
    report = json.loads(say("report", r.path, "torch", "--group-by", "module", "--format", "json"))
    rows = report["tables"]["operators"]
    block = "Model > Sequential > Block"
    for name, expected in (("aten::addmm", {f"{block} > Attention > Linear": 2, f"{block} > Linear": 4, "Model > Linear": 1}),
                           ("AddmmBackward0", {f"{block} > Attention > Linear": 2, f"{block} > Linear": 4, "Model > Linear": 1}),
                           ("aten::mm", {f"{block} > Attention > Linear": 3, f"{block} > Linear": 8, "Model > Linear": 2}),
                           ("aten::_softmax", {f"{block} > Attention": 2}), ("SoftmaxBackward0", {f"{block} > Attention": 2}),
                           ("aten::relu", {block: 2}), ("ReluBackward0", {block: 2})):
        found = {row["module"]: row["calls"] for row in rows if row["name"] == name}
        ok(found == {path: n * STEPS for path, n in expected.items()}, f"{name}: its calls by module", found)
    sums = {row["module"]: row for row in report["tables"]["modules"]}
    own = sum(row["self_ns"] for row in sums.values())
    ok(own == sums["Model"]["total_ns"] and 0 < sums["Model"]["backward_ns"] < own, "the time of a module contains that of the modules within", sums)
    without = sum(row["self_ns"] for row in rows if not row["module"] and row["kind"] != "range")
    every = sum(row["self_ns"] for row in rows if row["kind"] != "range")
    ok(own + without == every, "the times sum to that of all calls", own, without, every)


def main():
    sampled()
    operators()
    done()


main()
