"""The same in a trainer class, with a model from elsewhere."""

import torch
import torchvision
from torch import nn
from tqdm import tqdm

from project.hooks import callback


class Trainer:
    def __init__(self, train_loader, val_loader, device, classes):
        self.device = device
        self.model = torchvision.models.resnet18(num_classes=classes).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.criterion = nn.CrossEntropyLoss()
        self.train_loader, self.val_loader = train_loader, val_loader

    def train_epoch(self):
        for images, labels in tqdm(self.train_loader):
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(images.to(self.device)), labels.to(self.device))
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()  # expect: mode-left-in-eval
        hits = 0
        for images, labels in self.val_loader:
            hits += (self.model(images.to(self.device)).argmax(1).cpu() == labels).sum().item()
        return hits

    def fit(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            self.train_epoch()
            print(epoch, self.validate())


class Restoring:
    def __init__(self, train_loader, val_loader):
        self.model = torchvision.models.resnet18()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.criterion = nn.CrossEntropyLoss()
        self.train_loader, self.val_loader = train_loader, val_loader

    def train_epoch(self):
        self.model.train()
        for images, labels in self.train_loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(images), labels).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return [self.criterion(self.model(images), labels).item() for images, labels in self.val_loader]

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            self.validate()


class CalledBack:
    """What the callback does to the model cannot be seen."""

    def __init__(self, loader, val_loader):
        self.net = torchvision.models.resnet18()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader, self.val_loader = loader, val_loader

    def fit(self, epochs):
        for epoch in range(epochs):
            callback(self.net, epoch)
            for images, labels in self.loader:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(images), labels).backward()
                self.optimizer.step()
            self.net.eval()
            with torch.no_grad():
                for images, _ in self.val_loader:
                    self.net(images)
