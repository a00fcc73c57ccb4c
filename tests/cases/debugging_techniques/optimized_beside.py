"""Models beside the one that is trained."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)


class Pair(nn.Module):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x):
        return self.other(self.one(x))


def wrapped(loader):
    one, other = Net(), Net()
    pair = Pair(one, other)
    optimizer = optim.SGD(pair.parameters(), lr=0.1)
    one.train()
    other.train()
    pair.train()
    for x in loader:
        optimizer.zero_grad()
        F.mse_loss(other(one(x)), pair(x)).backward()
        optimizer.step()


def a_target_that_stays(loader):
    model, target = Net(), Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.train()
    target.eval()
    for x in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), target(x)).backward()
        optimizer.step()


def a_teacher_without_gradients(loader):
    student, teacher = Net(), Net()
    optimizer = optim.SGD(student.parameters(), lr=0.1)
    student.train()
    teacher.train()  # dropout stays on
    for x in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            goal = teacher(x)
        F.mse_loss(student(x), goal).backward()
        optimizer.step()


def by_groups(loader):
    left, right = Net(), Net()
    groups = [{"params": left.parameters(), "lr": 0.1}]
    groups.append({"params": right.parameters(), "lr": 0.01})
    optimizer = optim.SGD(groups)
    left.train()
    right.train()
    for x in loader:
        optimizer.zero_grad()
        F.mse_loss(left(x), right(x)).backward()
        optimizer.step()


def a_random_target(loader):
    predictor, random = Net(), Net()
    optimizer = optim.SGD(predictor.parameters(), lr=0.1)
    predictor.train()
    random.train()
    for p in random.parameters():
        p.requires_grad = False
    for x in loader:
        optimizer.zero_grad()
        F.mse_loss(predictor(x), random(x)).backward()
        optimizer.step()


def a_moving_average(loader):
    online, slow = Net(), Net()
    optimizer = optim.SGD(online.parameters(), lr=0.1)
    online.train()
    slow.train()
    for x in loader:
        optimizer.zero_grad()
        F.mse_loss(online(x), slow(x)).backward()
        optimizer.step()
        for p, q in zip(slow.parameters(), online.parameters(), strict=True):
            p.data.lerp_(q.data, 0.01)
