"""What an execution has to know of torch, from library.toml and the engine's own table of names."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from torchtriage.examine.source.names import matches, table
from torchtriage.examine.source.roles import gives_model
from torchtriage.examine.source.torch_api.symbols import symbols

MODULE = "torch.nn.Module"
FUNCTION = "torch.autograd.Function"
_KINDS = {
    "torch.utils.data.distributed.DistributedSampler": "sampler",
    "torch.optim.Optimizer": "optimizer",
    "torch.optim.lr_scheduler._LRScheduler": "scheduler",
    "transformers.Trainer": "trainer",
    "transformers.Seq2SeqTrainer": "trainer",
}
_NO_LAYERS = frozenset({"Parameter", "Buffer", "UninitializedParameter"})
BASES = ("pytorch_lightning.LightningModule", "transformers.PreTrainedModel")


@cache
def lore() -> dict[str, Any]:
    """What torch does, as data."""
    return tomllib.loads(Path(__file__).with_name("library.toml").read_text(encoding="utf-8"))


@cache
def of_tensors() -> frozenset[str]:
    """Methods that tensors have, and neither arrays nor anything of Python's."""
    known = symbols()
    return (known.tensor_methods | known.unmistakable_methods) - known.shared_methods


@cache
def kind_of(name: str) -> str:
    """The kind of an instance of the class of a package with that real NAME; "" for others."""
    if name in lore()["wrappers"]["names"]:
        return "wrapper"
    if name in _KINDS:
        return _KINDS[name]
    for role in ("scheduler", "optimizer", "scaler", "loader"):
        if matches(name, tuple(table()["roles"][role]["made"])):
            return role
    words = name.split(".")
    is_public = words[:2] == ["torch", "nn"] and len(words) == 3
    is_layer = (is_public or words[:3] == ["torch", "nn", "modules"]) and words[-1].lstrip("_")[:1].isupper()
    if (is_layer and words[-1] not in _NO_LAYERS) or name in BASES or gives_model(name):
        return "module"
    return ""


def is_loss(name: str) -> bool:
    """Whether NAME, the name of a class, is that of a loss."""
    last = name.rpartition(".")[2]
    return last in lore()["losses"] or last.endswith(("Loss", "Criterion"))
