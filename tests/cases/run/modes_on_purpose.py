"""Modes that look wrong and are meant: a frozen backbone, an eval'd teacher, attacks, averages, Monte Carlo, fakes."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points = torch.randn(256, 8)
names = (points.sum(1) > 0).long()
train = DataLoader(TensorDataset(points, names), 16, shuffle=True)
held_out = DataLoader(TensorDataset(points[:64], names[:64]), 32)


def make():
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))


class Tuned(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone, self.head = backbone.requires_grad_(False), nn.Sequential(nn.Dropout(0.1), nn.Linear(2, 2))

    def forward(self, x):
        return self.head(self.backbone(x))


def learn(model, optimizer, teacher=None):
    for x, y in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if teacher is not None:
            with torch.no_grad():
                wanted = teacher(x).softmax(1)
            loss = loss + nn.functional.kl_div(model(x).log_softmax(1), wanted, reduction="batchmean")
        loss.backward()
        optimizer.step()


def attacked(model, x, y):
    model.eval()
    noise = torch.zeros_like(x, requires_grad=True)
    nn.functional.cross_entropy(model(x + noise), y).backward()
    model.train()
    return x + 0.1 * noise.grad.sign()


def spread(model, x):
    with torch.no_grad():
        return torch.stack([model(x).softmax(1) for _ in range(8)]).var(0).mean().item()


# A backbone whose statistics stay, below a head that learns
tuned = Tuned(make())
tuned.eval()
tuned.head.train()
learn(tuned, torch.optim.Adam(tuned.head.parameters()))

# A network whose batch norm stays in evaluation mode all the time, a teacher, an average of weights in training mode
pupil, teacher = make(), make().eval()
for part in pupil.modules():
    if isinstance(part, nn.BatchNorm1d):
        part.eval()
learn(pupil, torch.optim.Adam(pupil.parameters()), teacher)
average = copy.deepcopy(pupil).requires_grad_(False).train()
learn(pupil, torch.optim.Adam(pupil.parameters()), average)

# Attacks in evaluation mode, training on them in training mode; uncertainty from dropout
model = make()
optimizer = torch.optim.Adam(model.parameters())
for x, y in train:
    noisy = attacked(model, x, y)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(noisy), y).backward()
    optimizer.step()
for x, _ in held_out:
    print(spread(model, x))

# Statistics of batch norm estimated anew
torch.optim.swa_utils.update_bn(train, model)
model.train()
with torch.no_grad():
    for x, _ in train:
        model(x)
