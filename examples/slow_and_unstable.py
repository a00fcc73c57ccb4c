"""Two-view contrastive pre-training of a small encoder on synthetic grey-scale images.

    python examples/slow_and_unstable.py

"It is slower than it should be, it eats memory, and after a while the loss is infinite and it stops."
"""

import math
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, BATCH, EPOCHS = 16, 32, 12


class TwoViews(Dataset):
    """Images of two blobs each, seen twice with different noise and shift."""

    def __init__(self, count: int = 320) -> None:
        self.blobs = [[random.uniform(3, SIZE - 3) for _ in range(4)] for _ in range(count)]

    def __len__(self) -> int:
        return len(self.blobs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.view(index), self.view(index)

    def view(self, index: int) -> torch.Tensor:
        # shift, blur and noise, pixel by pixel
        x0, y0, x1, y1 = (at + random.uniform(-0.5, 0.5) for at in self.blobs[index])
        image = []
        for y in range(SIZE):
            row = []
            for x in range(SIZE):
                value = math.exp(-((x - x0) ** 2 + (y - y0) ** 2) / 6) + math.exp(-((x - x1) ** 2 + (y - y1) ** 2) / 6)
                value += random.gauss(0, 0.05)
                row.append(min(max(value, 0.0), 1.0))
            image.append(row)
        return torch.tensor(image)


class Encoder(nn.Module):
    def __init__(self, width: int = 64, out: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(SIZE * SIZE, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.head = nn.Linear(width, out)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.head(self.body(images)).float(), dim=-1)


class Contrast(nn.Module):
    """InfoNCE with a temperature that is learned, too."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.2))

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        scores = left @ right.T / self.temperature
        weights = torch.exp(scores)
        return -torch.log(weights.diagonal() / weights.sum(dim=1)).mean()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.contrast = Contrast()

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return self.contrast(self.encoder(left), self.encoder(right))


def main() -> None:
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)  # matrices this small gain nothing from more
    model = Model()
    optimizer = torch.optim.AdamW(
        [
            {"params": model.encoder.parameters(), "lr": 1e-3},
            {"params": model.contrast.parameters(), "lr": 1.5e-3, "weight_decay": 0.0},
        ]
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    loader = DataLoader(TwoViews(), batch_size=BATCH, shuffle=True, drop_last=True)

    history = []  # for the plot
    for epoch in range(EPOCHS):
        for left, right in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = model(left, right)
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            history.append(loss)
            if not math.isfinite(history[-1].item()):
                print(f"step {len(history) - 1}: the loss is {history[-1].item()}, stopping")
                return
        print(f"epoch {epoch}: loss {sum(float(loss.detach()) for loss in history[-len(loader) :]) / len(loader):.3f}")


if __name__ == "__main__":
    main()
