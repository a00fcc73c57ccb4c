import os
import random
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def seed_worker(worker_id: int) -> None:
    """Seeds the other two generators of a loader's worker from the seed that torch gave it."""
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


class AverageMeter:
    """The mean of a figure over the samples seen; the sum stays on the device until it is read."""

    def __init__(self, name: str, fmt: str = ".3f") -> None:
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self) -> None:
        self.sum: Tensor | float = 0.0
        self.count = 0

    def update(self, value: Tensor, n: int = 1) -> None:
        self.sum = self.sum + value.detach() * n
        self.count += n

    @property
    def avg(self) -> float:
        return float(self.sum) / max(1, self.count)

    def __str__(self) -> str:
        return f"{self.name} {self.avg:{self.fmt}}"


class ProgressMeter:
    def __init__(self, num_batches: int, meters: list[AverageMeter], prefix: str = "") -> None:
        self.num_batches = num_batches
        self.meters = meters
        self.prefix = prefix

    def display(self, batch: int) -> None:
        width = len(str(self.num_batches))
        entries = [f"{self.prefix}[{batch:{width}d}/{self.num_batches}]"]
        entries += [str(meter) for meter in self.meters]
        print("  ".join(entries))


def accuracy(output: Tensor, target: Tensor, topk: tuple[int, ...] = (1,)) -> list[Tensor]:
    """Shares of samples, in percent, whose label is among the k highest outputs."""
    with torch.no_grad():
        predicted = output.topk(max(topk), dim=1).indices
        hits = predicted.eq(target.unsqueeze(1))
        return [hits[:, :k].any(dim=1).float().mean() * 100 for k in topk]


def mixup(images: Tensor, target: Tensor, num_classes: int, alpha: float) -> tuple[Tensor, Tensor]:
    """Blends every image, and its label as probabilities, with another one of the batch."""
    labels = torch.nn.functional.one_hot(target, num_classes).to(images.dtype)
    if alpha <= 0:
        return images, labels
    weight = float(np.random.beta(alpha, alpha))
    order = torch.randperm(len(images), device=images.device)
    return torch.lerp(images[order], images, weight), torch.lerp(labels[order], labels, weight)


def save_checkpoint(state: dict, folder: Path, is_best: bool) -> None:
    names = ["checkpoint.pth.tar"]
    if is_best:
        names.append("model_best.pth.tar")
    for name in names:
        temporary = folder / (name + ".part")
        torch.save(state, temporary)
        os.replace(temporary, folder / name)


def random_states() -> dict:
    """States of all generators, made of types that a weights-only load accepts."""
    kind, keys, *rest = np.random.get_state()
    states = {"python": random.getstate(), "numpy": (kind, keys.tolist(), *rest), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: dict) -> None:
    random.setstate(states["python"])
    kind, keys, *rest = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(states["torch"])
    if torch.cuda.is_available() and "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
