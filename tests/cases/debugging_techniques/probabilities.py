"""Losses that expect logits and get probabilities."""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel


class LeNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 5)
        self.fc = nn.Linear(16 * 12 * 12, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = self.fc(x.flatten(1))
        return F.softmax(x, dim=1)  # expect: softmax-before-cross-entropy


def train(model, loader, criterion, optimizer):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()


def main(loader):
    model = LeNet().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters())
    train(model, loader, criterion, optimizer)


class Tagger(nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.embedding = nn.Embedding(words, 64)
        self.lstm = nn.LSTM(64, 64, batch_first=True)
        self.out = nn.Linear(64, tags)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        hidden, _ = self.lstm(self.embedding(x))
        return self.softmax(self.out(hidden))  # expect: softmax-before-cross-entropy


class Trainer:
    def __init__(self, rank):
        net = Tagger(1000, 12).to(rank)
        self.net = DistributedDataParallel(net, device_ids=[rank])
        self.loss_fn = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
        self.optimizer = optim.AdamW(self.net.parameters())

    def fit(self, loader):
        for x, y in loader:
            scores = self.net(x)
            scores = scores.view(-1, scores.size(-1))
            loss = self.loss_fn(scores, y.view(-1))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def in_line(net: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(torch.softmax(net(x), dim=1), y).backward()  # expect: softmax-before-cross-entropy
        optimizer.step()


def two_labels(net: nn.Module, loader, optimizer: optim.Optimizer):
    bce = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
    for x, y in loader:
        optimizer.zero_grad()
        probability = net(x).sigmoid()  # expect: softmax-before-cross-entropy
        loss = bce(probability.squeeze(1), y.float())
        loss.backward()
        optimizer.step()


def sequential(loader):
    net = nn.Sequential(
        nn.Linear(30, 16),
        nn.ReLU(),
        nn.Linear(16, 1),
        nn.Sigmoid(),  # expect: softmax-before-cross-entropy
    )
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(net(x)[:, 0], y)
        loss.backward()
        optimizer.step()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            OrderedDict([("fc", nn.Linear(8, 3)), ("prob", nn.Softmax(dim=1))])  # expect: softmax-before-cross-entropy
        )

    def forward(self, x):
        return self.body(x), x.mean()


def with_a_helper(loader):
    critic = Critic()
    optimizer = optim.SGD(critic.parameters(), lr=0.1)

    def step(x, y):
        prediction, level = critic(x)
        return nn.CrossEntropyLoss()(prediction, y) + level

    for x, y in loader:
        optimizer.zero_grad()
        step(x, y).backward()
        optimizer.step()
