"""What the execution of a project shows: one line of a healthy project of four files is changed, and only that is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import torchtriage

PICTURES = {
    "config.py": """
from dataclasses import dataclass, field

@dataclass
class Config:
    epochs: int = 3
    accumulate: int = 4
    clip: float = 1.0
    activation: str = "none"
    widths: list = field(default_factory=lambda: [16, 16, 16])
""",
    "model.py": """
import copy
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

def build_head(kind, width):
    layers = [nn.Linear(width, 10)]
    if kind == "softmax":
        layers.append(nn.Softmax(dim=1))
    return nn.Sequential(*layers)

def repeat(layer, n):
    return [copy.deepcopy(layer) for _ in range(n)]

class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem, self.branches = nn.Linear(8, 16), nn.ModuleList(self.make(cfg.widths))
        self.tail = nn.ModuleList(repeat(nn.Linear(16, 16), 2))
        self.head = build_head(cfg.activation, 16)
        self.drop = partial(F.dropout, p=0.1)
        self.register_buffer("scale", torch.ones(16))
        self.gain = nn.Parameter(torch.ones(16))
        self.norm = nn.BatchNorm1d(16)

    def make(self, widths):
        return [nn.Linear(16, width) for width in widths]

    def forward(self, x):
        x = self.norm(self.stem(x))
        for branch in self.branches:
            x = x + branch(x) * self.scale
        for layer in self.tail:
            x = layer(x)
        return self.head(self.drop(x, training=self.training) * self.gain)
""",
    "engine.py": """
import copy
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

class Stepper:
    def __init__(self, optimizer, parameters, cfg):
        self.optimizer, self.parameters, self.cfg = optimizer, parameters, cfg
        self.scaler = torch.amp.GradScaler("cuda")
        self.seen = 0

    def hold(self, model):
        return model.no_sync() if (self.seen + 1) % self.cfg.accumulate else nullcontext()

    def __call__(self, loss):
        self.scaler.scale(loss / self.cfg.accumulate).backward()
        self.seen += 1
        if self.seen % self.cfg.accumulate == 0:
            self.scaler.unscale_(self.optimizer)
            clip_grad_norm_(self.parameters, self.cfg.clip)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad(set_to_none=True)

class Mean:
    def __init__(self):
        self.total = 0.0

    def add(self, value):
        self.total = self.total + value.detach()

class Best:
    def __init__(self):
        self.score, self.state = float("-inf"), None

    def offer(self, score, model):
        if score > self.score:
            self.score, self.state = score, copy.deepcopy(model.state_dict())

@torch.no_grad()
def evaluate(model, loader, mean):
    model.eval()
    for x, y in loader:
        mean.add(nn.functional.cross_entropy(model(x), y))
    model.train()
    return mean.total

def train_epoch(model, loader, stepper, mean):
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        with stepper.hold(model):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            stepper(loss)
        mean.add(loss)
""",
    "main.py": """
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from config import Config
from engine import Best, Mean, Stepper, evaluate, train_epoch
from model import Net

def loaders(train, valid):
    sampler = DistributedSampler(train)
    return DataLoader(train, 32, sampler=sampler), DataLoader(valid, 32), sampler

