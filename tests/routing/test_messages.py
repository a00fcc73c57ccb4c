"""Error messages provoked on the installed torch, so that none goes stale; those that need more stand in messages.toml."""

from __future__ import annotations

import copy
import gc
import io
import json
import logging
import os
import pickle
import re
import runpy
import socket
import sys
import tomllib
import traceback
import types
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import autograd, nn, ones, tensor, zeros
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    SequentialSampler,
    default_collate,
    random_split,
)

from torchtriage import triage
from torchtriage.catalog import load
from torchtriage.core.query import Decoded
from torchtriage.routing.build import build
from torchtriage.routing.listen import listen
from torchtriage.routing.signatures import decode

HERE = Path(__file__).parent
SIGNATURES = build().signatures  # straight from the files: collecting tests writes no cache
MESSAGES = tomllib.loads((HERE / "messages.toml").read_text(encoding="utf-8"))["message"]
SOON = timedelta(milliseconds=50)
PROVOKED: dict[str, tuple[Callable[[], object], dict[str, Any]]] = {}
Provoke = Callable[[], object]


def says(name: str, /, **fields: Any) -> Callable[[Provoke], Provoke]:
    """The decorated function provokes the message NAME, out of which FIELDS must be read."""

    def keep(provoke: Provoke) -> Provoke:
        assert name not in PROVOKED
        PROVOKED[name] = (provoke, fields)
        return provoke

    return keep


def alone(act: Provoke) -> Provoke:
    """ACT in a process group of one rank, whose store is in memory.

    What the frames of its error hold goes before the group does. A wrapper that outlives the group would end it with
    the interpreter's lock held, which the group's threads may be waiting for: both would wait for ever.
    """

    def within() -> object:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is handed on
            raise error.with_traceback(None) from None
        finally:
            gc.collect()
            dist.barrier()
            dist.destroy_process_group()

    return within


def leaf(*shape: int) -> torch.Tensor:
    return ones(*shape, requires_grad=True)


def double() -> torch.Tensor:
    return torch.ones(2, dtype=torch.float64, requires_grad=True)


