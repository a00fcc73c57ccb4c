"""A small training with everything that a resume can lose: dropout, BatchNorm, Adam, scheduler, scaler, EMA, mixup, flips."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from torchtriage.toolkit import TrainingState, seed_everything

BATCH, COUNT, EPOCHS = 4, 6, 4


class Noisy(Dataset[Any]):
    """Samples with noise that is drawn where they are loaded: in the worker, where there is one."""

    def __init__(self, augment: bool, count: int = BATCH * COUNT) -> None:
        made = torch.Generator().manual_seed(1)
        self.x = torch.randn(count, 8, generator=made)
        self.augment = augment

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        x = self.x[index]
        if self.augment:
            x = x + 0.05 * torch.randn(8) + 0.01 * random.random() + 0.01 * float(np.random.rand())
        return x, (self.x[index].sum() > 0).long(), index


class Training:
    """The objects of one process; `run` goes through the epochs that are left and writes down each step."""

    def __init__(
        self, folder: Path, *, workers: int = 0, augment: bool = True, accumulate: int = 1, kind: Any = DataLoader,
        ranks: tuple[int, int] | None = None, generator: bool = False, replay: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        seed_everything(7 + (ranks[0] if ranks else 0))
        self.model: Any = torch.nn.Sequential(
            torch.nn.Linear(8, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 2),
        )
        self.average = torch.optim.swa_utils.AveragedModel(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4)
        data = Noisy(augment)
        order: dict[str, Any] = (
            {"sampler": DistributedSampler(data, ranks[1], ranks[0])} if ranks else {"shuffle": True}
        )
        if generator:
            order["generator"] = torch.Generator().manual_seed(3)
        self.loader = kind(data, batch_size=BATCH // (ranks[1] if ranks else 1), num_workers=workers, **order)
        self.accumulate, self.replay = accumulate, replay
        self.steps: list[Any] = []
        self.state = TrainingState(
            folder, model=self.model, ema=self.average, optimizer=self.optimizer, scheduler=self.scheduler,
            scaler=self.scaler, loader=self.loader, **options,
        )  # fmt: skip

    def run(
        self, *, save_at: tuple[int, int] | None = None, wrapped: Callable[[Any], Any] = lambda model: model
    ) -> None:
        """SAVE_AT an epoch and a batch of it, the last meaning its boundary; the training ends there."""
        state, model = self.state, wrapped(self.model)
        for epoch in state.epochs(EPOCHS):
            for number, (x, y, index) in enumerate(state.batches(self.loader, replay=self.replay), start=1):
                self._step(model, x, y, index)
                if save_at == (epoch, number) and number < COUNT:
                    state.save()
                    return
            self.scheduler.step()
            if save_at == (epoch, COUNT):
                state.save()
                return

    def _step(self, model: Any, x: Any, y: Any, index: Any) -> None:
        flipped = random.random() < 0.5
        share = np.random.beta(2, 2)
        x = share * x + (1 - share) * x.flip(0) * (-1 if flipped else 1)
        loss = functional.cross_entropy(model(x), y)
        self.scaler.scale(loss / self.accumulate).backward()
        self.state.step += 1
        if self.state.step % self.accumulate == 0:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
        self.average.update_parameters(self.model)
        self.steps.append(
            (
                self.state.step,
                loss.item(),
                index.tolist(),
                self.optimizer.param_groups[0]["lr"],
                self.scaler.get_scale(),
                self.bits(),
            )
        )

    def bits(self) -> str:
        held = [*self.model.state_dict().values(), *self.average.state_dict().values()]
        return b"".join(each.contiguous().numpy().tobytes() for each in held).hex()
