"""Schedules that move on in the phase that trains, optimizers made before a new head, errors that are suppressed."""

import contextlib

import torch
from torch import nn
from torch.optim import lr_scheduler
from torchvision import models


def by_phase(model, criterion, loaders):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=7)
    for _ in range(25):
        for phase in ["train", "val"]:
            if phase == "train":
                scheduler.step()  # expect: scheduler-before-optimizer
                model.train()
            else:
                model.eval()
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = criterion(model(inputs), labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()


def by_phase_right(model, criterion, loaders):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=7)
    for epoch in range(25):
        for phase in ["train", "val"]:
            if epoch > 0:
                scheduler.step()
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                loss = criterion(model(inputs), labels)  # expect: eval-builds-graph
                if phase == "train":
                    loss.backward()
                    optimizer.step()


def build(classes, lr):
    model = models.resnet18(weights="DEFAULT")
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.fc = nn.Linear(model.fc.in_features, classes)  # expect: parameters-not-in-optimizer
    return model, optimizer


def build_right(classes, lr):
    model = models.resnet18(weights="DEFAULT")
    model.fc = nn.Linear(model.fc.in_features, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return model, optimizer


def suppressed(model, loader, optimizer):
    for batch in loader:
        with contextlib.suppress(RuntimeError):  # expect: failure-swallowed
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
        with contextlib.suppress(KeyError), torch.autocast("cuda"):
            print(batch["name"])


def suppressed_right(model, loader, optimizer):
    for batch in loader:
        with contextlib.suppress(KeyError, StopIteration):
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
