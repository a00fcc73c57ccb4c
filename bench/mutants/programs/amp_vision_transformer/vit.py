from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@dataclass
class ViTConfig:
    image_size: int = 16
    patch_size: int = 4
    channels: int = 3
    dim: int = 48
    depth: int = 2
    heads: int = 3
    mlp_ratio: int = 2
    dropout: float = 0.0
    num_classes: int = 8
    activation_checkpointing: bool = False


def sine_positions(side: int, dim: int) -> Tensor:
    """Fixed codes for the cells of a square grid: sines and cosines of both coordinates."""
    if dim % 4:
        raise ValueError("the width has to be a multiple of 4")
    frequency = 100.0 ** -torch.linspace(0.0, 1.0, dim // 4)
    coordinate = torch.arange(side, dtype=torch.float32)
    ys, xs = torch.meshgrid(coordinate, coordinate, indexing="ij")
    angle_y = ys.reshape(-1, 1) * frequency
    angle_x = xs.reshape(-1, 1) * frequency
    return torch.cat([angle_x.sin(), angle_x.cos(), angle_y.sin(), angle_y.cos()], dim=1)


class PatchEmbedding(nn.Module):
    """Cuts an image into patches, projects them and adds where they were."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        side = config.image_size // config.patch_size
        self.project = nn.Conv2d(config.channels, config.dim, config.patch_size, stride=config.patch_size)
        self.scale = nn.Parameter(torch.ones(config.dim))
        self.register_buffer("position", sine_positions(side, config.dim), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.project(images).flatten(2).transpose(1, 2)
        return patches + self.scale * self.position


class Attention(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        if config.dim % config.heads:
            raise ValueError("the width has to be a multiple of the number of heads")
        self.heads = config.heads
        self.dropout = config.dropout
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, dim))


class Block(nn.Module):
    """Pre-norm transformer block."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        hidden = config.mlp_ratio * config.dim
        self.norm1 = nn.LayerNorm(config.dim)
        self.attention = Attention(config)
        self.norm2 = nn.LayerNorm(config.dim)
        self.mlp = nn.Sequential(
            nn.Linear(config.dim, hidden),
            nn.GELU(),
            nn.Linear(hidden, config.dim),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = PatchEmbedding(config)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, config.num_classes)
        self.apply(self._init_linear)

    @staticmethod
    def _init_linear(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images)
        for block in self.blocks:
            if self.config.activation_checkpointing and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x).mean(dim=1))
