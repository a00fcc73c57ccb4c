"""Settings of a run, and the command line that overrides them."""

import argparse
from dataclasses import dataclass, fields


@dataclass
class Config:
    seed: int = 1337
    out: str = "out"
    device: str = "cpu"
    resume: bool = False

    # data
    train_chars: int = 80_000
    val_chars: int = 5_000

    # model
    n_layer: int = 2
    n_head: int = 3
    n_embd: int = 48
    block_size: int = 48
    dropout: float = 0.0

    # optimisation
    batch_size: int = 8
    max_iters: int = 100
    learning_rate: float = 8e-3
    min_lr: float = 8e-4
    warmup_iters: int = 10
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    grad_clip: float = 1.0

    # reporting
    log_interval: int = 10
    eval_interval: int = 50


def parse_config() -> Config:
    parser = argparse.ArgumentParser(description="train a small character-level language model")
    for field in fields(Config):
        flag = "--" + field.name.replace("_", "-")
        if field.type is bool:
            parser.add_argument(flag, action="store_true", default=field.default)
        else:
            parser.add_argument(flag, type=field.type, default=field.default)
    return Config(**vars(parser.parse_args()))
