"""The class that annotates a configuration is its schema: a file that is not in sight says what holds."""

from dataclasses import dataclass

import torch


@dataclass
class LoaderConfig:
    batch_size: int = 64
    persistent_workers: bool = True
    num_workers: int = 0


class Data:
    def __init__(self, cfg: LoaderConfig, data):
        self.cfg, self.data = cfg, data

    @property
    def train(self):
        return torch.utils.data.DataLoader(
            self.data,
            batch_size=self.cfg.batch_size,
            num_workers=self.cfg.num_workers,
            persistent_workers=self.cfg.persistent_workers,
        )
