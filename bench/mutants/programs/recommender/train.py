"""Trains a two-tower model; see default.toml for the settings."""

import argparse
import json
import logging
import os
import random
import sys
import tomllib
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from interactions import (
    NegativeSamplingCollate,
    PositivePairs,
    evaluation_candidates,
    simulate,
)
from ranking import ranking_figures
from towers import TwoTowerModel

logger = logging.getLogger("recommender")


def load_settings(path: Path, changes: list[str]) -> dict[str, dict]:
    settings = tomllib.loads(path.read_text())
    for change in changes:
        name, _, value = change.partition("=")
        section, _, key = name.partition(".")
        if key not in settings.get(section, {}):
            raise SystemExit(f"unknown setting {name!r}")
        settings[section][key] = type(settings[section][key])(value)
    return settings


def setup_logging(folder: Path) -> None:
    logging.basicConfig(
        level=logging.INFO,
        format="%(levelname)s %(message)s",
        handlers=[logging.StreamHandler(sys.stdout), logging.FileHandler(folder / "train.log", mode="a")],
    )


class Recommender:
    def __init__(self, settings: dict[str, dict], folder: Path, seed: int, device: torch.device) -> None:
        self.settings = settings
        self.folder = folder
        self.device = device
        data = simulate(**settings["data"])
        conf = settings["train"]

        self.collate = NegativeSamplingCollate(data, conf["negatives"], seed=seed)
        self.shuffle = torch.Generator().manual_seed(seed)
        self.loader = DataLoader(
            PositivePairs(data),
            batch_size=conf["batch_size"],
            shuffle=True,
            generator=self.shuffle,
            collate_fn=self.collate,
        )
        users, candidates = evaluation_candidates(data, settings["eval"]["negatives"], settings["data"]["seed"])
        self.eval_users = users.to(device)
        self.eval_items = candidates.to(device)

        self.model = TwoTowerModel(
            data.num_users, torch.from_numpy(data.item_category), data.num_categories, **settings["model"]
        ).to(device)
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=conf["lr"])
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=conf["gamma"])
        self.epoch = 0
        self.best_auc = 0.0

    def train_epoch(self) -> float:
        self.model.train()
        total = torch.zeros((), device=self.device)
        seen = 0
        for users, items, labels in self.loader:
            users, items, labels = users.to(self.device), items.to(self.device), labels.to(self.device)
            self.optimizer.zero_grad()
            loss = self.loss_fn(self.model(users, items), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings["train"]["clip"])
            self.optimizer.step()
            total += loss.detach() * len(users)
            seen += len(users)
        self.scheduler.step()
        return total.item() / seen

    @torch.inference_mode()
    def evaluate(self) -> dict[str, float]:
        self.model.eval()
        scores = self.model(self.eval_users, self.eval_items)
        return ranking_figures(scores, self.settings["eval"]["top_k"])

    def fit(self) -> dict[str, float]:
        figures = self.evaluate()
        while self.epoch < self.settings["train"]["epochs"]:
            loss = self.train_epoch()
            self.epoch += 1
            figures = self.evaluate()
            report = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
            logger.info("epoch %d  bce %.4f  %s", self.epoch, loss, report)
            if figures["auc"] > self.best_auc:
                self.best_auc = figures["auc"]
                self.write(self.model.state_dict(), "best.pt")
            self.write(self.state_dict(), "last.pt")
        return figures

    def state_dict(self) -> dict:
        return {
            "epoch": self.epoch,
            "best_auc": self.best_auc,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "negatives": self.collate.rng.bit_generator.state,
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
        }

    def load_state_dict(self, state: dict) -> None:
        self.epoch = state["epoch"]
        self.best_auc = state["best_auc"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.shuffle.set_state(state["shuffle"])
        self.collate.rng.bit_generator.state = state["negatives"]
        torch.set_rng_state(state["torch"])
        torch.cuda.set_rng_state_all(state["cuda"])

    def write(self, state: dict, name: str) -> None:
        unfinished = self.folder / f".{name}"
        torch.save(state, unfinished)
        os.replace(unfinished, self.folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("default.toml"))
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="changes")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="continue from last.pt in the output folder")
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    setup_logging(args.out)
    settings = load_settings(args.config, args.changes)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    recommender = Recommender(settings, args.out, args.seed, device)
    logger.info("%d positive pairs, %d steps per epoch", len(recommender.loader.dataset), len(recommender.loader))
    if args.resume:
        state = torch.load(args.out / "last.pt", map_location="cpu", weights_only=True)
        recommender.load_state_dict(state)
        logger.info("continuing after epoch %d", recommender.epoch)

    figures = recommender.fit()
    (args.out / "figures.json").write_text(json.dumps(figures, indent=2))
    logger.info("held-out auc = %.4f", figures["auc"])


if __name__ == "__main__":
    main()
