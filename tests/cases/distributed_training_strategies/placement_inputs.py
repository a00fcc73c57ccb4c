"""Inputs that stay behind, and inputs that need not be moved."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets, models, transforms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, images):
        return self.layer(images.flatten(1))


class Placing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, images):
        return self.layer(images.to(self.layer.weight.device).flatten(1))


def targets_only(dataset, device: torch.device):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for images, labels in loader:
        labels = labels.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)  # expect: device-mismatch
        loss.backward()
        optimizer.step()


def nothing_moved():
    train_set = datasets.MNIST("data", train=True, transform=transforms.ToTensor())
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    net = models.resnet18(num_classes=10).cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters())
    for images, labels in loader:
        optimizer.zero_grad()
        outputs = net(images)  # expect: device-mismatch
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()


def by_the_wrapper(dataset, local_rank: int):
    sampler = torch.utils.data.distributed.DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    net = DDP(Net().to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.Adam(net.parameters())
    for images, labels in loader:
        labels = labels.to(local_rank)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()


def by_the_model(dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Placing().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels.cuda()).backward()
        optimizer.step()


def there_from_the_start(images: torch.Tensor, labels: torch.Tensor):
    dataset = TensorDataset(images.cuda(), labels.cuda())
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for source, target in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(source), target).backward()
        optimizer.step()


def on_the_cpu():
    train_set = datasets.MNIST("data", train=True, transform=transforms.ToTensor())
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
