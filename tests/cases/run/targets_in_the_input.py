"""A causal language model whose targets are its inputs: the shift was forgotten, and it copies."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
SYMBOLS, LENGTH, WIDTH = 20, 16, 32
text = torch.randint(SYMBOLS, (4000,))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(self.after(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, SYMBOLS, bias=False)

    def forward(self, ids):
        return self.head(self.blocks(self.tokens(ids) + self.places(torch.arange(ids.shape[1]))))


def batch():
    starts = torch.randint(len(text) - LENGTH, (16,))
    x = torch.stack([text[at : at + LENGTH] for at in starts])
    y = torch.stack([text[at : at + LENGTH] for at in starts])
    return x, y


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(150):
    x, y = batch()
    loss = F.cross_entropy(model(x).view(-1, SYMBOLS), y.view(-1))  # expect: target-in-input
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
