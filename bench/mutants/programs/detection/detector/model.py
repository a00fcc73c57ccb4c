import math

from torch import Tensor, nn


def conv_bn(c_in: int, c_out: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True))


class Head(nn.Module):
    """One 3x3 layer, then `n_out` numbers for every anchor of a cell."""

    def __init__(self, channels: int, per_cell: int, n_out: int) -> None:
        super().__init__()
        self.n_out = n_out
        self.conv = conv_bn(channels, channels)
        self.out = nn.Conv2d(channels, per_cell * n_out, 1)
        nn.init.normal_(self.out.weight, std=0.01)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.out(self.conv(x))
        # (N, A*K, H, W) -> (N, H*W*A, K), the order of the anchors
        return x.permute(0, 2, 3, 1).reshape(x.size(0), -1, self.n_out)


class SingleShotDetector(nn.Module):
    def __init__(self, n_classes: int, per_cell: int, width: int = 12, prior: float = 0.05) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            conv_bn(1, width, stride=2),
            conv_bn(width, 2 * width, stride=2),
            conv_bn(2 * width, 2 * width),
        )
        self.class_head = Head(2 * width, per_cell, n_classes)
        self.box_head = Head(2 * width, per_cell, 4)
        # nearly all anchors are background: begin with that guess
        nn.init.constant_(self.class_head.out.bias, -math.log((1 - prior) / prior))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.backbone(images)
        return self.class_head(features), self.box_head(features)
