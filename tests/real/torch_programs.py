# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of PyTorch's users for torch.py: models, training loops and runtimes of well-known packages, with random weights.

    torch_programs.py NAME

It does its work once to warm up. After a line on stdin it does the same work alone, under torch.profiler, and RUNS times more. For each process it
prints a line of JSON: the times of the first two (CLOCK_MONOTONIC, ns), what the profiler counted in the second, and the number of steps in all."""
import collections
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)
RANKS = 2
RUNS = 10
SCALE = int(os.environ.get("TORCH_PROGRAMS_SCALE", "1"))  # of the widths of the small networks and their batches
FEATURES, BATCH = 16 * SCALE, 8 * SCALE


def import_torchvision():
    """torchvision's own operators need a libtorch of the same build. Its models use none of them, but importing it fails where these are not declared."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for module in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[module]
        import_torchvision.library = torch.library.Library("torchvision", "FRAGMENT")  # declares them as long as it lives
        for name in ("nms", "qnms"):
            with contextlib.suppress(RuntimeError):
                import_torchvision.library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def batches(n, *shape):
    return [(torch.randn(*shape), torch.randint(0, 4, (shape[0],))) for _ in range(n)]


def small_network():
    return nn.Sequential(nn.Linear(FEATURES, 2 * FEATURES), nn.ReLU(), nn.Linear(2 * FEATURES, 4))


def train(model, optimizer, data):
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


class Torchvision:
    """Training of torchvision's ResNet-18"""
    packages, steps = ("torchvision",), 3

    def __init__(self):
        from torchvision.models import resnet18
        self.model = resnet18(num_classes=4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.data = batches(self.steps, 2, 3, 64, 64)

    def __call__(self):
        train(self.model, self.optimizer, self.data)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32 * SCALE, n_positions=32, vocab_size=128, bos_token_id=0, eos_token_id=0))


class Transformers:
    """Training of a small GPT-2, and generation with it"""
    packages, steps = ("transformers",), 5

    def __init__(self):
        self.model = gpt2()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.tokens = torch.randint(1, 128, (2, 16))

    def __call__(self):
        self.model.train()
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            self.model(input_ids=self.tokens, labels=self.tokens).loss.backward()
            self.optimizer.step()
        self.model.eval()
        self.model.generate(self.tokens[:, :4], max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0)


class Bert:
    """Training of a small BERT to predict masked tokens and classes, with padding, and inference with it"""
    packages, steps = ("transformers",), 5

    def __init__(self):
        from transformers import BertConfig, BertForPreTraining
        self.model = BertForPreTraining(BertConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                                   max_position_embeddings=32))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.tokens, self.mask = torch.randint(1, 128, (4, 16)), torch.ones(4, 16, dtype=torch.long)
        self.mask[0, 12:] = 0

    def __call__(self):
        self.model.train()
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            self.model(input_ids=self.tokens, attention_mask=self.mask, labels=self.tokens, next_sentence_label=self.mask[:, 0]).loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        self.model.eval()
        with torch.no_grad():
            self.model(input_ids=self.tokens, attention_mask=self.mask)


class Trainer:
    """Hugging Face's Trainer"""
    packages, steps = ("transformers", "accelerate"), 6

    def __init__(self):
        self.data = [{"input_ids": row, "labels": row} for row in torch.randint(1, 128, (4 * self.steps, 16))]

    def __call__(self):
        from transformers import Trainer, TrainingArguments
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(output_dir=folder, per_device_train_batch_size=4, num_train_epochs=1, report_to=[], save_strategy="no",
                                     use_cpu=True, disable_tqdm=True, logging_strategy="no", seed=1)
            Trainer(model=gpt2(), args=args, train_dataset=self.data).train()


class Lightning:
    """Lightning's Trainer.fit()"""
    packages, steps = ("lightning",), 8

    def __call__(self):
        import logging

        import lightning
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = small_network()

            def training_step(self, batch, _):
                x, y = batch
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.log("loss", loss)
                return loss

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())

        data = torch.utils.data.TensorDataset(torch.randn(BATCH * self.steps, FEATURES), torch.randint(0, 4, (BATCH * self.steps,)))
        trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=BATCH))


class Accelerate:
    """A loop of Accelerate with accumulated gradients and clipping"""
    packages, steps = ("accelerate",), 4

    def __init__(self):
        from accelerate import Accelerator
        self.accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = small_network()
        data = torch.utils.data.TensorDataset(torch.randn(2 * BATCH * self.steps, FEATURES), torch.randint(0, 4, (2 * BATCH * self.steps,)))
        self.model, self.optimizer, self.loader = self.accelerator.prepare(
            model, torch.optim.SGD(model.parameters(), lr=0.1), torch.utils.data.DataLoader(data, batch_size=BATCH))

    def __call__(self):
        for x, y in self.loader:
            with self.accelerator.accumulate(self.model):
                self.accelerator.backward(nn.functional.cross_entropy(self.model(x), y))
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()


class Compile:
    """torch.compile with Inductor's C++ code, trained"""
    packages, steps = (), 5

    def __init__(self):
        self.model = torch.compile(small_network())
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.data = batches(self.steps, BATCH, FEATURES)

    def __call__(self):
        train(self.model, self.optimizer, self.data)