def main(cfg, train, valid):
    dist.init_process_group("nccl")
    is_main = dist.get_rank() == 0
    inner = Net(cfg).to("cuda")
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    training, validation, sampler = loaders(train, valid)
    stepper, best = Stepper(optimizer, list(model.parameters()), cfg), Best()
    torch.backends.cudnn.benchmark = True
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        train_epoch(model, training, stepper, Mean())
        scheduler.step()
        best.offer(evaluate(inner, validation, Mean()), inner)
        dist.barrier()
        if is_main:
            torch.save({"model": inner.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt.tmp")
            os.replace("last.pt.tmp", "last.pt")
    inner.load_state_dict(best.state)

if __name__ == "__main__":
    main(Config(), open("train"), open("valid"))
""",
}
SENTENCES = {
    "state.py": """
class Carried:
    def __init__(self):
        self.state = None

    def carry(self, state):
        self.state = tuple(each.detach() for each in state)
""",
    "train.py": """
import torch
from torch import nn

from state import Carried

class Tagger(Carried, nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        Carried.__init__(self)
        self.rnn, self.out = nn.LSTM(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        y, state = self.rnn(x, self.state)
        self.carry(state)
        return self.out(y)

def steps(model, optimizer):
    while True:
        x, y = yield
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

def main(data):
    model = Tagger()
    optimizer = torch.optim.SGD([*model.rnn.parameters(), *model.out.parameters()], lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    for x, y in torch.utils.data.DataLoader(data):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()

if __name__ == "__main__":
    main([])
""",
}
LETTERS = {
    "data.py": """
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Noise:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        return x + 0.1 * self.rng.normal()

class Letters(Dataset):
    def __init__(self, root):
        self.root, self.change = root, [Noise()]

    def __getitem__(self, index):
        x = torch.load(f"{self.root}/{index}.pt", weights_only=True)
        for change in self.change:
            x = change(x)
        return x, random.randint(0, 3)

class Stream(IterableDataset):
    def __iter__(self):
        for line in open("lines"):
            yield torch.tensor([float(line)]), 0

def loader(dataset, sampler=None, workers=0):
    return DataLoader(dataset, 32, sampler=sampler, num_workers=workers)
""",
    "ops.py": """
import torch

def keep(ctx, x):
    ctx.save_for_backward(x)

def halve(gradient):
    return gradient * 0.5

class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        keep(ctx, x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return halve(gradient), None
""",
    "model.py": """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ops import Halve

class Part(nn.Module):
    def __init__(self):
        self.prepare()
        self.inner = nn.Linear(8, 8)

    def prepare(self):
        super().__init__()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.head = Part(), nn.Linear(8, 4)
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x):
        h = checkpoint(self.part.inner, Halve.apply(x, 2), use_reentrant=False)
        h = torch.exp(h)
        h = h + 1
        return self.head(h * self.gain)

class Weighted(nn.Module):
    def forward(self, logits, y):
        return nn.functional.nll_loss(torch.log_softmax(logits, 1), y)
""",
    "state.py": """
import os

import torch

def save(path, model, optimizer, scheduler, epoch):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    torch.save({**state, "epoch": epoch}, path + ".tmp")
    os.replace(path + ".tmp", path)

def load(path, model, optimizer, scheduler):
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    return state["epoch"] + 1
""",
    "main.py": """
import argparse
import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

from data import Letters, Stream, loader
from model import Net, Weighted
from state import load, save

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()

def seed():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)

def watch(module, inputs, output):
    pass

def total(values):
    return values.sum()

@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    right = torch.zeros(1, device="cuda")
    for x, y in batches:
        right += (model(x.cuda()).argmax(1) == y.cuda()).sum()
    dist.all_reduce(right)
    model.train()
    return right.item()

def update(model, criterion, optimizer, x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss

def main():
    args = parse()
    seed()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    inner = Net().cuda()
    model = DistributedDataParallel(inner, device_ids=[local])
    criterion = Weighted()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    start = load("last.pt", model, optimizer, scheduler) if args.resume else 0
    train, valid = Letters("train"), Letters("valid")
    sampler = DistributedSampler(train)
    training, validation = loader(train, sampler), loader(valid, DistributedSampler(valid, shuffle=False))
    handle = inner.register_forward_hook(watch)
    profiler = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2))
    for epoch in range(start, 9):
        sampler.set_epoch(epoch)
        mean = torch.zeros(1, device="cuda")
        for x, y in training:
            loss = update(model, criterion, optimizer, x.cuda(), y.cuda())
            mean += loss.detach()
            profiler.step()
        scheduler.step()
        shared = dist.all_reduce(mean, async_op=True)
        shared.wait()
        evaluate(model, validation)
        if dist.get_rank() == 0:
            save("last.pt", model, optimizer, scheduler, epoch)
    handle.remove()

if __name__ == "__main__":
    main()
""",
}
CHANGED: list[tuple[str, str, str, str]] = [
    ("clip-before-unscale", "engine.py", "            self.scaler.unscale_(self.optimizer)\n", ""),
    ("scaler-bypassed", "engine.py", "            self.scaler.unscale_(self.optimizer)\n            clip_grad_norm_(self.parameters, self.cfg.clip)\n            self.scaler.step(self.optimizer)", "            self.optimizer.step()"),
    ("scaler-not-updated", "engine.py", "            self.scaler.update()\n", ""),
    ("scaler-with-bf16", "engine.py", "torch.float16", "torch.bfloat16"),
    ("gradients-not-zeroed", "engine.py", "            self.optimizer.zero_grad(set_to_none=True)\n", ""),
    ("loss-not-averaged-over-accumulation", "engine.py", "loss / self.cfg.accumulate", "loss"),
    ("graph-retained", "engine.py", "value.detach()", "value"),
    ("best-state-aliased", "engine.py", "copy.deepcopy(model.state_dict())", "model.state_dict()"),
    ("mode-left-in-eval", "engine.py", "    model.train()\n    return", "    return"),
    ("mode-left-in-train", "engine.py", "    model.eval()\n", ""),
    ("eval-builds-graph", "engine.py", "@torch.no_grad()\n", ""),
    ("backward-in-autocast", "engine.py", "            stepper(loss)", "                stepper(loss)"),
    ("softmax-before-cross-entropy", "config.py", '"none"', '"softmax"'),
    ("layers-shared-by-repetition", "model.py", "[copy.deepcopy(layer) for _ in range(n)]", "[layer] * n"),
    ("unregistered-modules", "model.py", "nn.ModuleList(self.make(cfg.widths))", "self.make(cfg.widths)"),
    ("dropout-always-on", "model.py", "self.drop(x, training=self.training)", "self.drop(x)"),
    ("unregistered-tensor", "model.py", 'self.register_buffer("scale", torch.ones(16))', "self.scale = torch.ones(16)"),
    ("uninitialised-parameter", "model.py", "nn.Parameter(torch.ones(16))", "nn.Parameter(torch.empty(16))"),
    ("layer-built-in-forward", "model.py", "            x = layer(x)", "            x = nn.Linear(16, 16)(layer(x))"),
    ("sampler-epoch-not-set", "main.py", "        sampler.set_epoch(epoch)\n", ""),
    ("wrapper-bypassed", "main.py", "train_epoch(model,", "train_epoch(inner,"),
    ("collective-on-some-ranks", "main.py", "        dist.barrier()\n        if is_main:\n", "        if is_main:\n            dist.barrier()\n"),
    ("every-rank-saves", "main.py", "        if is_main:\n", "        if epoch >= 0:\n"),
    ("whole-object-saved", "main.py", "inner.state_dict(), ", "inner, "),
    ("state-dict-not-called", "main.py", "inner.state_dict(), ", "inner.state_dict, "),
    ("benchmark-with-deterministic", "main.py", "benchmark = True", "benchmark = torch.backends.cudnn.deterministic = True"),
    ("debug-left-on", "main.py", '    dist.init_process_group("nccl")\n', '    dist.init_process_group("nccl")\n    torch.autograd.set_detect_anomaly(cfg.epochs > 1)\n'),
    ("requires-grad-typo", "main.py", "    model = Dist", "    inner.head.requires_grad = False\n    model = Dist"),
    ("hidden-state-not-detached", "state.py", "tuple(each.detach() for each in state)", "state"),
    ("zeroed-before-step", "train.py", "        nn.utils.clip", "        model.zero_grad()\n        nn.utils.clip"),
    ("clip-after-step", "train.py", "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()\n", "        optimizer.step()\n        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
    ("step-missing", "train.py", "        optimizer.step()\n        scheduler", "        scheduler"),
    ("scheduler-before-optimizer", "train.py", "        optimizer.zero_grad()\n        loss = nn.functional.cross_entropy(model(x), y)\n        loss.backward()\n        nn", "        scheduler.step()\n        optimizer.zero_grad()\n        loss = nn.functional.cross_entropy(model(x), y)\n        loss.backward()\n        nn"),
    ("resume-off-by-one", "state.py", 'state["epoch"] + 1', 'state["epoch"]'),
    ("keys-mismatched", "main.py", "save(\"last.pt\", model,", "save(\"last.pt\", inner,"),
    ("mismatch-swallowed", "state.py", 'load_state_dict(state["model"])', 'load_state_dict(state["model"], strict=False)'),
    ("checkpoint-incomplete", "state.py", '    scheduler.load_state_dict(state["scheduler"])\n', ""),
    ("loads-to-saved-device", "state.py", 'map_location="cpu", ', ""),
    ("save-not-atomic", "state.py", 'path + ".tmp")\n    os.replace(path + ".tmp", path)', "path)"),
    ("seeds-incomplete", "main.py", "    random.seed(0)\n", ""),
    ("dataset-owned-rng", "data.py", "workers=0", "workers=2"),
    ("iterable-not-sharded", "main.py", "loader(valid, Dist", "loader(Stream(), workers=4), loader(valid, Dist"),
    ("same-data-on-ranks", "main.py", "loader(train, sampler)", "loader(train)"),
    ("moved-after-wrapping", "main.py", "    inner = Net().cuda()\n    model = DistributedDataParallel(inner, device_ids=[local])", "    inner = Net()\n    model = DistributedDataParallel(inner).cuda()"),
    ("no-sync-missing", "main.py", "    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()", "    optimizer.zero_grad()\n    for _ in range(4):\n        loss = criterion(model(x), y) / 4\n        loss.backward()"),
    ("global-rank-as-device", "main.py", 'int(os.environ["LOCAL_RANK"])', "dist.get_rank()"),
    ("handle-not-waited", "main.py", "        shared.wait()\n", ""),
    ("metrics-not-reduced", "main.py", "    dist.all_reduce(right)\n", ""),
    ("forward-called-directly", "main.py", "criterion(model(x), y)", "criterion(model.forward(x), y)"),
    ("hook-handle-dropped", "main.py", "        scheduler.step()\n", "        scheduler.step()\n        inner.register_forward_hook(watch)\n"),
    ("parameter-then-moved", "model.py", "nn.Parameter(torch.ones(8))", "nn.Parameter(torch.ones(8)).cuda()"),
    ("super-init-missing", "model.py", "        super().__init__()\n\nclass Net", "        pass\n\nclass Net"),
    ("built-in-loop", "main.py", "    optimizer.zero_grad()\n    loss", "    optimizer = torch.optim.AdamW(model.parameters())\n    loss"),
    ("loader-args-invalid", "data.py", "sampler=sampler,", "shuffle=True, sampler=sampler,"),
    ("profiler-without-step", "main.py", "            profiler.step()\n", ""),
    ("sync-bound", "main.py", "mean += loss.detach()", "mean += loss.item()\n            torch.cuda.synchronize()"),
    ("loss-detached", "main.py", "criterion(model(x), y)", "criterion(model(x).detach(), y)"),
    ("method-not-called", "main.py", "        scheduler.step()\n", "        scheduler.step\n"),
    ("failure-swallowed", "main.py", "            loss = update(model, criterion, optimizer, x.cuda(), y.cuda())\n", "            try:\n                loss = update(model, criterion, optimizer, x.cuda(), y.cuda())\n            except Exception:\n                continue\n"),
    ("grown-by-cat", "main.py", "mean += loss.detach()", "mean = torch.cat([mean, loss.detach().view(1)])"),
    ("retain-graph-needless", "main.py", "loss.backward()", "loss.backward(retain_graph=True)"),
    ("result-dropped", "main.py", "    loss.backward()\n", "    loss.clamp(min=0.0)\n    loss.backward()\n"),
    ("created-then-moved", "main.py", "    loss.backward()\n", "    loss = loss + torch.zeros(1).cuda()\n    loss.backward()\n"),
    ("unstable-composition", "model.py", "torch.log_softmax(logits, 1)", "torch.log(torch.softmax(logits, 1))"),
    ("inplace-breaks-autograd", "model.py", "h = h + 1", "h += 1"),
    ("no-gradient-by-design", "model.py", "        return self.head(h * self.gain)", "        return torch.round(self.head(h * self.gain))"),
    ("tensor-on-ctx", "ops.py", "ctx.save_for_backward(x)", "ctx.kept = x"),
    ("saved-non-tensor", "ops.py", "ctx.save_for_backward(x)", "ctx.save_for_backward(x, 2)"),
    ("grad-output-edited", "ops.py", "return gradient * 0.5", "return gradient.mul_(0.5)"),
    ("gradient-count", "ops.py", "halve(gradient), None", "halve(gradient)"),
    ("pickle-trusted", "main.py", "    return parser.parse_args()\n", '    parser.add_argument("--pretrained")\n    args = parser.parse_args()\n    args.start = torch.load(args.pretrained, weights_only=False)\n    return args\n'),
    ("dirty-not-marked", "ops.py", "return x.clone()", "return x.mul_(2.0)"),
]  # fmt: skip


RIGHT: list[tuple[str, str, str]] = [
    ("gradient-count", "halve(gradient), None", "halve(gradient), None, None"),
    ("dataset-owned-rng", "num_workers=workers)", "num_workers=2, worker_init_fn=print)"),
    ("loader-args-invalid", "dataset, 32, sampler=sampler", "dataset, batch_size=1, batch_sampler=sampler"),
]
"""Changes that look like the fault: torch takes more gradients than inputs as long as they are None."""


def found(files: dict[str, str], folder: Path, *, has_advice: bool = False) -> set[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    case = torchtriage.check([folder])
    assert [each for each in case.inconclusive if "failed" in each.why] == []
    return {each.fault.slug for each in case.findings if has_advice or each.fault.severity.value != "info"}


@pytest.mark.parametrize("files", [PICTURES, SENTENCES, LETTERS], ids=["pictures", "sentences", "letters"])
def test_nothing_is_found_in_a_healthy_project(files: dict[str, str], tmp_path: Path) -> None:
    assert found(files, tmp_path) == set()


@pytest.mark.parametrize(("slug", "file", "before", "after"), CHANGED, ids=[row[0] for row in CHANGED])
def test_what_one_line_of_a_project_does_to_the_whole_is_found(
    slug: str, file: str, before: str, after: str, tmp_path: Path
) -> None:
    files = next(each for each in (PICTURES, SENTENCES, LETTERS) if before in each.get(file, ""))
    assert slug in found({**files, file: files[file].replace(before, after)}, tmp_path, has_advice=True)


@pytest.mark.parametrize(("slug", "before", "after"), RIGHT, ids=[row[0] for row in RIGHT])
def test_what_only_looks_like_a_fault_is_none(slug: str, before: str, after: str, tmp_path: Path) -> None:
    assert any(before in text for text in LETTERS.values())
    assert slug not in found(
        {name: text.replace(before, after) for name, text in LETTERS.items()}, tmp_path, has_advice=True
    )


HELPER = """
import torch


def build(model, is_half):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda") if is_half else None
    return optimizer, scaler
"""
TRAIN = """
import torch
from helper import build
from torch import nn


def main(loader, is_half):
    model = nn.Linear(4, 4).cuda()
    optimizer, scaler = build(model, is_half)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=is_half):
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        if is_half:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
"""


def test_a_fact_names_the_file_of_a_line_that_stands_elsewhere_and_quotes_its_own(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "train.py").write_text(TRAIN)
    case = torchtriage.check([tmp_path])
    [finding] = [each for each in case.findings if each.fault.slug == "scaler-with-bf16"]
    [seen] = finding.evidence
    assert (seen.place.path or "").endswith("helper.py")
    assert seen.place.anchor == 'scaler = torch.amp.GradScaler("cuda") if is_half else None'
    assert seen.fact == "the forward pass of train.py:12 runs in bfloat16"


def test_a_fact_names_the_cell_of_a_line_in_a_notebook(tmp_path: Path) -> None:
    cells = [
        "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "for x, y in zip(torch.randn(8, 3, 4), torch.randn(8, 3, 2)):\n"
        "    loss = nn.functional.mse_loss(model(x).detach(), y)\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
    ]
    (tmp_path / "train.ipynb").write_text(notebook(cells))
    [finding] = [each for each in torchtriage.check([tmp_path]).findings if each.fault.slug == "loss-detached"]
    assert finding.evidence[0].fact == "the loss that line 3 of cell 2 goes back from has no graph from here on"


def notebook(cells: list[str]) -> str:
    code = [
        {"cell_type": "code", "source": each, "metadata": {}, "outputs": [], "execution_count": None} for each in cells
    ]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


GROUPS = """
import torch.distributed as dist

_TENSOR = None


def build(ranks):
    global _TENSOR
    _TENSOR = dist.new_group(ranks)


def tensor_group():
    assert _TENSOR is not None, "not set up"
    return _TENSOR


def is_last_stage():
    return dist.get_rank() == dist.get_world_size() - 1
"""
COUNT = """
import groups
import torch
import torch.distributed as dist


def count(correct: torch.Tensor):
    if groups.is_last_stage():
        dist.all_reduce(correct, group=groups.tensor_group())
    return correct
"""


def test_a_group_that_another_file_sets_is_not_that_of_all_ranks(tmp_path: Path) -> None:
    assert found({"groups.py": GROUPS, "count.py": COUNT}, tmp_path) == set()
    every = {"groups.py": GROUPS, "count.py": COUNT.replace(", group=groups.tensor_group()", "")}
    assert found(every, tmp_path) == {"collective-on-some-ranks"}


TRAINERS = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self):
        self.local_rank = dist.get_rank() if dist.is_initialized() else 0
        self.device = torch.device("cuda", self.local_rank)

    def initialize(self):
        self.network = DistributedDataParallel(nn.Linear(4, 4).to(self.device), device_ids=[self.local_rank])
"""
LAUNCH = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from trainers import Trainer


def work(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    Trainer().initialize()


if __name__ == "__main__":
    mp.spawn(work, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
"""


def test_the_rank_is_a_device_where_another_file_starts_all_processes_on_one_machine(tmp_path: Path) -> None:
    alone, started = tmp_path / "alone", tmp_path / "started"
    alone.mkdir(), started.mkdir()
    assert found({"trainers.py": TRAINERS}, alone) == {"global-rank-as-device"}
    assert found({"trainers.py": TRAINERS, "launch.py": LAUNCH}, started) == set()
