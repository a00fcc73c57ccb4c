import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Pictures(Dataset):
    def __init__(self, images, labels, augment=False):
        self.images, self.labels, self.augment = images, labels, augment

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x + F.relu(self.norm(x) * self.scale)
        weights = torch.softmax(x, dim=-1)
        return x * weights


class Net(nn.Module):
    def __init__(self, width, depth, dropout=0.1):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(64, width), nn.ReLU())
        self.middle = nn.Linear(16, 16)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        h = self.stem(x.flatten(1))
        h = self.middle(h)
        for block in self.blocks:
            h = block(h)
        return self.head(self.drop(h))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for images, labels in loader:
        total += F.cross_entropy(model(images), labels).item() * len(labels)
        count += len(labels)
    return total / count


def main(images, labels, n):
    images = (images - images.mean()) / (images.std() + 1e-6)
    train_set, val_set = TensorDataset(images[:n], labels[:n]), TensorDataset(images[n:], labels[n:])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, num_workers=0)
    val_loader = DataLoader(val_set, batch_size=64, num_workers=0)
    model = Net(width=16, depth=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
    criterion = nn.CrossEntropyLoss()
    best, running = None, 0.0
    for epoch in range(start(model, optimizer, "last.pt"), 8):
        model.train()
        for images, labels in train_loader:
            logits = model(images)
            loss = criterion(logits, labels.long())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            running += loss.detach()
        scheduler.step()
        val_loss = evaluate(model, val_loader)
        best = copy.deepcopy(model.state_dict())
        save("last.pt", model, optimizer, scheduler, epoch + 1)
        print(val_loss, running)
    model.load_state_dict(best)


def save(path, model, optimizer, scheduler, epoch):
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "epoch": epoch,
        },
        path,
    )


def start(model, optimizer, path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]
