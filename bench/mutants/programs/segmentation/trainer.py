from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

from metrics import AverageMeter, IoUMeter

logger = logging.getLogger("segmentation")


@dataclass
class TrainerConfig:
    epochs: int = 3
    lr: float = 2e-2
    weight_decay: float = 1e-3
    clip: float = 5.0
    amp: bool = False
    log_every: int = 8


class Trainer:
    def __init__(
        self,
        model: nn.Module,
        criterion: nn.Module,
        loaders: dict[str, DataLoader],
        cfg: TrainerConfig,
        device: torch.device,
        out: Path,
    ) -> None:
        self.model = model.to(device)
        self.criterion = criterion
        self.train_loader, self.val_loader = loaders["train"], loaders["val"]
        self.cfg = cfg
        self.device = device
        self.out = out
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.scheduler = OneCycleLR(self.optimizer, max_lr=cfg.lr, total_steps=cfg.epochs * len(self.train_loader))
        self.epoch = 0
        self.best_iou = 0.0

    def _predict(self, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.cfg.amp):
            logits = self.model(images)
        return logits.float()

    def _batches(self, loader: DataLoader):
        for images, masks in loader:
            yield images.to(self.device, non_blocking=True), masks.to(self.device, non_blocking=True)

    def train_epoch(self) -> None:
        self.model.train()
        for step, (images, masks) in enumerate(self._batches(self.train_loader), start=1):
            loss = self.criterion(self._predict(images), masks)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.optimizer.step()
            self.scheduler.step()
            if step % self.cfg.log_every == 0:
                lr = self.scheduler.get_last_lr()[0]
                message = "epoch %d step %d/%d loss %.4f lr %.4f"
                logger.info(message, self.epoch, step, len(self.train_loader), loss.item(), lr)

    @torch.no_grad()
    def validate(self) -> tuple[float, float]:
        self.model.eval()
        meter, iou = AverageMeter(), IoUMeter(self.device)
        for images, masks in self._batches(self.val_loader):
            logits = self._predict(images)
            meter.update(self.criterion(logits, masks).item(), len(images))
            iou.update(logits, masks)
        return meter.avg, iou.compute()

    def fit(self) -> float:
        while self.epoch < self.cfg.epochs:
            self.train_epoch()
            val_loss, iou = self.validate()
            self.epoch += 1
            is_best = iou > self.best_iou
            self.best_iou = max(iou, self.best_iou)
            logger.info(
                "epoch %d finished: val loss %.4f, IoU %.4f%s", self.epoch, val_loss, iou, " *" if is_best else ""
            )
            self._write(self.state_dict(), "last.pt")
            if is_best:
                self._write({"model": self.model.state_dict(), "iou": iou, "epoch": self.epoch}, "best.pt")
        return self.validate()[1]

    def state_dict(self) -> dict:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epoch": self.epoch,
            "best_iou": self.best_iou,
            "loader_rng": self.train_loader.generator.get_state(),
            "torch_rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all(),
        }

    def load_state_dict(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        self.best_iou = state["best_iou"]
        self.train_loader.generator.set_state(state["loader_rng"])
        torch.set_rng_state(state["torch_rng"])
        if torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda_rng"])

    def _write(self, obj: dict, name: str) -> None:
        tmp = self.out / (name + ".part")
        torch.save(obj, tmp)
        os.replace(tmp, self.out / name)
