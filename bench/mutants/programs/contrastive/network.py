import torch.nn.functional as F
from torch import Tensor, nn


def conv_block(in_channels: int, out_channels: int, kernel: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


class Encoder(nn.Module):
    """Images to feature vectors; this part is kept after the pretraining."""

    def __init__(self, width: int = 16, features: int = 64) -> None:
        super().__init__()
        self.features = features
        self.stages = nn.Sequential(
            conv_block(3, width, kernel=5, stride=2),
            conv_block(width, 2 * width, kernel=3, stride=2),
            conv_block(2 * width, features, kernel=3, stride=1),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, images: Tensor) -> Tensor:
        return self.pool(self.stages(images)).flatten(1)


class ProjectionHead(nn.Module):
    def __init__(self, features: int, hidden: int, out_features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, out_features),
        )

    def forward(self, features: Tensor) -> Tensor:
        return F.normalize(self.layers(features), dim=1)


class ContrastiveModel(nn.Module):
    def __init__(self, width: int = 16, features: int = 64, projection: int = 32) -> None:
        super().__init__()
        self.encoder = Encoder(width, features)
        self.projector = ProjectionHead(features, features, projection)

    def forward(self, images: Tensor) -> Tensor:
        return self.projector(self.encoder(images))
