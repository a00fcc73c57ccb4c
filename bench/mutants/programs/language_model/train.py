"""Trains the language model: python train.py --seed 1 --out runs/a"""

import math
import os
import random
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from config import Config, parse_config
from data import VOCAB_SIZE, TokenFile, decode, encode, prepare
from model import GPT, GPTConfig


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def get_lr(it: int, cfg: Config) -> float:
    """Linear warm-up, then a cosine down to min_lr at the last iteration."""
    if it < cfg.warmup_iters:
        return cfg.learning_rate * (it + 1) / cfg.warmup_iters
    ratio = (it - cfg.warmup_iters) / max(1, cfg.max_iters - 1 - cfg.warmup_iters)
    return cfg.min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (cfg.learning_rate - cfg.min_lr)


@torch.no_grad()
def evaluate(model: GPT, data: TokenFile, batch_size: int) -> float:
    model.eval()
    total, count = 0.0, 0
    for x, y in data.sequential(batch_size):
        _, loss = model(x, y)
        total += loss.item() * y.numel()
        count += y.numel()
    model.train()
    return total / count


def save_checkpoint(path: Path, model: GPT, optimizer: torch.optim.Optimizer, it: int, cfg: Config, gen) -> None:
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "iter": it,
        "config": asdict(cfg),
        "batch_rng": gen.get_state(),
        "torch_rng": torch.get_rng_state(),
        "cuda_rng": torch.cuda.get_rng_state_all(),
    }
    tmp = path.with_suffix(".tmp")
    torch.save(checkpoint, tmp)
    os.replace(tmp, path)


def load_checkpoint(path: Path, model: GPT, optimizer: torch.optim.Optimizer, gen: torch.Generator) -> int:
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    gen.set_state(checkpoint["batch_rng"])
    torch.set_rng_state(checkpoint["torch_rng"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(checkpoint["cuda_rng"])
    return checkpoint["iter"]


def main() -> None:
    cfg = parse_config()
    set_seed(cfg.seed)
    device = torch.device(cfg.device)
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")

    out_dir = Path(cfg.out)
    out_dir.mkdir(parents=True, exist_ok=True)
    prepare(out_dir, cfg.train_chars, cfg.val_chars)
    train_data = TokenFile(out_dir / "train.bin", cfg.block_size, device)
    val_data = TokenFile(out_dir / "val.bin", cfg.block_size, device)
    batch_rng = torch.Generator().manual_seed(cfg.seed)

    model = GPT(GPTConfig(VOCAB_SIZE, cfg.block_size, cfg.n_layer, cfg.n_head, cfg.n_embd, cfg.dropout)).to(device)
    optimizer = model.configure_optimizer(cfg.weight_decay, cfg.learning_rate, (cfg.beta1, cfg.beta2))
    print(f"model has {sum(p.numel() for p in model.parameters()):,} parameters")

    ckpt_path = out_dir / "ckpt.pt"
    start = 0
    if cfg.resume and ckpt_path.exists():
        start = load_checkpoint(ckpt_path, model, optimizer, batch_rng)
        print(f"resumed at iteration {start}")

    model.train()
    since = time.perf_counter()
    for it in range(start, cfg.max_iters):
        lr = get_lr(it, cfg)
        for group in optimizer.param_groups:
            group["lr"] = lr

        x, y = train_data.get_batch(cfg.batch_size, batch_rng)
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
        optimizer.step()

        if it % cfg.log_interval == 0 or it == cfg.max_iters - 1:
            value = loss.item()
            elapsed = time.perf_counter() - since
            print(f"iter {it:4d} | loss {value:.4f} | lr {lr:.2e} | {elapsed:.1f}s", flush=True)
        if (it + 1) % cfg.eval_interval == 0 and it + 1 < cfg.max_iters:
            print(f"iter {it:4d} | held-out loss {evaluate(model, val_data, 32):.4f}", flush=True)
            save_checkpoint(ckpt_path, model, optimizer, it + 1, cfg, batch_rng)

    if start < cfg.max_iters:
        save_checkpoint(ckpt_path, model, optimizer, cfg.max_iters, cfg, batch_rng)
    val_loss = evaluate(model, val_data, 32)
    model.eval()
    sample = model.generate(encode("in 1").tolist(), 40, torch.Generator(device).manual_seed(cfg.seed))
    print("sample:", decode(sample).replace("\n", " / "))
    print(f"val_loss: {val_loss:.4f}")


if __name__ == "__main__":
    main()