class Script:
    """A model of TorchScript, traced and scripted, evaluated"""
    packages, steps = (), 0

    def __init__(self):
        self.x = torch.randn(4, FEATURES)
        self.models = [torch.jit.script(small_network()), torch.jit.trace(small_network(), self.x)]
        for _ in range(4):
            self()

    def __call__(self):
        with torch.no_grad():
            for model in self.models:
                for _ in range(20):
                    model(self.x)


class Vmap:
    """Gradients of single samples by torch.func: vmap over grad of a model"""
    packages, steps = (), 0

    def __init__(self):
        model = small_network()
        self.parameters = dict(model.named_parameters())

        def loss(parameters, x, y):
            return nn.functional.cross_entropy(torch.func.functional_call(model, parameters, (x[None],)), y[None])
        self.gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
        self.data = batches(5, BATCH, FEATURES)

    def __call__(self):
        for x, y in self.data:
            self.gradients(self.parameters, x, y)


class Lbfgs:
    """LBFGS, whose step() calls a closure with forward and backward. Each time it begins with the same parameters, so that it evaluates as often."""
    packages, steps = (), 3

    def __init__(self):
        self.model = small_network()
        self.begin = {name: p.clone() for name, p in self.model.state_dict().items()}
        self.x, self.y = batches(1, BATCH, FEATURES)[0]

    def __call__(self):
        self.model.load_state_dict(self.begin)
        optimizer = torch.optim.LBFGS(self.model.parameters(), lr=0.1, max_iter=4, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(self.x), self.y)
            loss.backward()
            return loss
        for _ in range(self.steps):
            optimizer.step(closure)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((FEATURES,), float(i)) / 64, i % 4


class Workers:
    """A DataLoader with two workers"""
    packages, steps = (), 8

    def __init__(self):
        self.model = small_network()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def __call__(self):
        train(self.model, self.optimizer, torch.utils.data.DataLoader(Items(), batch_size=8, num_workers=2))


class Ddp:
    """DistributedDataParallel over gloo"""
    packages, steps, ranks = (), 6, RANKS

    def __init__(self):
        self.model = nn.parallel.DistributedDataParallel(small_network())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.data = batches(self.steps, BATCH, FEATURES)

    def __call__(self):
        train(self.model, self.optimizer, self.data)


def shard(model):
    """By fully_shard() (FSDP2), or where that needs a GPU, as in PyTorch 2.6, by FullyShardedDataParallel"""
    if not hasattr(torch.cpu.current_stream(), "record_event"):
        return torch.distributed.fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (RANKS,))
    return torch.distributed.fsdp.fully_shard(model, mesh=mesh)


class Fsdp(Ddp):
    """Parameters sharded among ranks, over gloo"""
    def __init__(self):
        import torch.distributed.device_mesh
        import torch.distributed.fsdp
        self.model = shard(small_network())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.data = batches(self.steps, BATCH, FEATURES)


PROGRAMS = {p.__name__: p for p in (Torchvision, Transformers, Bert, Trainer, Lightning, Accelerate, Compile, Script, Vmap, Lbfgs, Workers, Ddp,
                                  Fsdp)}


def warmed_up(program):
    work = program()
    work()
    return work


def measure(program, work):
    alone = [time.monotonic_ns()]
    work()
    alone.append(time.monotonic_ns())
    with profile(activities=[ProfilerActivity.CPU]) as p:
        profiled = [time.monotonic_ns()]
        work()
        profiled.append(time.monotonic_ns())
    for _ in range(RUNS):
        work()
    counts = collections.Counter(e.name() for e in p.profiler.kineto_results.events())
    return json.dumps({"name": program.__name__, "pid": os.getpid(), "alone": alone, "profiled": profiled, "counts": counts,
                       "steps": (2 + RUNS) * program.steps})


def rank(number, name, address, ready, start, finish):
    torch.distributed.init_process_group("gloo", init_method=address, rank=number, world_size=RANKS)
    work = warmed_up(PROGRAMS[name])
    ready.release()
    start.wait()
    line = measure(PROGRAMS[name], work)
    # a long line is written in parts, so one rank prints at a time
    for turn in range(RANKS):
        if turn == number:
            print(line, flush=True)
        torch.distributed.barrier()
    ready.release()
    # at its exit a process collects garbage, which is none of the work
    finish.wait()
    torch.distributed.destroy_process_group()


def run_ranks(program):
    context = torch.multiprocessing.get_context("spawn")
    ready, start, finish = context.Semaphore(0), context.Event(), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        ranks = torch.multiprocessing.spawn(rank, (program.__name__, f"file://{folder}/store", ready, start, finish), nprocs=RANKS, join=False)

        def wait_for_all():
            for _ in range(RANKS):
                while not ready.acquire(timeout=1):
                    ranks.join(timeout=0)  # raises what a rank raised

        wait_for_all()
        print("pids", *ranks.pids(), flush=True)
        print("ready", flush=True)
        sys.stdin.readline()
        start.set()
        wait_for_all()
        print("done", flush=True)
        sys.stdin.readline()
        finish.set()
        while not ranks.join():
            pass


def main():
    program = PROGRAMS[sys.argv[1]]
    if program.packages:
        import_torchvision()
    if hasattr(program, "ranks"):
        run_ranks(program)
    else:
        work = warmed_up(program)
        print("ready", flush=True)
        sys.stdin.readline()
        print(measure(program, work), flush=True)
        print("done", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