class Sound(autograd.Function):
    """A Function without a fault, to be broken in one place by each case."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def _function(**methods: Callable[..., Any]) -> Any:
    """A Function like Sound but for METHODS."""
    return type("Broken", (Sound,), {name: staticmethod(method) for name, method in methods.items()})


# Autograd.


@says("view-made-without-grad")
def _() -> None:
    x = leaf(3).clone()
    with torch.no_grad():
        view = x[:2]
    view.mul_(2)


@says("inference-tensor-saved")
def _() -> None:
    with torch.inference_mode():
        x = ones(2)
    (x * leaf(2)).sum().backward()


@says("inference-tensor-changed")
def _() -> None:
    with torch.inference_mode():
        x = ones(2)
    x.add_(1)


@says("sparse-gradients", optimizer="Adam")
def _() -> None:
    layer = nn.Embedding(3, 2, sparse=True)
    layer(tensor([0])).sum().backward()
    torch.optim.Adam(layer.parameters()).step()


@says("scheduler-past-its-end", stepped=3, total=2)
def _() -> None:
    optimizer = torch.optim.SGD([leaf(1)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=2)
    for _ in range(3):
        optimizer.step()
        scheduler.step()


@says("backward-made-nan", function="SqrtBackward0", output=0)
def _() -> None:
    with autograd.detect_anomaly():
        (zeros(1).requires_grad_().sqrt() * 0).sum().backward()


@says("norm-not-finite", order="2.0")
def _() -> None:
    x = leaf(1)
    x.grad = tensor([float("nan")])
    nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)


@says("gradient-does-not-fit", what="size", given="[3]", expected="[2]")
def _() -> None:
    leaf(2).grad = ones(3)


@says("flag-of-result")
def _() -> None:
    (leaf(1) * 2).requires_grad = False


PROVOKED |= {
    "one-of-many-views": (lambda: leaf(3).clone().unbind()[0].mul_(2), {"output": 0}),
    "unused-in-graph": (lambda: autograd.grad(leaf(1).sum(), leaf(1)), {"index": 0}),
    "integer-gradient": (lambda: ones(1).long().requires_grad_(), {}),
    "gradient-of-other-shape": (
        lambda: leaf(2).exp().backward(ones(3)),
        {"position": 0, "given": [3], "expected": [2]},
    ),
    "hook-without-gradient": (lambda: ones(1).register_hook(print), {}),
    "gradient-of-result": (lambda: (leaf(1) * 2).grad, {}),
    "not-positive-definite": (
        lambda: torch.linalg.cholesky(zeros(2, 2)),
        {"operation": "linalg.cholesky", "order": 1},
    ),
    "singular-matrix": (lambda: torch.linalg.inv(zeros(2, 2)), {"operation": "linalg.inv", "element": 1}),
    "matrix-not-finite": (
        lambda: torch.linalg.svd(torch.full((2, 2), float("nan"))),
        {"operation": "linalg.svd"},
    ),
    "distribution-invalid": (
        lambda: torch.distributions.Categorical(logits=torch.full((3,), float("nan")), validate_args=True),
        {"parameter": "logits", "shape": [3], "distribution": "Categorical"},
    ),
    "probability-not-finite": (lambda: torch.multinomial(tensor([float("nan"), 1.0]), 1), {}),
    "probability-out-of-range": (lambda: F.binary_cross_entropy(ones(4) * 2, ones(4)), {}),
}

# Functions of one's own.


@says("dirty-leaf")
def _() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x.mul_(2))
        return x

    _function(forward=forward).apply(leaf(2))


@says("dirty-not-returned")
def _() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x.mul_(2))
        return x * 2

    _function(forward=forward).apply(leaf(2).clone())


@says("dirty-no-input")
def _() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    _function(forward=forward).apply(leaf(2))


@says("dirty-no-tensor")
def _() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(3)
        return x * 2

    _function(forward=forward).apply(leaf(2))


@says("once-differentiable")
def _() -> None:
    once = _function(backward=autograd.function.once_differentiable(lambda ctx, grad: grad * 2))
    x = leaf(1)
    (gradient,) = autograd.grad((once.apply(x) ** 2).sum(), x, create_graph=True)
    gradient.sum().backward()


@says("legacy-function")
def _() -> None:
    class Old(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x

    Old()(leaf(1))


@says("vmap-rule-missing", function="Split")
def _() -> None:
    class Split(autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

    torch.func.vmap(Split.apply)(ones(3))


PROVOKED |= {
    "view-of-function": (
        lambda: _function(forward=lambda ctx, x: x.view(-1)).apply(leaf(2).clone()).mul_(2),
        {"output": 0, "function": "Broken"},
    ),
    "method-missing": (
        lambda: _function(backward=autograd.Function.backward).apply(leaf(1)).backward(),
        {"method": "backward or vjp"},
    ),
    "setup-context-missing": (lambda: torch.func.vmap(Sound.apply)(ones(3)), {}),
    "gradient-no-tensor": (
        lambda: _function(backward=lambda ctx, grad: "a").apply(leaf(1)).backward(),
        {"got": "str"},
    ),
    "gradient-kind": (
        lambda: _function(backward=lambda ctx, grad: ones(1, device="meta")).apply(leaf(1)).backward(),
        {"function": "BrokenBackward", "index": 0, "what": "device", "expected": "cpu", "got": "meta"},
    ),
    "backward-not-repeatable": (
        lambda: autograd.gradcheck(
            _function(backward=lambda ctx, grad: grad * 2 + torch.rand_like(grad) / 1000).apply, (double(),), atol=1
        ),
        {},
    ),
    "gradient-cut": (lambda: autograd.gradcheck(lambda x: x.detach() * 2, (double(),)), {}),
    "gradcheck-without-gradient": (lambda: autograd.gradcheck(lambda x: x, (ones(2),)), {}),
    "gradcheck-in-single": (lambda: autograd.gradcheck(lambda x: x * 2, (leaf(2),)), {"input": 0}),
}

# Recomputation of activations.


def _recomputed(first: Callable[[Any], Any], later: Callable[[Any], Any]) -> None:
    """FIRST is applied in forward and LATER when it is recomputed."""
    acts = [later, first]

    def act(x: Any) -> Any:
        return acts.pop()(x)

    checkpoint(act, leaf(2), use_reentrant=False).sum().backward()


@says("recomputation-and-grad")
def _() -> None:
    x = leaf(1)
    autograd.grad(checkpoint(torch.exp, x, use_reentrant=True).sum(), x)


PROVOKED |= {
    "recomputation-not-needed": (
        lambda: checkpoint(lambda x: x.detach() * 1, leaf(1), use_reentrant=True).sum().backward(),
        {},
    ),
    "recomputation-without-gradient": (lambda: checkpoint(torch.exp, ones(1), use_reentrant=True), {}),
    "recomputed-differently": (lambda: _recomputed(torch.exp, lambda x: x[:1].exp()), {}),
    "recomputed-other-count": (
        lambda: _recomputed(lambda x: x.exp().sin(), torch.exp),
        {"forward": 2, "recomputed": 1},
    ),
}

# Modules.


class Plain(nn.Module):
    def forward(self, x: Any, mask: Any) -> Any:
        return x


@says("not-a-module", given="int", name="0")
def _() -> None:
    setattr(nn.Sequential(nn.Linear(1, 1)), "0", 1)


@says("not-a-buffer", given="int", name="running_mean")
def _() -> None:
    nn.BatchNorm1d(1).running_mean = 3  # type: ignore[assignment]


@says("part-unknown", module="Linear", attribute="wieght")
def _() -> None:
    try:
        nn.Linear(1, 1).wieght  # noqa: B018
    except AttributeError:
        sys.stderr.write(traceback.format_exc())


@says("copy-of-a-result")
def _() -> None:
    layer = nn.Linear(1, 1)
    layer.kept = layer.weight * 2
    copy.deepcopy(layer)


@says("parameter-in-two-groups")
def _() -> None:
    x = leaf(1)
    torch.optim.SGD([{"params": [x]}, {"params": [x]}], lr=1.0)


PROVOKED |= {
    "not-a-module-subclass": (lambda: nn.Sequential(3), {"given": "int"}),  # type: ignore[arg-type]
    "forward-undefined": (lambda: nn.ModuleList([nn.Linear(1, 1)])(ones(1)), {"module": "ModuleList"}),
    "forward-argument-missing": (lambda: Plain()(ones(1)), {"module": "Plain", "count": 1, "first": "mask"}),
    "forward-argument-unknown": (lambda: Plain()(ones(1), masks=1), {"module": "Plain", "argument": "masks"}),
    "forward-arguments-too-many": (lambda: Plain()(1, 2, 3), {"module": "Plain", "takes": 3, "given": 4}),
    "container-called": (lambda: nn.ParameterList([nn.Parameter(ones(1))])(1), {"container": "ParameterList"}),
    "name-taken": (lambda: nn.Linear(1, 1).register_buffer("weight", ones(1)), {"name": "weight"}),
    "name-with-dot": (lambda: nn.Module().add_module("a.b", nn.Linear(1, 1)), {"what": "module", "name": "a.b"}),
    "lazy-not-initialised": (lambda: sum(each.numel() for each in nn.LazyLinear(3).parameters()), {}),
    "heads-do-not-divide": (lambda: nn.MultiheadAttention(8, 3), {"size": "embed_dim", "heads": "num_heads"}),
    "json-broken": (
        lambda: json.loads('{"lr": 0.1 "steps": 5}'),
        {"what": "Expecting ',' delimiter", "line": 1, "column": 12},
    ),
    "division-by-zero": (lambda: sum([]) / len([]), {}),
    "fan-of-a-vector": (lambda: nn.init.kaiming_normal_(ones(3)), {}),
    "optimizer-given-result": (lambda: torch.optim.SGD([leaf(1) * 2], lr=1.0), {}),
    "optimizer-given-tensor": (lambda: torch.optim.SGD(leaf(1), lr=1.0), {"given": "torch.FloatTensor"}),
    "optimizer-given-other": (lambda: torch.optim.SGD([3], lr=1.0), {"given": "int"}),  # type: ignore[list-item]
}

# Shapes.

PROVOKED |= {
    "conv-channels": (
        lambda: nn.Conv2d(3, 8, 3)(ones(1, 1, 8, 8)),
        {"groups": 1, "weight": [8, 3, 3, 3], "input": [1, 1, 8, 8], "expected": 3, "got": 1},
    ),
    "conv-dimensions": (
        lambda: nn.Conv2d(3, 8, 3)(ones(3, 8)),
        {"unbatched": "3D", "batched": "4D", "operation": "conv2d", "input": [3, 8]},
    ),
    "kernel-too-large": (lambda: nn.Conv2d(3, 8, 5)(ones(1, 3, 2, 2)), {"input": [2, 2], "kernel": [5, 5]}),
    "output-too-small": (lambda: nn.MaxPool2d(4)(ones(1, 3, 2, 2)), {"input": [3, 2, 2], "output": "3x0x0"}),
    "invalid-reshape": (lambda: ones(6).reshape(-1, 4), {"shape": "-1, 4", "elements": 6}),
    "view-of-scattered": (lambda: ones(2, 3).t().view(6), {}),
    "cat-sizes": (
        lambda: torch.cat([ones(2, 3), ones(2, 4)]),
        {"dimension": 0, "expected": 3, "got": 4, "position": 1},
    ),
    "cat-dimensions": (lambda: torch.cat([ones(2, 3), ones(2)]), {"first": 2, "second": 1}),
    "expanded-size": (
        lambda: ones(3).expand(4),
        {"expanded": 4, "existing": 3, "dimension": 0, "target": "4", "tensor": [3]},
    ),
    "expanded-dimensions": (lambda: ones(2, 3).expand(3), {"provided": 1, "dimensions": 2}),
    "stacked-sizes": (lambda: torch.stack([ones(2), ones(3)]), {"first": [2], "other": [3], "entry": 1}),
    "batch-sizes": (lambda: F.cross_entropy(ones(4, 3), ones(5).long()), {"input": 4, "target": 5}),
    "one-class-per-sample": (lambda: F.nll_loss(ones(4, 3), ones(4, 3).long()), {}),
    "spatial-target": (
        lambda: F.cross_entropy(ones(2, 3, 4, 4), ones(2, 1, 4, 4).long()),
        {"dimensions": 4},
    ),
    "class-number-type": (lambda: F.cross_entropy(ones(4, 3), ones(4)), {"got": "Float"}),
    "class-probability-type": (lambda: F.cross_entropy(ones(4, 3), ones(4, 3).long()), {"got": "Long"}),
    "target-size": (
        lambda: F.binary_cross_entropy_with_logits(ones(4), ones(4, 1)),
        {"target": [4, 1], "input": [4]},
    ),
    "target-broadcast": (lambda: F.mse_loss(ones(4), ones(4, 1)), {"target": [4, 1], "input": [4]}),
    "einsum-size": (
        lambda: torch.einsum("ij,jk->ik", ones(2, 3), ones(4, 5)),
        {"subscript": "j", "size": 4, "operand": 1, "seen": 3},
    ),
    "einsum-subscripts": (
        lambda: torch.einsum("ijk,jk->ik", ones(2, 3), ones(3, 5)),
        {"subscripts": 3, "dimensions": 2, "operand": 0},
    ),
    "broadcast-in-place": (lambda: ones(3).add_(ones(2, 3)), {"output": [3], "broadcast": [2, 3]}),
    "permute-dimensions": (lambda: ones(2, 3).permute(0, 2, 1), {"dimensions": 2, "named": 3}),
    "dimension-out-of-range": (lambda: ones(2, 3).sum(2), {"low": -2, "high": 1, "got": 2}),
    "too-many-indices": (lambda: ones(2, 3)[0, 0, 0], {"dimensions": 2}),
    "index-out-of-bounds": (lambda: ones(2, 3)[5], {"index": 5, "dimension": 0, "size": 2}),
    "mask-shape": (lambda: ones(5)[ones(4).bool()], {"mask": [4], "index": 0, "tensor": [5]}),
    "index-type": (lambda: ones(5)[ones(4)], {"allowed": "long, int, byte or bool"}),
    "gather-size": (
        lambda: ones(3, 3).gather(0, ones(4, 4).long()),
        {"dimension": 1, "index": [4, 4], "tensor": [3, 3]},
    ),
    "class-above-count": (lambda: F.one_hot(tensor([5]), 3), {}),
    "index-tensor-type": (
        lambda: nn.Embedding(3, 2)(ones(2)),
        {"argument": 1, "name": "indices", "allowed": "Long, Int", "got": "torch.FloatTensor"},
    ),
    "rnn-input-size": (lambda: nn.LSTM(3, 4)(ones(5, 2, 7)), {"expected": 3, "got": 7}),
    "rnn-hidden-size": (
        lambda: nn.LSTM(3, 4)(ones(5, 2, 3), (ones(1, 9, 4), ones(1, 9, 4))),
        {"part": 0, "expected": [1, 2, 4], "got": [1, 9, 4]},
    ),
    "attention-width": (lambda: nn.MultiheadAttention(8, 2)(*[ones(3, 1, 6)] * 3), {"expected": 8, "got": 6}),
    "attention-mask-shape": (
        lambda: nn.MultiheadAttention(8, 2)(*[ones(3, 1, 8)] * 3, attn_mask=ones(4, 4)),
        {"kind": "2D", "given": [4, 4], "expected": [3, 3]},
    ),
    "normalised-shape": (lambda: nn.LayerNorm(8)(ones(2, 6)), {"normalized": [8], "input": [2, 6]}),
    "norm-dimensions": (lambda: nn.BatchNorm2d(3)(ones(1, 3)), {"expected": "4D", "got": "2D"}),
    "norm-channels": (lambda: nn.BatchNorm1d(3)(ones(2, 4)), {"got": 4, "expected": 3}),
    "batched-product": (
        lambda: torch.bmm(ones(2, 3, 4), ones(2, 5, 6)),
        {"expected": [2, 4], "got": [2, 5]},
    ),
    "batch-must-be-3d": (lambda: torch.bmm(ones(3, 4), ones(4, 6)), {"argument": "batch1"}),
    "matrix-vector": (lambda: ones(3, 4) @ ones(3), {"input": [3], "mat": [3, 4], "vec": [3]}),
    "split-sizes": (lambda: torch.split(ones(5), [2, 2]), {"total": 5, "dimension": 0, "sizes": [2, 2]}),
    "ragged-list": (lambda: tensor([[1], [2, 3]]), {"expected": 1, "dimension": 1, "got": 2}),
    "one-element-needed": (lambda: float(ones(2)), {}),
    "item-of-many": (lambda: ones(2).item(), {"elements": 2}),
    "ambiguous-truth": (lambda: bool(ones(2)), {"count": "more than one value"}),
    "numpy-needs-detach": (lambda: leaf(2).numpy(), {}),
    "negative-stride": (lambda: torch.from_numpy(np.ones(3)[::-1]), {}),
    "negative-size": (lambda: torch.empty(-1), {"dimension": -1, "shape": "-1"}),
    "overlapping-write": (lambda: ones(1).expand(3).add_(1), {}),
    "argument-type": (
        lambda: nn.Linear(1, 1)([1.0]),
        {"operation": "linear", "argument": "input", "position": 1, "given": "list"},
    ),
    "mean-of-integers": (lambda: ones(2).long().mean(), {"got": "Long"}),
    "lengths-not-sorted": (lambda: nn.utils.rnn.pack_padded_sequence(ones(3, 2, 1), tensor([1, 3])), {}),
}

# Types.

PROVOKED |= {
    "expected-scalar-type": (
        lambda: torch.bmm(ones(1, 2, 2), ones(1, 2, 2).half()),
        {"expected": "Float", "found": "Half"},
    ),
    "same-dtype": (lambda: nn.Linear(2, 2)(ones(1, 2).half()), {"first": "Half", "second": "Float"}),
    "input-and-weight-type": (
        lambda: nn.Conv2d(1, 1, 1)(ones(1, 1, 2, 2).half()),
        {"input": "c10::Half", "weight": "float"},
    ),
    "no-kernel-for-type": (
        lambda: ones(2).long().softmax(0),
        {"operation": "softmax_lastdim_kernel_impl", "type": "Long"},
    ),
    "same-dtype-self": (
        lambda: torch.addmm(ones(2), ones(2, 2), ones(2, 2).half()),
        {"first": "Float", "second": "Half"},
    ),
    "result-cast": (lambda: ones(2).long().add_(ones(2)), {"result": "Float", "output": "Long"}),
    "found-dtype": (
        lambda: F.binary_cross_entropy(ones(4), ones(4).double()),
        {"found": "Double", "expected": "Float"},
    ),
    "vectors-dtype": (lambda: torch.dot(ones(2), ones(2).half()), {"first": "Float", "second": "Half"}),
    "rnn-dtype": (
        lambda: nn.LSTM(2, 2)(ones(1, 1, 2).half()),
        {"input": "torch.float16", "weight": "torch.float32"},
    ),
    "index-put-dtype": (
        lambda: ones(3).index_put_((tensor([0]),), ones(1).half()),
        {"destination": "Float", "source": "Half"},
    ),
    "source-dtype": (
        lambda: ones(3).index_add_(0, tensor([0]), ones(1).half()),
        {"operation": "index_add_", "own": "Float", "source": "Half"},
    ),
    "scatter-dtype": (lambda: zeros(3).scatter_(0, tensor([1]), ones(1).double()), {"operation": "scatter"}),
    "half-overflow": (lambda: ones(2).half().masked_fill(ones(2).bool(), -1e9), {"type": "Half"}),
    "attention-dtype": (
        lambda: F.scaled_dot_product_attention(*(x := [ones(1, 1, 3, 4)]), x[0].half(), x[0]),
        {"query": "float", "key": "c10::Half", "value": "float"},
    ),
    "attention-mask-dtype": (
        lambda: F.scaled_dot_product_attention(*[ones(1, 1, 3, 4)] * 3, attn_mask=ones(3, 3).half()),
        {"mask": "c10::Half", "query": "float"},
    ),
    "end-dtype": (
        lambda: ones(2).lerp(ones(2).half(), 0.5),
        {"expected": "float", "argument": "end", "got": "c10::Half"},
    ),
    "no-numpy-type": (lambda: ones(2).bfloat16().numpy(), {"type": "BFloat16"}),
}

# Devices and memory.


@says("other-data-device")
def _() -> None:
    ones(1).data = ones(1, device="meta")


PROVOKED |= {
    "meta-without-data": (lambda: nn.Linear(1, 1, device="meta").to("cpu"), {}),
    "meta-item": (lambda: ones(1, device="meta").item(), {}),
    "unexpected-device": (lambda: ones(2) + ones(2, device="meta"), {"found": "meta", "expected": "cpu"}),
    "gradient-device": (
        lambda: ((ones(2, 2).requires_grad_() * 1) @ ones(2, 2, device="meta", requires_grad=True)).sum().backward(),
        {"operation": "Mm", "index": 1, "expected": "meta", "got": "cpu"},
    ),
    "device-name": (lambda: torch.device("gpu"), {"given": "gpu"}),
    "numpy-needs-cpu": (lambda: ones(2, device="meta").numpy(), {"device": "meta"}),
    "numpy-out-of-memory": (
        lambda: np.empty((10**8, 10**8)),
        {"tried": 71.1, "tried_unit": "PiB", "shape": [10**8, 10**8], "type": "float64"},
    ),
}

# The loader.


class Items(Dataset[Any]):
    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.items[index], Exception):
            raise self.items[index]
        return self.items[index]


class Dying(Items):
    def __getitem__(self, index: int) -> Any:
        os._exit(1)


class Endless(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(self, None)


def _loaded(items: Items) -> None:
    """One batch of ITEMS, from a worker that is ended at once: left to the collector it takes five seconds."""
    batches: Any = iter(DataLoader(items, num_workers=1))
    try:
        next(batches)
    finally:
        batches._shutdown_workers()


PROVOKED |= {
    "worker-raised": (
        lambda: _loaded(Items(KeyError("a"))),
        {"error": "KeyError", "worker": 0},
    ),
    "worker-killed": (lambda: _loaded(Dying(1)), {}),
    "collate-type": (lambda: default_collate([None, None]), {"found": "NoneType"}),
    "collate-lengths": (lambda: default_collate([[1, 2], [1]]), {}),
    "no-samples": (lambda: DataLoader(Items(), shuffle=True), {"samples": "0"}),
    "workers-needed": (lambda: DataLoader(Items(1), persistent_workers=True), {"option": "persistent_workers"}),
    "loader-options": (
        lambda: DataLoader(Items(1), shuffle=True, sampler=SequentialSampler([1])),
        {"option": "sampler", "other": "shuffle"},
    ),
    "iterable-shuffled": (lambda: DataLoader(Endless(), shuffle=True), {"option": "shuffle"}),
    "split-lengths": (lambda: random_split(Items(1, 2, 3), [1, 1]), {}),
    "too-many-workers": (lambda: DataLoader(Items(1), num_workers=99999), {"workers": 99999}),
}

# Checkpoints.


def _written(content: bytes) -> str:
    Path("model.pt").write_bytes(content)
    return "model.pt"


def _saved(value: object, *, zipped: bool = True) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


def _repacked(change: Callable[[str, bytes], bytes | None]) -> str:
    """A checkpoint whose parts went through CHANGE; a part that it makes None of is missing."""
    with zipfile.ZipFile(io.BytesIO(_saved(ones(2)))) as old, zipfile.ZipFile("model.pt", "w") as new:
        for name in old.namelist():
            if (content := change(name, old.read(name))) is not None:
                new.writestr(name, content)
    return "model.pt"


def _from(device: str) -> str:
    """A checkpoint saved on DEVICE."""
    text = f"X{chr(len(device))}\0\0\0{device}".encode()
    return _repacked(lambda _, content: content.replace(b"X\x03\x00\x00\x00cpu", text))


class Full(io.BytesIO):
    """A disk that is full after the first writes."""

    def write(self, content: Any) -> int:
        if self.tell():
            raise OSError(28, "No space left on device")
        return super().write(content)


@says("class-gone", name="Net", module="models_of_old")
def _() -> None:
    module = types.ModuleType("models_of_old")
    module.Net = type("Net", (), {"__module__": module.__name__})  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    try:
        content = _saved(module.Net())
        del module.Net
        torch.load(_written(content), weights_only=False)
    finally:
        del sys.modules[module.__name__]


@says("archive-without-folder", file="data.pkl")
def _() -> None:
    with zipfile.ZipFile("model.pt", "w") as archive:
        archive.writestr("data.pkl", b"")
    torch.load("model.pt")


@says("torchscript-archive")
def _() -> None:
    torch.jit.script(nn.Linear(1, 1)).save("model.pt")
    torch.load("model.pt")


@says("copied-to-meta", name="weight")
def _() -> None:
    nn.Linear(1, 1, device="meta").load_state_dict(nn.Linear(1, 1).state_dict())


def _optimizer(bias: bool) -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(1, 1, bias=bias).parameters(), lr=1.0)


@says("optimizer-group-count")
def _() -> None:
    other = _optimizer(bias=True)
    other.add_param_group({"params": [leaf(1)]})
    other.load_state_dict(_optimizer(bias=True).state_dict())


def _sharded(wanted: dict[str, Any]) -> None:
    from torch.distributed import checkpoint as shards

    shards.save({"a": ones(2)}, checkpoint_id="shards")
    try:
        shards.load(wanted, checkpoint_id="shards")
    except shards.api.CheckpointException as error:  # no Exception
        raise RuntimeError(str(error)) from error


PROVOKED |= {
    "no-central-directory": (lambda: torch.load(_written(_saved(ones(1000))[:3000])), {}),
    "parameter-not-copied": (
        lambda: nn.Linear(1, 1).load_state_dict({"weight": 3, "bias": 4}),
        {"name": "weight", "got": "int"},
    ),
    "state-no-dict": (lambda: nn.Linear(1, 1).load_state_dict("a.pt"), {"given": "str"}),  # type: ignore[arg-type]
    "optimizer-group-size": (lambda: _optimizer(bias=False).load_state_dict(_optimizer(bias=True).state_dict()), {}),
    "magic-number": (lambda: torch.load(_written(pickle.dumps(3, 2)), weights_only=False), {}),
    "load-key": (lambda: torch.load(_written(b"<!DOCTYPE html>"), weights_only=False), {"key": "<"}),
    "no-pickle": (lambda: torch.load(_written(b"version https://git-lfs.github.com/spec/v1")), {"operand": 118}),
    "record-missing": (
        lambda: torch.load(_repacked(lambda name, content: None if "/data/" in name else content)),
        {"file": "data/0"},
    ),
    "no-zip-archive": (lambda: torch.jit.load(_written(b"hello")), {}),
    "storage-cut-off": (lambda: torch.load(_written(_saved(ones(1000), zipped=False)[:-800])), {"missing": 800}),
    "pickle-cut-off": (
        lambda: torch.load(_written(_saved(ones(1000), zipped=False)[:40]), weights_only=False),
        {},
    ),
    "file-empty": (lambda: torch.load(_written(b""), weights_only=False), {}),
    "saved-on-cuda": (lambda: torch.load(_from("cuda:99")), {}),
    "saved-elsewhere": (lambda: torch.load(_from("toaster")), {"device": "toaster"}),
    "generator-state-moved": (lambda: torch.set_rng_state(ones(3)), {}),
    "shards-without-key": (lambda: _sharded({"b": ones(2)}), {"key": "b"}),
    "shards-of-other-size": (lambda: _sharded({"a": ones(3)}), {"saved": [2], "current": [3], "name": "a"}),
    "folder-missing": (lambda: torch.save(1, "no/model.pt"), {"folder": "no"}),
    "write-cut-off": (lambda: torch.save(ones(99999), Full()), {}),
    "schedule-without-rate": (
        lambda: torch.optim.lr_scheduler.StepLR(_optimizer(bias=True), 1, last_epoch=3),
        {"name": "initial_lr", "group": 0},
    ),
}

# Precision.


def _scaled(*, half: bool = False) -> tuple[torch.amp.GradScaler, torch.optim.Optimizer]:
    x, scaler = (ones(1).half() if half else ones(1)).requires_grad_(), torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(x.sum()).backward()
    return scaler, torch.optim.SGD([x], lr=1.0)


@says("stepped-twice")
def _() -> None:
    scaler, optimizer = _scaled()
    scaler.step(optimizer)
    scaler.step(optimizer)


@says("unscaled-after-step")
def _() -> None:
    scaler, optimizer = _scaled()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)


@says("unscaled-twice")
def _() -> None:
    scaler, optimizer = _scaled()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


@says("half-gradients")
def _() -> None:
    scaler, optimizer = _scaled(half=True)
    scaler.unscale_(optimizer)


@says("no-inf-checks")
def _() -> None:
    scaler, _ = _scaled()
    scaler.step(_optimizer(bias=True))


@says("scaler-with-closure")
def _() -> None:
    scaler, optimizer = _scaled()
    scaler.step(optimizer, closure=lambda: 1)


@says("scheduler-before-optimizer")
def _() -> None:
    torch.optim.lr_scheduler.StepLR(_optimizer(bias=True), 1).step()


@says("autocast-switched-off", device="CPU")
def _() -> None:
    with torch.autocast("cpu", dtype=torch.float64):
        pass


PROVOKED |= {
    "nothing-scaled": (lambda: torch.amp.GradScaler("cpu").update(), {"call": "update"}),
    "scaler-state-empty": (lambda: torch.amp.GradScaler("cpu").load_state_dict({}), {}),
    "amp-renamed": (torch.cpu.amp.autocast, {"device": "cpu", "name": "autocast"}),
}

# Ranks.


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x: Any) -> Any:
        return self.used(x)


class Reentrant(TwoLayers):
    def forward(self, x: Any) -> Any:
        return checkpoint(self.used, checkpoint(self.used, x, use_reentrant=True), use_reentrant=True)


@says("parameters-without-gradient", rank=0, which="2 3")
@alone
def _() -> None:
    model = DistributedDataParallel(TwoLayers())
    for _ in range(2):
        model(ones(1, 1)).sum().backward()


@says("parameter-ready-twice")
@alone
def _() -> None:
    model = DistributedDataParallel(Reentrant(), find_unused_parameters=True)
    model(leaf(1, 1)).sum().backward()


def _flattened(part: Callable[[nn.Linear], object]) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    layer = nn.Linear(1, 1)
    part(layer)
    FullyShardedDataParallel(layer, device_id=torch.device("cpu"))


def _shard(layer: nn.Module) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(layer, mesh=init_device_mesh("cpu", (1,)))


@says("shards-of-two-types", first="torch.float32", second="torch.float16")
@alone
def _() -> None:
    _flattened(lambda layer: setattr(layer, "bias", nn.Parameter(ones(1).half())))


@says("shards-partly-frozen")
@alone
def _() -> None:
    _flattened(lambda layer: layer.bias.requires_grad_(False))


@says("mixed-shards", operation="aten.mm.default")
@alone
def _() -> None:
    layer = nn.Linear(2, 2)
    _shard(layer)
    torch.mm(layer.weight, ones(2, 2))


@says("sharded-twice", call="fully_shard")
@alone
def _() -> None:
    layer = nn.Linear(2, 2)
    _shard(layer)
    _shard(layer)


@says("mesh-too-large", world_size=1, ranks=2)
@alone
def _() -> None:
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2,))


@says("master-unreachable", host="127.0.0.1")
def _() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers, and nobody else can take it
        dist.TCPStore("127.0.0.1", bound.getsockname()[1], 2, False, timeout=SOON)


@says("address-in-use")
def _() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        dist.TCPStore("127.0.0.1", bound.getsockname()[1], 1, True, timeout=SOON)


@says("child-failed", script="train.py")
def _() -> None:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    raise ChildFailedError("train.py", {0: ProcessFailure(local_rank=0, pid=4242, exitcode=-9, error_file="none")})


@says("child-exit", exitcode=-9, pid=4242)
def _() -> None:
    PROVOKED["child-failed"][0]()


@says("signal-received")
def _() -> None:
    from torch.distributed.elastic.multiprocessing.api import _terminate_process_handler

    _terminate_process_handler(15, None)


def _end(rank: int) -> None:
    os._exit(3)


def _raise(rank: int) -> None:
    raise KeyError(rank)


PROVOKED |= {
    "no-process-group": (lambda: dist.all_reduce(ones(1)), {}),
    "nothing-to-reduce": (alone(lambda: DistributedDataParallel(nn.ReLU())), {}),
    "device-ids": (alone(lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0, 1])), {}),
    "device-ids-of-other-module": (
        alone(lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0])),
        {"device_ids": "[0]", "output_device": "None"},
    ),
    "group-twice": (alone(lambda: dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)), {}),
    "wrapper-attribute": (
        alone(lambda: DistributedDataParallel(nn.Linear(1, 1)).in_features),
        {"wrapper": "DistributedDataParallel", "attribute": "in_features"},
    ),
    "collective-size": (
        alone(lambda: dist.all_gather([ones(2)], ones(1))),
        {"backend": "Gloo", "operation": "allgather", "index": 0, "expected": [1], "got": [2]},
    ),
    "collective-root": (
        alone(lambda: dist.broadcast(ones(1), 5)),
        {"backend": "Gloo", "operation": "broadcast", "rank": 5},
    ),
    "collective-outside-group": (
        alone(lambda: dist.all_reduce(ones(1), group=dist.GroupMember.NON_GROUP_MEMBER)),
        {"operation": "all_reduce", "rank": 0},
    ),
    "collective-type": (alone(lambda: dist.all_reduce(ones(1).to(torch.float8_e4m3fn))), {}),
    "sent-to-itself": (alone(lambda: dist.send(ones(1), 0)), {"role": "destination"}),
    "backend-not-built": (lambda: dist.init_process_group("mpi"), {"backend": "MPI"}),
    "rank-not-in-group": (
        alone(lambda: dist.get_group_rank(dist.new_group([0]), 3)),
        {"kind": "Global", "rank": 3},
    ),
    "rank-out-of-range": (
        lambda: DistributedSampler(Items(1), num_replicas=2, rank=2),
        {"rank": 2, "last": 1},
    ),
    "store-wait": (
        lambda: dist.TCPStore("127.0.0.1", 0, 1, True, timeout=SOON).wait(["a"], SOON),
        {"timeout_ms": 50, "keys": "/a"},
    ),
    "clients-missing": (
        lambda: dist.TCPStore("127.0.0.1", 0, 2, True, timeout=SOON),
        {"joined": 1, "expected": 2},
    ),
    "child-process-ended": (
        lambda: torch.multiprocessing.start_processes(_end, nprocs=1, start_method="fork"),
        {"process": 0, "exit_code": 3},
    ),
    "child-process-raised": (
        lambda: torch.multiprocessing.start_processes(_raise, nprocs=1, start_method="fork"),
        {"process": 0},
    ),
    "launcher-variable": (lambda: os.environ["LOCAL_RANK"], {"variable": "LOCAL_RANK"}),
}

# The compiler.


def _compiled(act: Callable[..., Any], *inputs: Any, **options: Any) -> None:
    """ACT compiled, and called on each of INPUTS; what an earlier test compiled of ACT is not used again."""
    torch._dynamo.reset()
    compiled = torch.compile(act, backend=options.pop("backend", "eager"), dynamic=False, **options)
    for each in inputs:
        compiled(each)


def _failing(graph: Any, example: Any) -> Any:
    raise KeyError(example)


def _branch(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


@says("recompile-limit", limit="recompile_limit", count=1, function="_branch")
def _() -> None:
    log, handler = logging.getLogger("torch._dynamo.convert_frame"), logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    try:
        with torch._dynamo.config.patch(recompile_limit=1):
            _compiled(_branch, ones(2), ones(3), ones(4))
    finally:
        log.removeHandler(handler)


@says("recompiled", function="double_of")
def _() -> None:
    with torch._dynamo.config.patch(error_on_recompile=True):
        _compiled(double_of, ones(2), ones(3))


def double_of(x: Any) -> Any:
    return x * 2


@says("recompile-forbidden", function="double_of")
def _() -> None:
    compiled = torch.compile(double_of, backend="eager", dynamic=False)
    compiled(ones(2))
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(ones(3))


@says("data-dependent")
def _() -> None:
    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return _branch(x)

    torch.export.export(Branch(), (ones(2),))


PROVOKED |= {
    "compiler-failed": (
        lambda: _compiled(double_of, ones(2), backend=_failing),
        {"backend": "_failing", "error": "KeyError"},
    ),
    "compiler-unknown": (lambda: torch.compile(double_of, backend="none-such"), {"backend": "none-such"}),
    "fake-tensor-call": (lambda: _compiled(lambda x: x @ ones(4, 5), ones(2, 3)), {}),
    "not-traceable": (
        lambda: _compiled(_branch, ones(2), fullgraph=True),
        {"what": "Data-dependent branching"},
    ),
}


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, no launcher, and nothing but this machine."""
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    torch.manual_seed(0)


