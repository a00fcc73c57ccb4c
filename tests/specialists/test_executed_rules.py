"""What the execution of a project shows: one line of a healthy project of four files is changed, and only that is found."""

from __future__ import annotations

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

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

class Stepper:
    def __init__(self, optimizer, parameters, cfg):
        self.optimizer, self.parameters, self.cfg = optimizer, parameters, cfg
        self.scaler = torch.amp.GradScaler("cuda")
        self.seen = 0

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
    ("backward-in-autocast", "engine.py", "        stepper(loss)", "            stepper(loss)"),
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
]  # fmt: skip


def found(files: dict[str, str], folder: Path) -> set[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    case = torchtriage.check([folder])
    assert [each for each in case.inconclusive if "failed" in each.why] == []
    return {each.fault.slug for each in case.findings if each.fault.severity.value != "info"}


@pytest.mark.parametrize("files", [PICTURES, SENTENCES], ids=["pictures", "sentences"])
def test_nothing_is_found_in_a_healthy_project(files: dict[str, str], tmp_path: Path) -> None:
    assert found(files, tmp_path) == set()


@pytest.mark.parametrize(("slug", "file", "before", "after"), CHANGED, ids=[row[0] for row in CHANGED])
def test_what_one_line_of_a_project_does_to_the_whole_is_found(
    slug: str, file: str, before: str, after: str, tmp_path: Path
) -> None:
    files = PICTURES if file in PICTURES else SENTENCES
    assert before in files[file]
    assert slug in found({**files, file: files[file].replace(before, after)}, tmp_path)
