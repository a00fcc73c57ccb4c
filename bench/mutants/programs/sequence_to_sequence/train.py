"""Usage: train.py --preset small --seed 0 --out runs/sort"""

import argparse
import os
import random
from itertools import islice

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from model import Seq2SeqTransformer
from presets import PRESETS
from task import make_loaders
from vocab import PAD, VOCAB_SIZE, render


def grouped(items, size: int):
    """Lists of `size` items; the last one may be shorter."""
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group


class Run:
    """Everything that a training needs, and what of it goes into a checkpoint."""

    def __init__(self, hp: dict, seed: int, device: torch.device) -> None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.hp = hp
        self.device = device
        self.loader_rng = torch.Generator().manual_seed(seed)
        self.train_loader, self.val_loader = make_loaders(hp, self.loader_rng, device.type == "cuda")
        self.model = Seq2SeqTransformer(VOCAB_SIZE, hp).to(device)
        self.loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=hp["label_smoothing"])
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=hp["lr"], betas=(0.9, 0.98), weight_decay=hp["weight_decay"]
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._lr_factor)
        self.epoch = 0
        self.update = 0

    def _lr_factor(self, step: int) -> float:
        """A linear rise, then the inverse square root of the step."""
        warmup = self.hp["warmup"]
        return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)

    def _loss(self, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
        # teacher forcing: the decoder sees the target up to the token before
        logits = self.model(src, tgt[:, :-1])
        return self.loss_fn(logits.transpose(1, 2), tgt[:, 1:])

    def train_update(self, group: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.device)
        for src, tgt in group:
            src, tgt = src.to(self.device, non_blocking=True), tgt.to(self.device, non_blocking=True)
            loss = self._loss(src, tgt) / len(group)
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.hp["max_grad_norm"])
        self.optimizer.step()
        self.scheduler.step()
        self.update += 1
        return total

    def train_epoch(self) -> None:
        self.model.train()
        for group in grouped(self.train_loader, self.hp["accumulate"]):
            loss = self.train_update(group)
            if self.update % self.hp["log_every"] == 0:
                lr = self.scheduler.get_last_lr()[0]
                print(f"update {self.update:5d}  train_loss {loss.item():.4f}  lr {lr:.5f}", flush=True)
        self.epoch += 1

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        self.model.eval()
        right, tokens, exact, sequences = 0, 0, 0, 0
        for src, tgt in self.val_loader:
            src, gold = src.to(self.device), tgt[:, 1:].to(self.device)
            guess = self.model.greedy(src, gold.size(1))
            hits, real = guess == gold, gold != PAD
            right += (hits & real).sum().item()
            tokens += real.sum().item()
            exact += hits.all(dim=1).sum().item()
            sequences += len(src)
        return {"token_accuracy": right / tokens, "sequence_accuracy": exact / sequences}

    def save(self, path: str) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epoch": self.epoch,
            "update": self.update,
            "hp": self.hp,
            "rng": [torch.get_rng_state(), self.loader_rng.get_state(), *torch.cuda.get_rng_state_all()],
        }
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)

    def load(self, path: str) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        self.update = state["update"]
        cpu_rng, loader_rng, *cuda_rng = state["rng"]
        torch.set_rng_state(cpu_rng)
        self.loader_rng.set_state(loader_rng)
        if cuda_rng and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(cuda_rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="runs/sort")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lr", type=float, help="instead of the preset's")
    parser.add_argument("--epochs", type=int, help="instead of the preset's")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    overrides = {name: getattr(args, name) for name in ("lr", "epochs") if getattr(args, name) is not None}
    hp = {**PRESETS[args.preset], **overrides}

    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "run.pt")
    run = Run(hp, args.seed, torch.device(args.device))
    if args.resume and os.path.exists(path):
        run.load(path)

    while run.epoch < hp["epochs"]:
        run.train_epoch()
        scores = run.evaluate()
        print("  ".join([f"epoch {run.epoch} done", *(f"{k} {v:.4f}" for k, v in scores.items())]), flush=True)
        run.save(path)

    src = pad_sequence(run.val_loader.dataset.sources[:3], batch_first=True, padding_value=PAD)
    run.model.eval()
    for source, guess in zip(src, run.model.greedy(src.to(run.device), hp["max_len"] + 1), strict=True):
        print(f"{render(source[source != PAD].tolist())} -> {render(guess.tolist())}")
    scores = run.evaluate()
    print(f"val_sequence_accuracy: {scores['sequence_accuracy']:.4f}")
    print(f"val_token_accuracy: {scores['token_accuracy']:.4f}")


if __name__ == "__main__":
    main()
