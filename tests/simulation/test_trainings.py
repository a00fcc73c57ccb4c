"""Trainings as people write them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn
from trainings import images, language, sequences

from torchtriage.simulation import Costs, Simulator

FOLDER = Path(__file__).parent / "trainings"


def test_a_network_on_images_from_worker_processes(simulator: Simulator) -> None:
    assert images.train("sim", dropout=0.0) == images.train("cpu", dropout=0.0)
    batches = [copy for copy in simulator.ledger.copies if copy.kind == "host-to-device" and copy.non_blocking]
    assert len(batches) == 2 * 8
    assert all(copy.pinned for copy in batches)


def test_an_epoch_waits_only_where_it_reads_its_losses(simulator: Simulator) -> None:
    images.train("sim", workers=0)
    lines = [each.line for each in simulator.ledger.synchronisations if each.call == "copy_"]
    source = (FOLDER / "images.py").read_text().splitlines()
    within = {source[line - 1].strip() for line in lines}
    assert within == {
        "model = network(dropout).to(device, memory_format=torch.channels_last)",
        "return torch.stack(losses).tolist(), accuracy(model, loader, device)",
        "right += (model(images.to(device)).argmax(1) == labels.to(device)).sum()",
    }


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_language_model_in_half_precision_learns(simulator: Simulator, dtype: torch.dtype) -> None:
    simulator.costs = Costs()
    losses = language.train("sim", dtype)
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0] / 2
    assert any(kernel.name == "_fused_adamw_" for kernel in simulator.ledger.kernels)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_on_packed_sequences_learn(simulator: Simulator, kind: type[nn.RNNBase]) -> None:
    losses = sequences.train("sim", kind, steps=8)
    assert losses[-1] < losses[0]
