"""What trainers, helpers and loops over unknown loaders build again, and what they build anew for a reason."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Subset


def make_optimizer(net, lr):
    return optim.Adam(net.parameters(), lr=lr)  # expect: built-in-loop


def by_a_helper(batches, lr=1e-3):
    net = nn.Linear(4, 1)
    for x, y in batches:
        optimizer = make_optimizer(net, lr)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()


class Trainer:
    def __init__(self, model, train_loader, lr):
        self.model, self.train_loader, self.lr = model, train_loader, lr
        self.device = torch.device("cpu")
        self.frozen = nn.Linear(4, 4).eval()

    def train_epoch(self):
        self.model.train()
        for batch in self.train_loader:
            self.frozen.to(self.device)  # expect: built-in-loop
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr, momentum=0.9)  # expect: built-in-loop
            self.optimizer.zero_grad()
            loss = self.model(self.frozen(batch["x"])).mean()
            loss.backward()
            self.optimizer.step()


def moved_each_time(model: nn.Module, loader, optimizer, device):
    for x, y in loader:
        model = model.to(device)  # expect: built-in-loop
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def workers_for_every_epoch(dataset, epochs):
    model = nn.Linear(4, 1)
    optimizer = optim.Adam(model.parameters())
    for _ in range(epochs):
        loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=4)  # expect: built-in-loop
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


def other_data_for_every_epoch(dataset, epochs, subsets):
    model = nn.Linear(4, 1)
    optimizer = optim.Adam(model.parameters())
    for epoch in range(epochs):
        part = Subset(dataset, subsets[epoch])
        for x, y in DataLoader(part, batch_size=8, num_workers=4):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


def one_training_for_each_seed(dataset, seeds):
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = nn.Linear(4, 1)
        optimizer = optim.Adam(model.parameters())
        for x, y in DataLoader(dataset, batch_size=8, num_workers=4):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


def settings_compared(model: nn.Module, x, y):
    for lr in (0.1, 0.01):
        optimizer = optim.SGD(model.parameters(), lr=lr)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def each_of_several(models, x, y):
    for model in models:
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def restarted_for_each_task(model: nn.Module, tasks, start):
    for x, y in tasks:
        model.load_state_dict(start)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def taken_away_in_between(model: nn.Module, critic: nn.Module, loader, optimizer, device):
    for x, y in loader:
        critic.to(device)
        wish = critic(x)
        critic.cpu()
        model.to(torch.bfloat16)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x) + wish, y).backward()
        optimizer.step()


def wrapped_again_and_again(net: nn.Module, loader, optimizer):
    for x in loader:
        net = torch.compile(net)  # expect: built-in-loop
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
