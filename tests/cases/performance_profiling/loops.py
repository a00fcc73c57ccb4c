"""What a loop over batches builds or waits for, again and again."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader

DEVICE = "cuda"


def build():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))


def optimizer_for_every_batch(dataset):
    model = build()
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # expect: built-in-loop
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def compiled_for_every_batch(dataset):
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2):
        fast = torch.compile(model)  # expect: built-in-loop
        optimizer.zero_grad()
        nn.functional.mse_loss(fast(inputs), targets).backward()
        optimizer.step()


def workers_for_every_batch(dataset, held_out):
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2):
        optimizer.zero_grad()
        other, _ = next(iter(DataLoader(held_out, batch_size=8, num_workers=2)))  # expect: built-in-loop
        nn.functional.mse_loss(model(inputs) + model(other), targets).backward()
        optimizer.step()


def optimizer_for_every_epoch(dataset):
    model = build()
    for _ in range(3):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()


def a_model_for_every_task(tasks):
    model = build()
    for inputs, targets in DataLoader(tasks, batch_size=8, num_workers=2):
        learner = copy.deepcopy(model)
        optimizer = torch.optim.SGD(learner.parameters(), lr=1e-3)
        optimizer.zero_grad()
        nn.functional.mse_loss(learner(inputs), targets).backward()
        optimizer.step()


def renewed_at_times(dataset):
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (inputs, targets) in enumerate(DataLoader(dataset, batch_size=8, num_workers=2)):
        if step == 1000:
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def waits_often(dataset, log):
    model = build().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2):
        outputs = model(inputs.to(DEVICE))
        loss = nn.functional.mse_loss(outputs, targets.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())  # expect: sync-bound
        log(outputs.max().item())
        log(outputs.detach().cpu())


def waits_once(dataset, log):
    model = build().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (inputs, targets) in enumerate(DataLoader(dataset, batch_size=8, num_workers=2)):
        outputs = model(inputs.to(DEVICE))
        loss = nn.functional.mse_loss(outputs, targets.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())
        if step % 100 == 0:
            log(outputs.max().item(), outputs.min().item())
            log(outputs.detach().cpu())
