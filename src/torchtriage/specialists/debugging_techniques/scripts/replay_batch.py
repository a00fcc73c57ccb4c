"""The step that failed, again, in a fresh process.

Before each step `remember` writes the step, the numbers of its samples, the random state and the weights into one of
two files, in turns: after an error of the device nothing can be read from it any more. Without arguments a small
training fails at a bad sample, and the command to replay it is printed. With --replay that one step runs again and
shows the error at its line; on the CPU unless --device says otherwise.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Two hundred samples; the id of one is beyond the table."""
    generator = torch.Generator().manual_seed(0)
    ids, labels = torch.randint(50, (200, 4), generator=generator), torch.randint(3, (200,), generator=generator)
    ids[123, 1] = 50
    return ids, labels


def network() -> nn.Module:
    return nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 3))


def remember(folder: Path, step: int, samples: list[int], model: nn.Module) -> Path:
    """Write what the step needs to be repeated, before anything of it runs."""
    path = folder / f"step-{step % 2}.pt"
    state: dict[str, Any] = {
        "step": step,
        "samples": samples,
        "random": torch.get_rng_state(),
        "weights": {name: each.detach().cpu() for name, each in model.state_dict().items()},
    }
    torch.save(state, path)
    return path


def loss_of(model: nn.Module, samples: list[int], device: str) -> torch.Tensor:
    ids, labels = data()
    return functional.cross_entropy(model(ids[samples].to(device)), labels[samples].to(device))


def train(folder: Path) -> None:
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.randperm(200).tolist()
    path = folder
    try:
        for step in range(25):
            samples = order[8 * step : 8 * step + 8]
            path = remember(folder, step, samples, model)
            optimizer.zero_grad()
            loss_of(model, samples, "cpu").backward()
            optimizer.step()
    except IndexError as error:
        print(f"failed: {error}")
        print(f"replay it: python {Path(__file__).name} --replay {path}")


def replay(path: Path, device: str) -> None:
    state = torch.load(path, weights_only=True)
    model = network().to(device)
    model.load_state_dict(state["weights"])
    torch.set_rng_state(state["random"])
    print(f"step {state['step']}, samples {state['samples']}")
    ids, _ = data()
    print(f"ids of the batch: {int(ids[state['samples']].min())} to {int(ids[state['samples']].max())}")
    try:
        loss_of(model, state["samples"], device).backward()
    except (IndexError, RuntimeError) as error:
        print(f"again: {type(error).__name__}: {error}")
    else:
        print("the step passes here: what else differs (device, versions, the order of threads)?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replay", type=Path, help="a file that a failed training left")
    parser.add_argument("--device", default="cpu", help="where to replay (default cpu: the error has its line there)")
    given = parser.parse_args()
    if given.replay:
        replay(given.replay, given.device)
    else:
        train(Path(tempfile.mkdtemp()))


if __name__ == "__main__":
    main()
