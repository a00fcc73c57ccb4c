import argparse
import logging
import random
import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from dataset import BlobDataset
from losses import SegmentationLoss
from trainer import Trainer, TrainerConfig
from unet import UNet


def seed_worker(_: int) -> None:
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


def build_loaders(args: argparse.Namespace) -> dict[str, DataLoader]:
    train_set = BlobDataset(args.train_images, args.size, seed=100, augment=True)
    val_set = BlobDataset(args.val_images, args.size, seed=200)
    common = {
        "num_workers": args.workers,
        "worker_init_fn": seed_worker,
        "pin_memory": args.device.startswith("cuda"),
    }
    return {
        "train": DataLoader(
            train_set,
            args.batch_size,
            shuffle=True,
            drop_last=True,
            generator=torch.Generator().manual_seed(args.seed),
            **common,
        ),
        # the generator gives the workers their seeds, and leaves torch's own one alone
        "val": DataLoader(val_set, 64, generator=torch.Generator().manual_seed(args.seed), **common),
    }


def main() -> None:
    defaults = TrainerConfig()
    parser = argparse.ArgumentParser(description="U-Net on synthetic blobs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--train-images", type=int, default=256)
    parser.add_argument("--val-images", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=defaults.epochs)
    parser.add_argument("--lr", type=float, default=defaults.lr)
    parser.add_argument("--dice-weight", type=float, default=0.5)
    parser.add_argument("--amp", action="store_true", help="forward passes in bfloat16")
    parser.add_argument("--resume", type=Path, default=None, help="a last.pt to go on from")
    args = parser.parse_args()

    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s: %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)

    model = UNet(widths=(8, 16, 32))
    trainer = Trainer(
        model,
        SegmentationLoss(args.dice_weight),
        build_loaders(args),
        TrainerConfig(epochs=args.epochs, lr=args.lr, amp=args.amp),
        torch.device(args.device),
        args.out,
    )
    if args.resume:
        trainer.load_state_dict(torch.load(args.resume, map_location="cpu", weights_only=True))
    iou = trainer.fit()
    print(f"val_iou: {iou:.4f}")


if __name__ == "__main__":
    main()
