"""Train the detector.

Example:
    python train.py --out runs/squares --epochs 4
"""

import argparse
import os
import random
import time

import numpy as np
import torch
from torch.utils.data import DataLoader

from detector import (
    CLASSES,
    AnchorGrid,
    DetectionCollate,
    DetectionLoss,
    EpochSampler,
    SingleShotDetector,
    SquaresDataset,
    evaluate,
)

IMAGE_SIZE, STRIDE, ANCHOR_SIZES = 32, 4, (8.0, 12.0)


def parse_args():
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=str, default="runs/detector")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--train-images", type=int, default=200)
    parser.add_argument("--val-images", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--clip-norm", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--print-every", type=int, default=5)
    parser.add_argument("--eval-every", type=int, default=2, help="in epochs")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--resume", action="store_true", help="continue from last.pth in --out")
    return parser.parse_args()


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def worker_init(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def split_decay(model, weight_decay):
    """No decay for biases and normalisation."""
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def train_one_epoch(model, loss_fn, loader, optimizer, scheduler, device, epoch, args):
    model.train()
    sums = torch.zeros(2, device=device)
    seen = 0
    began = time.perf_counter()
    for step, batch in enumerate(loader, 1):
        images = batch["images"].to(device, non_blocking=True)
        classes = batch["anchor_classes"].to(device, non_blocking=True)
        wanted = batch["anchor_offsets"].to(device, non_blocking=True)

        logits, offsets = model(images)
        class_loss, box_loss = loss_fn(logits, offsets, classes, wanted)
        loss = class_loss + box_loss

        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
        optimizer.step()
        scheduler.step()

        sums += torch.stack([class_loss.detach(), box_loss.detach()])
        seen += 1
        if step % args.print_every == 0:
            cls_mean, box_mean = (sums / seen).tolist()
            print(
                f"Epoch {epoch} [{step}/{len(loader)}] loss {cls_mean + box_mean:.4f} "
                f"(class {cls_mean:.4f}, box {box_mean:.4f}) {time.perf_counter() - began:.1f}s",
                flush=True,
            )
            sums.zero_()
            seen = 0


def main():
    args = parse_args()
    seed_all(args.seed)
    device = torch.device(args.device)
    os.makedirs(args.out, exist_ok=True)

    grid = AnchorGrid(IMAGE_SIZE, STRIDE, ANCHOR_SIZES)
    collate = DetectionCollate(grid)
    train_set = SquaresDataset(args.train_images, seed=1, size=IMAGE_SIZE)
    val_set = SquaresDataset(args.val_images, seed=2, size=IMAGE_SIZE)
    sampler = EpochSampler(len(train_set), args.seed)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        sampler=sampler,
        drop_last=True,
        collate_fn=collate,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
        worker_init_fn=worker_init,
        generator=torch.Generator().manual_seed(args.seed),
        pin_memory=device.type == "cuda",
    )
    # the held-out scenes are drawn once
    val_batches = list(DataLoader(val_set, batch_size=50, collate_fn=collate))

    model = SingleShotDetector(len(CLASSES), grid.per_cell).to(device)
    loss_fn = DetectionLoss()
    optimizer = torch.optim.SGD(
        split_decay(model, args.weight_decay), lr=args.lr, momentum=args.momentum, nesterov=True
    )
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=args.epochs * len(train_loader), power=0.9)
    anchors = grid.boxes.to(device)

    first_epoch = 0
    last = os.path.join(args.out, "last.pth")
    if args.resume and os.path.isfile(last):
        state = torch.load(last, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["torch_rng"])
        first_epoch = state["epoch"] + 1
        print(f"=> resumed from {last}, next epoch is {first_epoch}")

    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loss_fn, train_loader, optimizer, scheduler, device, epoch, args)
        if (epoch + 1) % args.eval_every == 0:
            ap = evaluate(model, val_batches, anchors, len(CLASSES), device)
            print(f"Epoch {epoch} AP50 {ap:.4f}", flush=True)
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "torch_rng": torch.get_rng_state(),
        }
        torch.save(state, last + ".tmp")
        os.replace(last + ".tmp", last)

    print(f"val_ap50: {evaluate(model, val_batches, anchors, len(CLASSES), device):.4f}")


if __name__ == "__main__":
    main()
