"""Regression over graphs with a message passing network."""

import argparse
import copy
import csv
import os
import random
from pathlib import Path

import numpy as np
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader

from gnn import (
    GraphDataset,
    GraphRegressor,
    TargetScaler,
    collate_graphs,
    evaluate,
    train_one_epoch,
)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    data = parser.add_argument_group("data")
    data.add_argument("--train-graphs", type=int, default=640)
    data.add_argument("--val-graphs", type=int, default=256)
    data.add_argument("--data-seed", type=int, default=7)
    model = parser.add_argument_group("model")
    model.add_argument("--width", type=int, default=32)
    model.add_argument("--depth", type=int, default=2)
    training = parser.add_argument_group("training")
    training.add_argument("--epochs", type=int, default=16)
    training.add_argument("--batch-size", type=int, default=64)
    training.add_argument("--lr", type=float, default=5e-3)
    training.add_argument("--patience", type=int, default=1, help="epochs without progress before the rate falls")
    training.add_argument("--factor", type=float, default=0.5, help="by which the learning rate falls")
    training.add_argument("--max-grad-norm", type=float, default=1.0)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--resume", action="store_true", help="go on from the state in the output folder")
    return parser.parse_args()


def fix_seeds(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def write_atomically(state: dict, path: Path) -> None:
    scratch = path.with_name(path.name + ".new")
    torch.save(state, scratch)
    os.replace(scratch, path)


def main() -> None:
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    fix_seeds(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")

    train_set = GraphDataset(args.train_graphs, seed=args.data_seed)
    val_set = GraphDataset(args.val_graphs, seed=args.data_seed + 1)
    scaler = TargetScaler.fit(train_set.targets())
    shuffling = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(
        train_set, batch_size=args.batch_size, shuffle=True, generator=shuffling, collate_fn=collate_graphs
    )
    val_loader = DataLoader(val_set, batch_size=128, collate_fn=collate_graphs)

    model = GraphRegressor(args.width, args.depth).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = ReduceLROnPlateau(optimizer, factor=args.factor, patience=args.patience, threshold=0.02)
    history: list[dict[str, float]] = []
    best = {"mae": float("inf"), "epoch": -1, "model": copy.deepcopy(model.state_dict())}

    state_path = args.out / "state.pt"
    if args.resume and state_path.exists():
        state = torch.load(state_path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        shuffling.set_state(state["shuffling"])
        torch.set_rng_state(state["rng"])
        history, best = state["history"], state["best"]

    mean_error = (val_set.targets() - scaler.mean).abs().mean().item()
    print(f"{len(train_set)} graphs to train, {len(val_set)} to validate; the mean has an error of {mean_error:.3f}")

    for epoch in range(len(history), args.epochs):
        train = train_one_epoch(model, train_loader, optimizer, scaler, device, args.max_grad_norm)
        val = evaluate(model, val_loader, scaler, device)
        lr = optimizer.param_groups[0]["lr"]
        scheduler.step(val["mae"])
        print(
            f"[{epoch + 1:02d}/{args.epochs}] lr={lr:.1e} loss={train['loss']:.4f} "
            f"grad_norm={train['grad_norm']:.2f} mae={val['mae']:.4f} rmse={val['rmse']:.4f}"
        )
        history.append({"epoch": epoch + 1, "lr": lr, **train, **val})
        if val["mae"] < best["mae"]:
            best = {"mae": val["mae"], "epoch": epoch, "model": copy.deepcopy(model.state_dict())}
        write_atomically(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "shuffling": shuffling.get_state(),
                "rng": torch.get_rng_state(),
                "history": history,
                "best": best,
            },
            state_path,
        )

    with open(args.out / "history.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=history[0].keys())
        writer.writeheader()
        writer.writerows(history)

    model.load_state_dict(best["model"])
    write_atomically(best["model"], args.out / "best.pt")
    val = evaluate(model, val_loader, scaler, device)
    print(f"best epoch {best['epoch'] + 1}: val_mae={val['mae']:.4f} val_rmse={val['rmse']:.4f}")


if __name__ == "__main__":
    main()
