"""Trains a tiny vision transformer with bfloat16 autocast and accumulated gradients."""

import argparse
import logging
import os
import random
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from optim import create_optimizer, create_schedule, gradient_norm_clipped
from scenes import NUM_CLASSES, BatchLoader, make_scenes
from vit import VisionTransformer, ViTConfig

log = logging.getLogger("vit")


@dataclass
class TrainState:
    """Where the training stands; goes into the checkpoint."""

    epoch: int = 0
    update: int = 0
    best_accuracy: float = 0.0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--micro-batch", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2, help="micro batches per update")
    parser.add_argument("--train-size", type=int, default=800)
    parser.add_argument("--val-size", type=int, default=384)
    parser.add_argument("--lr", type=float, default=6e-3)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--warmup", type=int, default=10, help="updates")
    parser.add_argument("--grad-clip", type=float, default=1.0)
    parser.add_argument("--log-interval", type=int, default=20, help="updates")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--activation-checkpointing", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--resume", type=Path)
    return parser


def autocast(precision: str) -> AbstractContextManager:
    if precision == "fp32":
        return nullcontext()
    return torch.amp.autocast("cpu", dtype=torch.bfloat16)


class Engine:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.state = TrainState()
        self.generator = torch.Generator().manual_seed(args.seed)

        config = ViTConfig(num_classes=NUM_CLASSES, activation_checkpointing=args.activation_checkpointing)
        rng = np.random.default_rng(5)
        train_images, train_labels = make_scenes(args.train_size, config.image_size, rng)
        val_images, val_labels = make_scenes(args.val_size, config.image_size, rng)
        self.train_loader = BatchLoader(train_images, train_labels, args.micro_batch, self.generator)
        self.val_loader = BatchLoader(val_images, val_labels, 128, generator=None)
        if len(self.train_loader) % args.accumulate:
            raise SystemExit("an epoch has to hold a whole number of updates")

        self.model = VisionTransformer(config)
        self.optimizer = create_optimizer(self.model, args.lr, args.weight_decay)
        self.total_updates = args.epochs * len(self.train_loader) // args.accumulate
        self.schedule = create_schedule(self.optimizer, args.warmup, self.total_updates)

    def micro_step(self, images: Tensor, labels: Tensor) -> Tensor:
        with autocast(self.args.precision):
            logits = self.model(images)
            loss = F.cross_entropy(logits, labels)
        (loss / self.args.accumulate).backward()
        return loss.detach()

    def update(self) -> Tensor:
        norm = gradient_norm_clipped(self.model, self.args.grad_clip)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.state.update += 1
        return norm

    def train_epoch(self) -> None:
        self.model.train()
        loss_sum = torch.zeros(())
        losses = 0
        for index, (images, labels) in enumerate(self.train_loader, start=1):
            loss_sum += self.micro_step(images, labels)
            losses += 1
            if index % self.args.accumulate:
                continue
            norm = self.update()
            if self.state.update % self.args.log_interval == 0:
                log.info(
                    "update %d/%d | train/loss %.4f | grad norm %.2f | lr %.2e",
                    self.state.update,
                    self.total_updates,
                    loss_sum.item() / losses,
                    norm.item(),
                    self.schedule.get_last_lr()[0],
                )
                loss_sum.zero_()
                losses = 0
        self.state.epoch += 1

    @torch.inference_mode()
    def validate(self) -> tuple[float, float]:
        self.model.eval()
        correct = torch.zeros((), dtype=torch.long)
        loss_sum = torch.zeros(())
        count = 0
        for images, labels in self.val_loader:
            with autocast(self.args.precision):
                logits = self.model(images)
            logits = logits.float()
            loss_sum += F.cross_entropy(logits, labels, reduction="sum")
            correct += (logits.argmax(dim=1) == labels).sum()
            count += len(labels)
        return loss_sum.item() / count, correct.item() / count

    def fit(self) -> None:
        while self.state.epoch < self.args.epochs:
            self.train_epoch()
            loss, accuracy = self.validate()
            log.info("epoch %d | val/loss %.4f | val/accuracy %.4f", self.state.epoch, loss, accuracy)
            if accuracy > self.state.best_accuracy:
                self.state.best_accuracy = accuracy
                self.write(self.model.state_dict(), "best.pt")
            self.write(self.state_dict(), "last.pt")

    def state_dict(self) -> dict:
        return {
            "state": asdict(self.state),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "generator": self.generator.get_state(),
            "rng": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict) -> None:
        self.state = TrainState(**state["state"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["rng"])

    def write(self, content: dict, name: str) -> None:
        target = self.args.out / name
        partial = target.with_suffix(".partial")
        torch.save(content, partial)
        os.replace(partial, target)


def main() -> None:
    args = build_parser().parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    engine = Engine(args)
    if args.resume:
        engine.load_state_dict(torch.load(args.resume, map_location="cpu", weights_only=True))
        log.info("resumed after epoch %d", engine.state.epoch)
    engine.fit()
    log.info("best accuracy %.4f", engine.state.best_accuracy)


if __name__ == "__main__":
    main()
