"""A fit of Lightning that writes down each step, with what a resume can lose: dropout, BatchNorm, Adam, StepLR, draws."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader
from trained import Noisy

from torchtriage.toolkit import seed_everything
from torchtriage.toolkit.lightning import StateCallback


class Net(lightning.LightningModule):
    def __init__(self, stop: int | None) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 2))
        self.stop, self.steps = stop, []  # type: ignore[var-annotated]

    def training_step(self, batch: Any, index: int) -> Any:
        x, y, chosen = batch
        x = (-x if random.random() < 0.5 else x) * float(np.random.beta(2, 2))
        loss = nn.functional.cross_entropy(self.layers(x), y)
        rate = self.optimizers().param_groups[0]["lr"]
        self.steps.append([self.global_step, self.current_epoch, index, loss.item().hex(), chosen.tolist(), rate])
        return loss

    def on_train_batch_end(self, *_: Any) -> None:
        if self.global_step == self.stop:
            raise InterruptedError

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]


def fit(folder: str, every: int | None, workers: int, accumulate: int, stop: int | None = None) -> Any:
    seed_everything(3)
    net, loader = Net(stop), DataLoader(Noisy(True), batch_size=4, shuffle=True, num_workers=workers)
    kept = StateCallback(folder, every, keep=2)
    trainer = lightning.Trainer(
        max_epochs=4, callbacks=[kept], enable_checkpointing=False, logger=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", accumulate_grad_batches=accumulate,
    )  # fmt: skip
    with contextlib.suppress(InterruptedError):
        trainer.fit(net, kept.batches(loader))
    return net.steps


if __name__ == "__main__":
    torch.set_num_threads(1)
    told = json.loads(sys.argv[1])
    stop = told.pop("stop")
    straight = fit("straight", **told)
    before = fit("stopped", **told, stop=stop)
    last = max(int(each.name[5:]) for each in Path("stopped").glob("step-*"))
    after = fit("stopped", **told)
    print(json.dumps({"straight": straight, "before": before, "last": last, "after": after}))  # noqa: T201
