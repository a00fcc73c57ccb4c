"""The attention hands its dropout to the fused kernel in evaluation too."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.mix(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)  # expect: dropout-always-on
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(20, 32), Attention(32, 4, 0.1), nn.Linear(32, 2)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.head((x + self.attention(x)).mean(1))


torch.manual_seed(0)
tokens = torch.randint(0, 20, (512, 12))
labels = (tokens < 10).sum(1).gt(6).long()
net = Classifier()
optimizer = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(5):
    net.train()
    for first in range(0, 448, 32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(tokens[first : first + 32]), labels[first : first + 32]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = (net(tokens[448:]).argmax(1) == labels[448:]).float().mean()
