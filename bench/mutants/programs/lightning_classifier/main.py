"""Trains a classifier of sensor recordings with Lightning."""

import argparse
import logging
import warnings
from pathlib import Path

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from callbacks import EpochReport, RandomState
from datamodule import RecordingsDataModule
from module import RecordingClassifier
from recordings import ACTIVITIES, CHANNELS


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--weight-decay", type=float, default=1e-2)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--ckpt-path", default=None, help="checkpoint to continue from")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    # raised inside Lightning itself
    warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated.*")
    # the data set is a tensor in memory: workers would only copy it
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    L.seed_everything(args.seed, workers=True, verbose=False)
    torch.set_float32_matmul_precision("high")

    datamodule = RecordingsDataModule(batch_size=args.batch_size, num_workers=args.num_workers, shuffle_seed=args.seed)
    model = RecordingClassifier(CHANNELS, len(ACTIVITIES), width=args.width, lr=args.lr, weight_decay=args.weight_decay)
    checkpoints = ModelCheckpoint(
        dirpath=args.out, filename="best-{epoch}", monitor="val_loss", mode="min", save_last=True
    )
    trainer = L.Trainer(
        default_root_dir=args.out,
        max_epochs=args.epochs,
        accelerator="auto",
        devices=1,
        deterministic=True,
        gradient_clip_val=args.clip,
        logger=False,
        callbacks=[checkpoints, RandomState(), EpochReport()],
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, datamodule=datamodule, ckpt_path=args.ckpt_path)

    (final,) = trainer.validate(model, datamodule=datamodule, verbose=False)
    print(f"best val_loss: {checkpoints.best_model_score.item():.4f} ({Path(checkpoints.best_model_path).name})")
    print(f"final val_acc: {final['val_acc']:.4f}")
    print(f"final val_loss: {final['val_loss']:.5f}")


if __name__ == "__main__":
    main()
