#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DistributedDataParallel over gloo with two ranks. Rank 1 is slow: its data loader sleeps ("data"), or its code in the middle of the forward
pass does ("forward"). Each rank prints what its own clock measured."""
import json
import os
import subprocess
import sys
import tempfile
import time

RANKS, STEPS, SLOW, DELAY = 2, 25, 1, 0.04


def rank_program(where):
    import torch
    import torch.distributed
    from torch import nn
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method="file://" + os.environ["STORE"], rank=int(os.environ["RANK"]),
                                         world_size=int(os.environ["WORLD_SIZE"]))
    is_slow = torch.distributed.get_rank() == SLOW
    slept = []

    def read_slowly():
        start = time.monotonic_ns()
        time.sleep(DELAY)
        slept.append(time.monotonic_ns() - start)

    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return STEPS

        def __getitem__(self, i):
            if is_slow and where == "data":
                read_slowly()
            return torch.ones(64), torch.ones(4)

    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    print("ready", flush=True)
    sys.stdin.readline()
    # before the data are requested, before the forward pass, the backward pass and the optimizer, and after it
    clock, times = time.monotonic_ns, []
    loader = iter(torch.utils.data.DataLoader(Items(), batch_size=1))
    for _ in range(STEPS):
        times.append([clock()])
        x, y = next(loader)
        times[-1].append(clock())
        optimizer.zero_grad()
        result = model(x)
        if is_slow and where == "forward":
            read_slowly()
        loss = nn.functional.mse_loss(result, y)
        times[-1].append(clock())
        loss.backward()
        times[-1].append(clock())
        optimizer.step()
        times[-1].append(clock())
    print(json.dumps({"rank": torch.distributed.get_rank(), "pid": os.getpid(), "times": times, "slept": slept}), flush=True)
    print("done", flush=True)
    sys.stdin.readline()
    torch.distributed.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "STORE": os.path.join(folder, "store"), "WORLD_SIZE": str(RANKS)}
        ranks = [subprocess.Popen([sys.executable, __file__, sys.argv[1], "rank"], env={**environment, "RANK": str(i)}, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) for i in range(RANKS)]
        for word in ("ready", "done"):
            for r in ranks:
                for line in r.stdout:
                    if line.strip() == word:
                        break
                    print(line, end="", flush=True)
            print(word, flush=True)
            sys.stdin.readline()
            for r in ranks:
                r.stdin.write("go\n")
                r.stdin.flush()
        for r in ranks:
            r.wait()


if __name__ == "__main__":
    if sys.argv[2:] == ["rank"]:
        rank_program(sys.argv[1])
    else:
        main()
