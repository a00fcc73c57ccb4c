"""Variational autoencoder on binary figures."""

import argparse
import json
import logging
import random
import sys
from pathlib import Path

import numpy as np
import torch

from vae import VAE, KLSchedule, build_loaders, evaluate, train_one_epoch

CONFIG = {
    "data": {"train_size": 1024, "val_size": 512, "batch_size": 64, "data_seed": 77},
    "model": {"side": 12, "hidden": [128, 64], "latent": 8},
    "optim": {"lr": 1e-2, "weight_decay": 1e-4, "grad_clip": 50.0},
    "epochs": 12,
    "kl_warmup_epochs": 5,
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/vae"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="override the configuration, as in optim.lr=1e-3"
    )
    return parser.parse_args()


def apply_overrides(config: dict, overrides: list[str]) -> dict:
    config = json.loads(json.dumps(config))
    for item in overrides:
        key, value = item.split("=", 1)
        *parents, leaf = key.split(".")
        node = config
        for parent in parents:
            node = node[parent]
        if leaf not in node:
            raise KeyError(f"unknown setting {key!r}")
        node[leaf] = json.loads(value)
    return config


def setup(seed: int) -> torch.Generator:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


def rng_state(loader_rng: torch.Generator) -> dict:
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
        "loader": loader_rng.get_state(),
    }


def set_rng_state(state: dict, loader_rng: torch.Generator) -> None:
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    loader_rng.set_state(state["loader"])


def main() -> None:
    args = parse_args()
    config = apply_overrides(CONFIG, args.set)
    loader_rng = setup(args.seed)
    device = torch.device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "config.json").write_text(json.dumps(config, indent=2))

    train_loader, val_loader = build_loaders(config["data"], loader_rng, pin_memory=device.type == "cuda")
    steps_per_epoch = len(train_loader)

    model = VAE(**config["model"]).to(device)
    optim_cfg = config["optim"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=optim_cfg["lr"], weight_decay=optim_cfg["weight_decay"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=config["epochs"] * steps_per_epoch)
    kl_schedule = KLSchedule(warmup=config["kl_warmup_epochs"] * steps_per_epoch)
    stateful = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "kl_schedule": kl_schedule}

    first_epoch = 0
    ckpt_path = args.out / "checkpoint.pt"
    if args.resume and ckpt_path.exists():
        ckpt = torch.load(ckpt_path, map_location="cpu", weights_only=True)
        for name, item in stateful.items():
            item.load_state_dict(ckpt[name])
        set_rng_state(ckpt["rng"], loader_rng)
        first_epoch = ckpt["epoch"] + 1
        logging.info("resumed after epoch %d", ckpt["epoch"])

    for epoch in range(first_epoch, config["epochs"]):
        train_one_epoch(
            model, train_loader, optimizer, scheduler, kl_schedule, device, epoch, grad_clip=optim_cfg["grad_clip"]
        )
        val = evaluate(model, val_loader, device)
        logging.info("epoch %d recon=%.3f kl=%.3f", epoch, val["recon"], val["kl"])
        ckpt = {name: item.state_dict() for name, item in stateful.items()}
        ckpt.update(epoch=epoch, rng=rng_state(loader_rng))
        torch.save(ckpt, ckpt_path.with_suffix(".tmp"))
        ckpt_path.with_suffix(".tmp").replace(ckpt_path)

    print(f"val_nelbo={evaluate(model, val_loader, device)['nelbo']:.4f}")


if __name__ == "__main__":
    main()
