"""Predicts rents from a table. The best state by validation error is kept in best.pt, the newest in last.pt."""

import argparse
from pathlib import Path

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from dataset import Preprocessor, Table, TensorLoader, make_table, split
from model import TabularNet
from utils import EarlyStopping, atomic_save, set_seed


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--rows", type=int, default=3200)
    parser.add_argument("--max-epochs", type=int, default=10)
    parser.add_argument("--patience", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--weight-decay", type=float, default=1e-2)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def train_epoch(model, loader, optimizer, loss_fn, device) -> float:
    model.train()
    total = torch.zeros((), device=device)
    for categories, numbers, target in loader:
        prediction = model(categories, numbers)
        loss = loss_fn(prediction, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


@torch.inference_mode()
def rmse(model: nn.Module, loader: TensorLoader, scale: float) -> float:
    """Root mean squared error in the unit of the target."""
    model.eval()
    squares, count = 0.0, 0
    for categories, numbers, target in loader:
        squares += (model(categories, numbers) - target).square().sum().item()
        count += len(target)
    return scale * (squares / count) ** 0.5


def make_loader(rows: Table, prep: Preprocessor, device: torch.device, batch_size: int, **kwargs) -> TensorLoader:
    # the whole table is small: it lies on the device from the beginning
    tensors = [tensor.to(device) for tensor in prep.transform(rows)]
    return TensorLoader(tensors, batch_size, **kwargs)


def main() -> None:
    args = parse_args()
    set_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    last_path, best_path = args.out / "last.pt", args.out / "best.pt"

    train_rows, val_rows, test_rows = split(make_table(args.rows), (0.64, 0.18))
    prep = Preprocessor().fit(train_rows)
    shuffle_rng = torch.Generator().manual_seed(args.seed)
    train_loader = make_loader(train_rows, prep, args.device, args.batch_size, generator=shuffle_rng, drop_last=True)
    val_loader = make_loader(val_rows, prep, args.device, 512)
    test_loader = make_loader(test_rows, prep, args.device, 512)

    n_numbers = train_loader.tensors[1].shape[1]
    model = TabularNet(prep.cardinalities, n_numbers, args.dim, args.blocks, args.dropout).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
    stopper = EarlyStopping(args.patience)
    loss_fn = nn.SmoothL1Loss(beta=0.5)
    start_epoch = 0

    if args.resume and last_path.exists():
        state = torch.load(last_path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        stopper.load_state_dict(state["stopper"])
        shuffle_rng.set_state(state["shuffle_rng"])
        torch.set_rng_state(state["torch_rng"])
        if args.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_rng"], args.device)
        start_epoch = state["epoch"] + 1

    for epoch in range(start_epoch, args.max_epochs):
        if stopper.should_stop:
            print(f"no progress for {args.patience} epochs, stopping")
            break
        train_loss = train_epoch(model, train_loader, optimizer, loss_fn, args.device)
        val_error = rmse(model, val_loader, prep.target_std)
        scheduler.step(val_error)
        if stopper.update(val_error):
            atomic_save({"model": model.state_dict(), "epoch": epoch, "rmse": val_error}, best_path)
        lr = optimizer.param_groups[0]["lr"]
        print(
            f"epoch {epoch:2d}  train loss {train_loss:.4f}  validation error {val_error:.2f}  lr {lr:.1e}", flush=True
        )
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "stopper": stopper.state_dict(),
            "shuffle_rng": shuffle_rng.get_state(),
            "torch_rng": torch.get_rng_state(),
        }
        if args.device.type == "cuda":
            state["cuda_rng"] = torch.cuda.get_rng_state(args.device)
        atomic_save(state, last_path)

    best = torch.load(best_path, map_location=args.device, weights_only=True)
    model.load_state_dict(best["model"])
    print(f"best epoch {best['epoch']}, test error {rmse(model, test_loader, prep.target_std):.2f}")
    print(f"val_rmse = {rmse(model, val_loader, prep.target_std):.3f}")


if __name__ == "__main__":
    main()
