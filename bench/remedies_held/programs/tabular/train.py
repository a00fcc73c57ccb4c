"""Predicts which of five plans a customer takes, from a table of 24 numeric columns."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def load_table(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    columns = torch.randn(rows, 24, generator=generator)
    mixing = torch.randn(24, 5, generator=generator)
    scores = columns @ mixing + 2.0 * torch.sin(columns[:, :5] * 2.0)
    return TensorDataset(columns, scores.argmax(dim=1))


class PlanClassifier(nn.Module):
    def __init__(self, columns=24, width=256, plans=5):
        super().__init__()
        self.norm = nn.BatchNorm1d(columns)
        self.layers = nn.Sequential(
            nn.Linear(columns, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, plans)

    def forward(self, columns):
        hidden = self.layers(self.norm(columns))
        return self.head(hidden)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = total = 0
    for columns, plans in loader:
        right += (model(columns).argmax(dim=1) == plans).sum().item()
        total += len(plans)
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(17)
    train_set, valid_set = random_split(load_table(12288, 3), [10240, 2048])
    train_loader = DataLoader(train_set, batch_size=128, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=256)
    model = PlanClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        running = 0.0
        for columns, plans in train_loader:
            optimizer.zero_grad()
            logits = model(columns)
            loss = F.cross_entropy(logits, plans)
            loss.backward()
            optimizer.step()
            running += loss.item()
        accuracy = validate(model, valid_loader)
        print(f"epoch {epoch}: loss {running / len(train_loader):.4f}, accuracy {accuracy:.3f}")
    if math.isfinite(running):
        torch.save(model.state_dict(), "plans.pt")


if __name__ == "__main__":
    main()
