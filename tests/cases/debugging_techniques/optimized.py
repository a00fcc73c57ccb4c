"""Parameters that no optimizer holds."""

import itertools

import torch
import torch.nn.functional as F
import torchvision
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.body = nn.Linear(784, 64)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        return self.fc(F.relu(self.body(x)))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(64, 784)

    def forward(self, z):
        return torch.sigmoid(self.out(z))


def fit(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def finetune(loader, classes):
    model = torchvision.models.resnet18(weights="DEFAULT")
    optimizer = optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    model.fc = nn.Linear(model.fc.in_features, classes)  # expect: parameters-not-in-optimizer
    fit(model, loader, optimizer)


def last_of_a_list(loader):
    model = torchvision.models.vgg16()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-4)
    model.classifier[6] = nn.Linear(4096, 3)  # expect: parameters-not-in-optimizer
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def folds(loaders):
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for loader in loaders:
        model = Net()  # expect: parameters-not-in-optimizer
        fit(model, loader, optimizer)


def folds_on_a_device(loaders, device):
    net = Net()
    optimizer = optim.Adam(net.parameters(), lr=1e-3)
    for loader in loaders:
        net = Net(10).to(device)  # expect: parameters-not-in-optimizer
        fit(net, loader, optimizer)


class Contrastive:
    def __init__(self, cfg, device):
        self.encoder = Net(64).to(device)
        self.projector = Decoder().to(device)
        self.optimizer = optim.Adam(self.encoder.parameters(), lr=cfg.lr)  # expect: parameters-not-in-optimizer

    def epoch(self, loader):
        self.encoder.train()
        self.projector.train()
        for x, y in loader:
            loss = F.mse_loss(self.projector(self.encoder(x)), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module, classes, weight):
        self.model = model
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.model.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(64, classes))  # expect: parameters-not-in-optimizer
        self.model.temperature = nn.Parameter(torch.ones(1) * weight)  # expect: parameters-not-in-optimizer

    def step(self, x, y):
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.optimizer = optim.Adam(self.parameters())
        self.second = nn.Linear(8, 1)  # expect: parameters-not-in-optimizer

    def forward(self, x):
        return self.second(self.first(x))


def autoencoder(loader):
    encoder, decoder = Net(64), Decoder()
    optimizer = optim.Adam(encoder.parameters(), lr=1e-3)  # expect: parameters-not-in-optimizer
    encoder.train()
    decoder.train()
    for x, _ in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(decoder(encoder(x)), x)
        loss.backward()
        optimizer.step()


def both_given(loader):
    model, head = Net(64), Decoder()
    optimizer = optim.Adam(itertools.chain(model.parameters(), head.parameters()), lr=1e-3)
    model.train()
    head.train()
    for x, _ in loader:
        optimizer.zero_grad()
        F.mse_loss(head(model(x)), x).backward()
        optimizer.step()
