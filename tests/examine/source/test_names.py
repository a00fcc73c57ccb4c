from __future__ import annotations

import pytest

from torchtriage.examine.source.names import canonical, matches


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import torch\ntorch.optim.SGD()", "torch.optim.SGD"),
        ("import torch.nn as nn\nnn.Linear()", "torch.nn.Linear"),
        ("import torch.nn.functional\ntorch.relu()", "torch.relu"),
        ("from torch.nn import functional as F\nF.relu()", "torch.nn.functional.relu"),
        ("from torch import nn\nnn.modules.linear.Linear()", "torch.nn.Linear"),
        ("from torch.cuda.amp import GradScaler as S\nS()", "torch.amp.GradScaler"),
        ("from torch.utils.data import DistributedSampler\nDistributedSampler()",
         "torch.utils.data.distributed.DistributedSampler"),
        ("from torch.nn.parallel.distributed import DistributedDataParallel as DDP\nDDP()",
         "torch.nn.parallel.DistributedDataParallel"),
        ("import lightning as L\nL.Trainer()", "pytorch_lightning.Trainer"),
        ("try:\n    from apex import amp\nexcept ImportError:\n    from torch.cuda import amp\namp.autocast()",
         "torch.amp.autocast"),
        ("def f():\n    import torch as t\n    t.save()", "torch.save"),
        ("print()", "builtins.print"),
        ("def f(print):\n    print()", ""),
        ("torch = make()\ntorch.save()", ""),
        ("from mylib import *\nLinear()", ""),
        ("f()()", ""),
    ],
)  # fmt: skip
def test_a_name_is_seen_through_imports_and_moves(reads, code: str, name: str) -> None:
    script = reads(code)
    last = max((call for calls in script.facts.calls.values() for call in calls), key=lambda call: call.order)
    assert script.name(last) == name


def test_a_class_body_does_not_hide_names_from_its_methods(reads) -> None:
    script = reads("import torch\nclass A:\n    torch = None\n    def f(self):\n        torch.save()\n")
    assert script.name(next(script.calls("save"))) == "torch.save"


def test_a_global_is_stored_in_the_module(reads) -> None:
    script = reads("model = None\ndef f():\n    global model\n    model = make()\n")
    assert [store.how for store in script.facts.scopes[0].stores["model"]] == ["assign", "assign"]


@pytest.mark.parametrize("name", ["torch", "torch.nn", "torch.nn.modules", "a.b.c", ""])
def test_a_name_that_has_not_moved_stays_as_it_is(name: str) -> None:
    assert canonical(name) == name


@pytest.mark.parametrize(
    ("name", "fits"),
    [("torch.optim.SGD", True), ("torch.optim.lr_scheduler.StepLR", False), ("torch.optim.swa_utils", False)],
)
def test_a_star_stands_for_one_class(name: str, fits: bool) -> None:
    assert matches(name, ("torch.optim.*",)) == fits


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("import pytorch_lightning as pl", "Lightning"),
        ("from lightning.pytorch import LightningModule", "Lightning"),
        ("from transformers import Trainer, AutoModel", "the Hugging Face Trainer"),
        ("from accelerate import Accelerator", "Accelerate"),
        ("from transformers import AutoModel", None),
        ("import torch", None),
    ],
)
def test_a_framework_is_known_by_its_import(reads, line: str, owner: str | None) -> None:
    assert reads(line).hidden == owner


def test_a_star_import_hides_what_is_missing(reads) -> None:
    assert reads("from models import *").hidden == "from models import *"
