"""Options that a class of settings holds, healthy."""

from dataclasses import dataclass

from torch.utils.data import DataLoader


@dataclass
class Cfg:
    batch: int = 8
    workers: int = 2


cfg = Cfg()


def loader(ds):
    return DataLoader(ds, cfg.batch, shuffle=True, num_workers=cfg.workers, persistent_workers=True)
