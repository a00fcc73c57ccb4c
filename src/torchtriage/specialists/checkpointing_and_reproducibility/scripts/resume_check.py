"""Shows whether a training that was stopped and resumed ends with the same bits as one that was not.

A small network with dropout, AdamW, StepLR and a shuffled loader trains some epochs at a stretch. It trains again with
a stop half way: its state goes to a file, and from there into objects that are built anew. Printed is each entry of the
two last states that differs, with the largest difference, and then how many do. --forget leaves parts out of the load,
to show what their loss does. `state` and `restore` are the complete pattern to copy; put your own training into `build`
and `train`.
"""

import argparse
import os
import random
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PARTS = ("model", "optimizer", "scheduler", "loader", "torch", "python", "epoch")


class Training:
    """All that the training carries from one epoch to the next. epoch: the next one to run."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.5)
        self.order = torch.Generator().manual_seed(0)
        inputs = torch.arange(64 * 8).reshape(64, 8).remainder(7).float()
        data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
        self.loader = DataLoader(data, batch_size=16, shuffle=True, generator=self.order)
        self.epoch = 0


def build(seed: int) -> Training:
    random.seed(seed)
    torch.manual_seed(seed)
    return Training()


def train(training: Training, epochs: int) -> None:
    """Runs from training.epoch until EPOCHS are done; the state is whole after each epoch."""
    for epoch in range(training.epoch, epochs):
        for inputs, targets in training.loader:
            training.optimizer.zero_grad()
            noise = random.random() * 0.01  # noqa: S311 - an augmentation, no secret
            nn.functional.mse_loss(training.model(inputs + noise), targets).backward()
            training.optimizer.step()
        training.scheduler.step()
        training.epoch = epoch + 1


def state(training: Training) -> dict[str, object]:
    """Everything in plain tensors, numbers and containers: it loads under weights_only=True."""
    kept: dict[str, object] = {
        "model": training.model.state_dict(),
        "optimizer": training.optimizer.state_dict(),
        "scheduler": training.scheduler.state_dict(),
        "loader": training.order.get_state(),
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "epoch": training.epoch,
    }
    if torch.cuda.is_available():
        kept["cuda"] = torch.cuda.get_rng_state_all()
    return kept


def write(kept: dict[str, object], path: Path) -> None:
    """A reader sees the old file or the new one, never half of one."""
    beside = path.with_suffix(".tmp")
    with beside.open("wb") as file:
        torch.save(kept, file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def restore(training: Training, path: Path, forget: frozenset[str]) -> None:
    """The state in PATH without the parts in FORGET; random states last, for building and loading may draw."""
    kept = torch.load(path, map_location="cpu", weights_only=True)
    load = {
        "model": training.model.load_state_dict,
        "optimizer": training.optimizer.load_state_dict,
        "scheduler": training.scheduler.load_state_dict,
        "epoch": lambda epoch: setattr(training, "epoch", epoch),
        "loader": training.order.set_state,
        "python": random.setstate,
        "torch": torch.set_rng_state,
        "cuda": torch.cuda.set_rng_state_all,
    }
    for part in load:
        if part in kept and part not in forget:
            load[part](kept[part])


def differences(before: object, after: object, name: str = "") -> dict[str, str]:
    """What differs, by its place; tensors and numbers are compared bit by bit."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = {f"{name}{key}": "in one state only" for key in before.keys() ^ after.keys()}
        for key in before.keys() & after.keys():
            found |= differences(before[key], after[key], f"{name}{key}.")
        return found
    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        if torch.equal(before, after):
            return {}
        return {name.rstrip("."): f"by {(before.double() - after.double()).abs().max().item():.3g}"}
    return {} if before == after else {name.rstrip("."): "is another"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=4, help="of the whole training; the stop comes half way")
    parser.add_argument("--forget", nargs="*", choices=PARTS, default=[], help="parts that the resume leaves out")
    options = parser.parse_args()
    straight = build(seed=0)
    train(straight, options.epochs)
    expected = state(straight)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        stopped = build(seed=0)
        train(stopped, options.epochs // 2)
        write(state(stopped), path)
        resumed = build(seed=1)
        restore(resumed, path, frozenset(options.forget))
        train(resumed, options.epochs)
    found = differences(expected, state(resumed))
    for place, how in sorted(found.items()):
        print(f"differs: {place} {how}")
    print(f"{len(found)} entries differ" if found else "equal: every bit of model, optimizer, scheduler and generators")


if __name__ == "__main__":
    main()
