"""Schedules that move before a step, and rightly: resumed, first step skipped, told the epoch, warmed up, of two."""

import warnings

import torch
from torch import nn
from torch.optim import lr_scheduler

warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*")
torch.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)


def epoch(model, optimizer):
    for part in range(0, 64, 16):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[part : part + 16]), y[part : part + 16]).backward()
        optimizer.step()


def advance(scheduler):
    scheduler.step()


for done in (1, 3):  # as many epochs as an earlier run had made
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    resumed = lr_scheduler.StepLR(optimizer, 2)
    for _ in range(done):
        advance(resumed)
    for _ in range(5):
        epoch(model, optimizer)
        advance(resumed)

told = lr_scheduler.CosineAnnealingWarmRestarts(torch.optim.SGD(model.parameters(), 0.1), 4)
for number in range(4):
    told.step(number)
    epoch(model, told.optimizer)

optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
parts = [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4), lr_scheduler.CosineAnnealingLR(optimizer, 8)]
warmed = lr_scheduler.SequentialLR(optimizer, parts, milestones=[4])
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)  # the first losses overflow
for number in range(12):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    warmed.step()

frozen, head = nn.Linear(8, 8), nn.Linear(8, 1)
both = nn.Sequential(frozen, head)
optimizers = [torch.optim.SGD(part.parameters(), 1e-2) for part in both]
of_both = [lr_scheduler.ExponentialLR(each, 0.9) for each in optimizers]
for number in range(6):  # the first part joins after one epoch
    for each in optimizers[1 if number < 1 else 0 :]:
        epoch(both, each)
    for each in of_both:
        each.step()
