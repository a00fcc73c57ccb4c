"""Contrastive pretraining of a small encoder, judged by a linear probe on held-out images."""

import argparse
import dataclasses
import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from augment import default_augmentation
from network import ContrastiveModel
from objective import InfoNCE
from probe import LinearProbe, evaluate_encoder
from textures import NUM_CLASSES, make_textures


@dataclass
class Config:
    out: str = ""
    resume: str = ""
    seed: int = 0
    data_seed: int = 99
    image_size: int = 16
    unlabelled: int = 512
    labelled: int = 256
    held_out: int = 512
    epochs: int = 16
    batch_size: int = 64
    lr: float = 4e-3
    weight_decay: float = 1e-4
    temperature: float = 0.2
    width: int = 16
    features: int = 64
    projection: int = 32

    @classmethod
    def from_command_line(cls) -> "Config":
        parser = argparse.ArgumentParser(description=__doc__)
        for field in dataclasses.fields(cls):
            flag = "--" + field.name.replace("_", "-")
            parser.add_argument(flag, type=field.type, default=field.default, required=field.name == "out")
        return cls(**vars(parser.parse_args()))


def seed_all(seed: int) -> torch.Generator:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


class Pretraining:
    def __init__(self, config: Config, loader: DataLoader, device: torch.device) -> None:
        self.config = config
        self.loader = loader
        self.device = device
        self.model = ContrastiveModel(config.width, config.features, config.projection).to(device)
        self.augment = default_augmentation().to(device)
        self.criterion = InfoNCE(config.temperature)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay, betas=(0.9, 0.98)
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=config.lr, total_steps=config.epochs * len(loader), pct_start=0.2
        )
        self.first_epoch = 0

    def run(self) -> nn.Module:
        for epoch in range(self.first_epoch, self.config.epochs):
            loss, alignment = self.run_epoch()
            print(f"pretrain epoch {epoch + 1:2d} | loss {loss:.4f} | alignment {alignment:.3f}")
            self.save(epoch + 1)
        return self.model.encoder

    def run_epoch(self) -> tuple[float, float]:
        self.model.train()
        totals = torch.zeros(2, device=self.device)
        for (images,) in self.loader:
            images = images.to(self.device)
            # both views go through the network together, so that they share the batch statistics
            views = torch.cat([self.augment(images), self.augment(images)])
            first, second = self.model(views).chunk(2)
            loss = self.criterion(first, second)

            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()

            with torch.no_grad():
                totals += torch.stack([loss, (first * second).sum(dim=1).mean()])
        loss, alignment = (totals / len(self.loader)).tolist()
        return loss, alignment

    def save(self, epochs_done: int) -> None:
        path = Path(self.config.out) / "pretrained.pt"
        state = {
            "epochs_done": epochs_done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "loader_rng": self.loader.generator.get_state(),
            "cuda_rng": torch.cuda.get_rng_state_all(),
        }
        torch.save(state, path.with_suffix(".partial"))
        os.replace(path.with_suffix(".partial"), path)

    def restore(self, path: str) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.loader.generator.set_state(state["loader_rng"])
        torch.set_rng_state(state["torch_rng"])
        torch.cuda.set_rng_state_all(state["cuda_rng"])
        self.first_epoch = state["epochs_done"]


def main() -> None:
    config = Config.from_command_line()
    Path(config.out).mkdir(parents=True, exist_ok=True)
    generator = seed_all(config.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")

    rng = np.random.default_rng(config.data_seed)
    unlabelled, _ = make_textures(config.unlabelled, config.image_size, rng)
    labelled = tuple(part.to(device) for part in make_textures(config.labelled, config.image_size, rng))
    held_out = tuple(part.to(device) for part in make_textures(config.held_out, config.image_size, rng))

    loader = DataLoader(
        TensorDataset(unlabelled),
        batch_size=config.batch_size,
        shuffle=True,
        drop_last=True,
        generator=generator,
    )
    pretraining = Pretraining(config, loader, device)
    if config.resume:
        pretraining.restore(config.resume)
    encoder = pretraining.run()

    encoder.requires_grad_(False)
    probe = LinearProbe(seed=config.seed)
    accuracy = evaluate_encoder(encoder, labelled, held_out, NUM_CLASSES, probe)
    print(f"probe accuracy: {accuracy:.4f} ({len(held_out[0])} held-out images, {NUM_CLASSES} classes)")


if __name__ == "__main__":
    main()
