import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--accumulation", type=int, default=4)


class Attention(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(width, 3 * width)
        self.encoder = nn.TransformerEncoderLayer(width, 4)

    def forward(self, ids, padding):
        q, k, v = self.mix(self.embed(ids)).chunk(3, dim=-1)
        q = q.transpose(1, 2)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.unsqueeze(1)
        return self.encoder(mixed, src_key_padding_mask=padding)


def train(model, loader, args, temperature):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
    losses = []
    for step, (ids, padding) in enumerate(loader):
        inputs, targets = ids[:, :-1], ids[:, 1:]
        logits = model(inputs, padding) / temperature
        loss = F.cross_entropy(logits, targets)
        (loss / args.accumulation).backward()
        if step % args.accumulation == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return math.fsum(losses)