def _said(provoke: Provoke, capsys: pytest.CaptureFixture[str]) -> str:
    """What PROVOKE raises, warns and logs."""
    raised = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            provoke()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            raised = f"{type(error).__name__}: {error}"
    warned = (f"{each.category.__name__}: {each.message}" for each in caught)
    return "\n".join([raised, *warned, capsys.readouterr().err])


def _read(text: str, name: str) -> Decoded:
    """The first message NAME in TEXT."""
    found = {each.decoded.signature: each.decoded for each in reversed(decode(text, SIGNATURES))}
    assert name in found, f"{sorted(found)} in: {text[:2000]}"
    return found[name]


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("name", sorted(PROVOKED))
def test_the_installed_torch_says_it_that_way(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    provoke, fields = PROVOKED[name]
    decoded = _read(_said(provoke, capsys), name)
    assert {key: decoded.fields.get(key) for key in fields} == fields


@pytest.mark.parametrize("row", MESSAGES, ids=[row["name"] for row in MESSAGES])
def test_a_message_that_cannot_be_provoked_here_is_taken_apart(row: dict[str, Any]) -> None:
    assert row["source"]
    assert _read(row["text"], row["name"]).fields == row["fields"]


@pytest.mark.parametrize("row", MESSAGES, ids=[row["name"] for row in MESSAGES])
def test_a_message_in_a_log_is_a_mention_of_its_symptom(row: dict[str, Any]) -> None:
    symptom = next(symptom for symptom, signature in SIGNATURES if signature.name == row["name"])
    query = listen(f"it stopped with this after an hour:\n\n{row['text']}\n\nwhat now?")
    assert symptom in {each.symptom for each in query.symptoms}


def test_every_signature_is_provoked_or_shown() -> None:
    cases = {*OTHER["CASES"], *OTHER["PROVOKED"], *PROVOKED, *(row["name"] for row in MESSAGES)}
    assert cases - {"weights-only"} == {signature.name for _, signature in SIGNATURES} - {"weights-only"}
    assert len(SIGNATURES) >= 300
    assert len(PROVOKED) >= 180


FAULTS = {signature.name: signature.faults[0] for _, signature in SIGNATURES if len(signature.faults) == 1}
FRAME = 'Traceback (most recent call last):\n  File "/job/train.py", line 27, in <module>\n    step()\n'
OTHER = runpy.run_path(str(HERE / "test_signatures.py"))
TEXTS = {name: text for name, (text, _) in OTHER["CASES"].items()} | {row["name"]: row["text"] for row in MESSAGES}


NO_END = frozenset({"child-failed", "hook-without-gradient", "not-traceable"})
"""Messages that come as a warning, or with the ends of processes that are told instead."""


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_ask_and_read_find_the_fault_that_a_message_names(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = TEXTS[name] if name in TEXTS else _said({**OTHER["PROVOKED"], **PROVOKED}[name][0], capsys)
    message = _read(text, name)
    (asked,) = {each.faults for each in triage.heard(text)[0].decoded if each.signature == name}
    found = {}
    for said in (text, FRAME + (text if _is_error(text) else f"RuntimeError: {text}")):  # some are parts of an error
        log = tmp_path / "a.log"
        log.write_text(f"step 1 loss 0.5\n{said}\n", encoding="utf-8")
        found |= {finding.fault.slug: finding.fault for finding in triage.read([log]).findings}
    assert asked == message.faults == (FAULTS[name],)
    if "Warning: " in text or name in NO_END:
        return  # warnings end nothing, and of a summary the ends of its processes speak
    assert found[FAULTS[name]].remedies == load.catalog().faults[FAULTS[name]].remedies


def _is_error(text: str) -> bool:
    """Whether TEXT is what an exception says, with its type."""
    return re.match(r"[\w.]*(?:Error|Exception|Interrupt|Unsupported)\b", text) is not None


# What looks like a message and is none.
ALIKE = [
    ("part-unknown", "AttributeError: 'NoneType' object has no attribute 'shape'"),
    ("shared-memory-full", "I am unable to write to file servers"),
    ("no-pickle", "TypeError: unsupported operand type(s) for +: 'int' and 'str'"),
    ("killed-by-scheduler", "the room was full"),
    ("collective-type", "Invalid scalar types are refused"),
    ("launcher-variable", "rank = int(os.environ['LOCAL_RANK'])"),
    ("input-and-weight-type", "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"),
    ("input-and-weight-device", "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same"),
    ("target-size", "Using a target size (torch.Size([4, 1])) that is different to the input size (torch.Size([4])). This will likely"),
    ("cublas-error", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ("child-process-ended", "the job terminated with a loss of 0.3"),
    ("peer-gone", "reviewed by peer"),
    ("graph-break", "is this graph break in user code bad?"),
    ("norm-dimensions", "it takes a 3D input)"),
    ("peer-gone", "ConnectionResetError: [Errno 104] Connection reset by peer"),
    ("killed-in-shell", "the kernel killed  python"),
    ("not-traceable", "Unsupported: this file"),
    ("compiler-failed", "the error that it raised: KeyError"),
    ("store-wait", "we wait timeout after timeout"),
    ("cuda-out-of-memory", "RuntimeError: CUDA error: out of memory"),
    ("invalid-gradient", "Function FBackward returned an invalid gradient at index 0 - expected device cpu but got cuda:0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), ALIKE, ids=[name for name, _ in ALIKE])
def test_what_only_looks_like_a_message_is_none(name: str, text: str) -> None:
    assert name not in {each.decoded.signature for each in decode(text, SIGNATURES)}


@pytest.mark.parametrize("name", sorted({signature.name for _, signature in SIGNATURES}))
def test_a_pattern_gives_up_quickly_on_text_that_never_ends(name: str) -> None:
    """A pattern that backtracks without bound would not come back from these."""
    signature = next(signature for _, signature in SIGNATURES if signature.name == name)
    for filling in ("a" * 3000, " " * 3000, "(" * 3000, "1, " * 1000, "x=[" * 1000, "\n" * 3000, "\\" * 3000):
        text = f"{filling}{signature.contains}{filling}"
        assert len(decode(text, [("s", signature)])) <= 1
