"""Two-view contrastive pre-training of a small encoder on synthetic grey-scale images.

    python examples/healthy.py

The training of slow_and_unstable.py, mended: nothing is found in it.
"""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, BATCH, EPOCHS = 16, 32, 12
PIXELS = torch.arange(float(SIZE))


class TwoViews(Dataset):
    """Images of two blobs each, seen twice with different noise and shift."""

    def __init__(self, count: int = 320) -> None:
        self.blobs = 3 + (SIZE - 6) * torch.rand(count, 4)

    def __len__(self) -> int:
        return len(self.blobs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return list(zip(self.views(indices), self.views(indices), strict=True))

    def views(self, indices: list[int]) -> torch.Tensor:
        # shift, blur and noise, on the whole batch at once
        at = self.blobs[indices] + torch.rand(len(indices), 4) - 0.5
        x, y = ((PIXELS - at[:, axis::2, None]).square().div(-6).exp() for axis in (0, 1))
        return (y.mT @ x + 0.05 * torch.randn(len(indices), SIZE, SIZE)).clamp_(0.0, 1.0)


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
        with torch.autocast("cpu", enabled=False):
            scores = left.float() @ right.float().T / self.temperature.clamp(min=0.01)
        return nn.functional.cross_entropy(scores, torch.arange(len(scores)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.contrast = Contrast()

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return self.contrast(self.encoder(left), self.encoder(right))


def main() -> None:
    torch.manual_seed(0)
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
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            history.append(loss.item())
            if not math.isfinite(history[-1]):
                print(f"step {len(history) - 1}: the loss is {history[-1]}, stopping")
                return
        print(f"epoch {epoch}: loss {sum(history[-len(loader) :]) / len(loader):.3f}")


if __name__ == "__main__":
    main()
