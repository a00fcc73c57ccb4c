"""Trains a denoising diffusion model on small synthetic images."""

import argparse
import math
import os
import random
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from ddpm import (
    BatchStream,
    Denoiser,
    ExponentialMovingAverage,
    GaussianDiffusion,
    make_images,
)


def get_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints and samples")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-seed", type=int, default=1234)
    parser.add_argument("--train-size", type=int, default=2048)
    parser.add_argument("--val-size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=8e-3)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--ema-decay", type=float, default=0.95)
    parser.add_argument("--timesteps", type=int, default=100)
    parser.add_argument("--schedule", choices=["cosine", "linear"], default="cosine")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--log-every", type=int, default=20)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", type=Path, default=None, help="checkpoint to continue from")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def warmup_cosine(step: int, warmup: int, total: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * progress))


class Trainer:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.device = torch.device(args.device)
        rng = np.random.default_rng(args.data_seed)
        self.stream = BatchStream(make_images(args.train_size, rng), args.batch_size, seed=args.seed)
        self.val_images = make_images(args.val_size, rng).to(self.device)

        self.diffusion = GaussianDiffusion(args.timesteps, args.schedule).to(self.device)
        self.model = Denoiser(self.val_images[0].numel(), args.width, args.depth).to(self.device)
        self.ema = ExponentialMovingAverage(self.model, args.ema_decay)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr, weight_decay=1e-4)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: warmup_cosine(step, args.warmup, args.steps)
        )
        self.step = 0

    def train_step(self, images: Tensor) -> Tensor:
        images = images.to(self.device)
        t = self.diffusion.random_timesteps(len(images))
        noise = torch.randn_like(images)
        loss = self.diffusion.loss(self.model, images, t, noise)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.optimizer.step()
        self.scheduler.step()
        self.ema.update(self.model)
        return loss.detach()

    @torch.no_grad()
    def evaluate(self) -> float:
        """Denoising loss of the averaged weights: the same noise and time steps at every call."""
        generator = torch.Generator().manual_seed(0)
        count = len(self.val_images)
        noise = torch.randn(self.val_images.shape, generator=generator).to(self.device)
        t = torch.arange(count, device=self.device) % self.diffusion.timesteps
        return self.diffusion.loss(self.ema.module, self.val_images, t, noise).item()

    def fit(self) -> None:
        args = self.args
        self.model.train()
        running = torch.zeros((), device=self.device)
        since_log = 0
        while self.step < args.steps:
            running += self.train_step(next(self.stream))
            self.step += 1
            since_log += 1
            if self.step % args.log_every == 0:
                lr = self.scheduler.get_last_lr()[0]
                print(f"step {self.step:4d}/{args.steps}  loss {running.item() / since_log:.4f}  lr {lr:.2e}")
                running.zero_()
                since_log = 0
            if self.step % args.save_every == 0 or self.step == args.steps:
                print(f"step {self.step:4d}/{args.steps}  val_loss {self.evaluate():.5f}")
                self.save(args.out / "checkpoint.pt")

    def sample(self, count: int = 16) -> Tensor:
        generator = torch.Generator(device=self.device).manual_seed(self.args.seed)
        return self.diffusion.sample(self.ema.module, (count, *self.val_images.shape[1:]), generator)

    def save(self, path: Path) -> None:
        state = {
            "step": self.step,
            "model": self.model.state_dict(),
            "ema": self.ema.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "stream": self.stream.state_dict(),
            "rng": torch.get_rng_state(),
        }
        if self.device.type == "cuda":
            state["cuda_rng"] = torch.cuda.get_rng_state(self.device)
        partial = path.with_suffix(".tmp")
        torch.save(state, partial)
        os.replace(partial, path)

    def load(self, path: Path) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.ema.load_state_dict(state["ema"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.stream.load_state_dict(state["stream"])
        torch.set_rng_state(state["rng"])
        if self.device.type == "cuda" and "cuda_rng" in state:
            torch.cuda.set_rng_state(state["cuda_rng"], self.device)


def main() -> None:
    args = get_args()
    args.out.mkdir(parents=True, exist_ok=True)
    set_seed(args.seed)
    if args.device.startswith("cuda"):
        torch.set_float32_matmul_precision("high")

    trainer = Trainer(args)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    print(f"denoiser with {parameters} parameters, {args.timesteps} noise levels ({args.schedule})")
    if args.resume is not None:
        trainer.load(args.resume)
        print(f"resumed at step {trainer.step}")
    trainer.fit()

    samples = trainer.sample()
    torch.save(samples.cpu(), args.out / "samples.pt")
    data = trainer.stream.data
    print(f"samples: mean {samples.mean().item():.3f} std {samples.std().item():.3f}")
    print(f"data:    mean {data.mean().item():.3f} std {data.std().item():.3f}")
    print(f"final val_loss {trainer.evaluate():.5f}")


if __name__ == "__main__":
    main()
