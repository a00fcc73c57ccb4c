"""A training that kills itself within an epoch, is started again, and ends with the same bits as one that ran through.

    python examples/killed_and_resumed.py

It has what a resume can lose: a shuffled loader with workers that draw noise, dropout, Adam, a scheduler.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from torchtriage.toolkit import TrainingState, seed_everything

EPOCHS, EVERY = 3, 5


class Noisy(Dataset):
    """Points of two kinds, each time with other noise."""

    def __init__(self) -> None:
        self.points = torch.randn(256, 8, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        point = self.points[index]
        return point + 0.1 * torch.randn(8), (point.sum() > 0).long()


def train(folder: str, killed_at: int | None = None) -> None:
    """Trains from the newest step in FOLDER on; at step KILLED_AT nothing is tidied up."""
    torch.set_num_threads(1)
    seed_everything(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    loader = DataLoader(Noisy(), batch_size=16, shuffle=True, num_workers=2)
    state = TrainingState(folder, keep=2, model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    if loaded := state.load():
        print(f"  goes on from step {loaded.step}, in epoch {state.epoch}", *loaded.notes, sep="\n  ")
    for _ in state.epochs(EPOCHS):
        for points, kinds in state.batches(loader):
            loss = nn.functional.cross_entropy(model(points), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state.step += 1
            if state.step % EVERY == 0:
                state.save()
            if state.step == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
        scheduler.step()
    torch.save(model.state_dict(), Path(folder) / "last.pt")


def started(folder: Path, *killed_at: str) -> None:
    """`python killed_and_resumed.py FOLDER [STEP]`, a process of its own: its workers start as those of any script."""
    done = subprocess.run([sys.executable, __file__, str(folder), *killed_at], check=False)
    print(f"  ended with {done.returncode}", flush=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        straight, broken = Path(place, "straight"), Path(place, "broken")
        print("at one stretch", flush=True)
        started(straight)
        print("killed at step 23 of 48, and started again", flush=True)
        started(broken, "23")
        started(broken)
        one, other = (torch.load(each / "last.pt", weights_only=True) for each in (straight, broken))
    same = all(torch.equal(one[name], other[name]) for name in one)
    print("equal: every bit of the weights" if same else "the weights differ")
    return 0 if same else 1


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    train(sys.argv[1], *map(int, sys.argv[2:]))
