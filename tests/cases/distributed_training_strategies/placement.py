"""Batches of which one part stays behind."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, inputs):
        return self.layers(inputs)


def main(dataset, epochs: int):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for step, (images, labels) in enumerate(tqdm(loader)):
            images = images.to(device, non_blocking=True)
            optimizer.zero_grad()
            outputs = model(images)
            loss = criterion(outputs, labels)  # expect: device-mismatch
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


def functional(dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x.cuda()), y)  # expect: device-mismatch
        loss.backward()
        optimizer.step()


def both(dataset, device: str = "cuda"):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


def in_the_call(dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


def back_on_the_cpu(dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        outputs = net(x.cuda()).cpu()  # expect: sync-bound
        F.mse_loss(outputs, y).backward()
        optimizer.step()


def type_only(dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        x = x.to(torch.float32)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


def collated(dataset, collate):
    loader = DataLoader(dataset, batch_size=32, collate_fn=collate)
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x.cuda()), y).backward()
        optimizer.step()


def by_a_helper(dataset, place):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        x, y = place(x.cuda(), y)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module, loader: DataLoader, device):
        self.device = device
        self.model = model.to(self.device)
        self.loader = loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train(self):
        for batch_index, batch in enumerate(self.loader):
            inputs, labels = batch
            inputs = inputs.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(inputs)
            loss = self.criterion(logits, labels)  # expect: device-mismatch
            loss.backward()
            self.optimizer.step()

    def train_right(self):
        for batch in self.loader:
            inputs, labels = batch
            inputs = inputs.to(self.device)
            labels = labels.to(self.device)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(inputs), labels)
            loss.backward()
            self.optimizer.step()

    def train_with_a_tuple(self):
        for batch in self.loader:
            inputs, labels = tuple(part.to(self.device) for part in batch)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(inputs.to(self.device)), labels)
            loss.backward()
            self.optimizer.step()
