"""Two ranks of which one is always waited for: the files are sorted by size, and each rank takes one half of them.

torchtriage run -- torchrun --nproc-per-node 2 examples/two_ranks.py
"""

from __future__ import annotations

import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Subset

FILES, BATCH, EPOCHS = 640, 8, 3


class Recordings(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Compressed recordings from 0.02 to 1.5 MB; those of class 1 have a higher tone."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(0)
        lengths = (torch.rand(FILES, generator=draw) ** 2 * 380_000 + 5_000).int().sort().values
        self.labels = torch.randint(2, (FILES,), generator=draw)
        self.files = [
            zlib.compress(self.wave(int(length), int(label)), 1)
            for length, label in zip(lengths, self.labels, strict=True)
        ]

    @staticmethod
    def wave(length: int, label: int) -> bytes:
        time = torch.arange(256) / 256
        tone = torch.sin(2 * torch.pi * (6 + 4 * label) * time)
        return bytes(tone.repeat(length // 256 + 1)[:length].numpy().tobytes())

    def __len__(self) -> int:
        return FILES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        sound = torch.frombuffer(bytearray(zlib.decompress(self.files[index])), dtype=torch.float32)
        noise = torch.randn(256, generator=torch.Generator().manual_seed(index))
        return sound[:256] + 6 * noise, self.labels[index]


def main() -> None:
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    data = Recordings()
    mine = range(rank * len(data) // ranks, (rank + 1) * len(data) // ranks)
    loader = DataLoader(Subset(data, mine), BATCH, shuffle=True)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for sound, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(sound), label)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
