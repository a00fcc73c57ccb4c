"""Trains the generator and the discriminator in turns."""

import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data import make_shapes
from ema import ModelEMA
from metrics import features, frechet_distance
from networks import Discriminator, Generator, init_weights


def get_args() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", default="runs/gan")
    p.add_argument("--device", default="cpu")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--num-train", type=int, default=800)
    p.add_argument("--num-val", type=int, default=400)
    p.add_argument("--latent-dim", type=int, default=32)
    p.add_argument("--width", type=int, default=16)
    p.add_argument("--lr-g", type=float, default=4e-3)
    p.add_argument("--lr-d", type=float, default=2e-3)
    p.add_argument("--beta1", type=float, default=0.5)
    p.add_argument("--ema-decay", type=float, default=0.95)
    p.add_argument("--real-label", type=float, default=0.9, help="one-sided label smoothing")
    p.add_argument("--print-freq", type=int, default=8)
    p.add_argument("--resume", action="store_true")
    return p.parse_args()


def seed_everything(seed: int) -> torch.Generator:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


class GANTrainer:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.device = torch.device(args.device)
        self.shuffle_rng = seed_everything(args.seed)

        self.loader = DataLoader(
            make_shapes(args.num_train, seed=11),
            batch_size=args.batch_size,
            shuffle=True,
            drop_last=True,
            generator=self.shuffle_rng,
            pin_memory=self.device.type == "cuda",
        )
        self.val_features = features(make_shapes(args.num_val, seed=12).tensors[0])
        noise_rng = torch.Generator().manual_seed(13)
        self.val_noise = torch.randn(args.num_val, args.latent_dim, generator=noise_rng).to(self.device)

        self.gen = Generator(args.latent_dim, args.width).apply(init_weights).to(self.device)
        self.disc = Discriminator(args.width).apply(init_weights).to(self.device)
        self.ema = ModelEMA(self.gen, args.ema_decay)
        betas = (args.beta1, 0.999)
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=args.lr_g, betas=betas)
        self.opt_d = torch.optim.Adam(self.disc.parameters(), lr=args.lr_d, betas=betas)
        self.criterion = nn.BCEWithLogitsLoss()
        self.epoch = 0

    def discriminator_step(self, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        real_logits, fake_logits = self.disc(real), self.disc(fake.detach())
        loss_real = self.criterion(real_logits, torch.full_like(real_logits, self.args.real_label))
        loss_fake = self.criterion(fake_logits, torch.zeros_like(fake_logits))
        loss = 0.5 * (loss_real + loss_fake)
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.detach()

    def generator_step(self, fake: torch.Tensor) -> torch.Tensor:
        # gradients flow through the discriminator, but its own weights need none here
        self.disc.requires_grad_(False)
        logits = self.disc(fake)
        loss = self.criterion(logits, torch.ones_like(logits))
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.disc.requires_grad_(True)
        self.ema.update(self.gen)
        return loss.detach()

    def train_epoch(self) -> None:
        self.gen.train()
        self.disc.train()
        for i, (real,) in enumerate(self.loader):
            real = real.to(self.device, non_blocking=True)
            fake = self.gen(torch.randn(real.size(0), self.args.latent_dim, device=self.device))
            loss_d = self.discriminator_step(real, fake)
            loss_g = self.generator_step(fake)
            if i % self.args.print_freq == 0:
                print(f"[{self.epoch}][{i}/{len(self.loader)}] loss_d: {loss_d:.4f} loss_g: {loss_g:.4f}", flush=True)

    @torch.no_grad()
    def evaluate(self) -> float:
        return frechet_distance(self.val_features, features(self.ema.module(self.val_noise).cpu()))

    def save(self, path: str) -> None:
        state = {
            "epoch": self.epoch,
            "gen": self.gen.state_dict(),
            "disc": self.disc.state_dict(),
            "ema": self.ema.state_dict(),
            "opt_g": self.opt_g.state_dict(),
            "opt_d": self.opt_d.state_dict(),
            "rng": {"torch": torch.get_rng_state(), "shuffle": self.shuffle_rng.get_state()},
        }
        if self.device.type == "cuda":
            state["rng"]["cuda"] = torch.cuda.get_rng_state(self.device)
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    def load(self, path: str) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.epoch = state["epoch"]
        for name in ("gen", "disc", "ema", "opt_g", "opt_d"):
            getattr(self, name).load_state_dict(state[name])
        torch.set_rng_state(state["rng"]["torch"])
        self.shuffle_rng.set_state(state["rng"]["shuffle"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state["rng"]["cuda"], self.device)

    def fit(self) -> float:
        os.makedirs(self.args.out, exist_ok=True)
        path = os.path.join(self.args.out, "last.pth")
        if self.args.resume and os.path.exists(path):
            self.load(path)
        distance = self.evaluate()
        while self.epoch < self.args.epochs:
            self.train_epoch()
            distance = self.evaluate()
            print(f"epoch {self.epoch} done, distance {distance:.4f}", flush=True)
            self.epoch += 1
            self.save(path)
        return distance


def main() -> None:
    args = get_args()
    trainer = GANTrainer(args)
    distance = trainer.fit()
    print(f"val_fd: {distance:.4f}")


if __name__ == "__main__":
    main()
