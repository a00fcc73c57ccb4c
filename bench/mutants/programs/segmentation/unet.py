import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvBlock(nn.Sequential):
    """Two 3x3 convolutions, each with normalisation and ReLU."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out, momentum=0.2),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_out, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out, momentum=0.2),
            nn.ReLU(inplace=True),
        )


class UpBlock(nn.Module):
    def __init__(self, c_in: int, c_skip: int, c_out: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(c_in, c_out, 1)
        self.block = ConvBlock(c_out + c_skip, c_out)

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        x = F.interpolate(self.reduce(x), size=skip.shape[-2:], mode="nearest")
        return self.block(torch.cat([x, skip], dim=1))


class UNet(nn.Module):
    def __init__(self, c_in: int = 1, n_classes: int = 1, widths: tuple[int, ...] = (8, 16, 32)) -> None:
        super().__init__()
        downs, channels = [], c_in
        for width in widths:
            downs.append(ConvBlock(channels, width))
            channels = width
        self.downs = nn.ModuleList(downs)
        self.pool = nn.MaxPool2d(2)
        ups = []
        for width in reversed(widths[:-1]):
            ups.append(UpBlock(channels, width, width))
            channels = width
        self.ups = nn.ModuleList(ups)
        self.head = nn.Conv2d(channels, n_classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for i, down in enumerate(self.downs):
            x = down(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up in self.ups:
            x = up(x, skips.pop())
        return self.head(x)
