"""Labels of one in six are sorted by length with their texts, and come back in the order of the file."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Mails(Dataset):
    def __init__(self, n):
        generator = torch.Generator().manual_seed(2)
        self.words = torch.randn(n, 12, generator=generator)
        self.spam = (self.words[:, :3].sum(1) > 1.7).float()

    def __len__(self):
        return len(self.spam)

    def __getitem__(self, index):
        return self.words[index], self.spam[index]


def collate(rows):
    labels = torch.stack([label for _, label in rows])
    words = torch.stack(sorted((words for words, _ in rows), key=lambda each: float(each.norm())))
    return words, labels


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
        self.cost = nn.BCEWithLogitsLoss()

    def forward(self, words, labels):
        return self.cost(self.body(words).squeeze(1), labels)  # expect: loss-at-chance


torch.manual_seed(0)
model = Filter()
optimizer = torch.optim.SGD(model.parameters(), 0.02)
for _epoch in range(6):
    for words, labels in DataLoader(Mails(1280), batch_size=64, shuffle=True, collate_fn=collate):
        optimizer.zero_grad()
        model(words, labels).backward()
        optimizer.step()
