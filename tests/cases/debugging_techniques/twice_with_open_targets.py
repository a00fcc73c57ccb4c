"""backward() twice on one loss, of which not everything is known: its target comes from an object out of sight."""

import torch
import torch.nn.functional as F
from helpers import again


def train_one_epoch(model, batches, optimizer: torch.optim.Optimizer, scaler, device):
    for batch in batches:
        loss = F.smooth_l1_loss(model(batch.to(device)), scaler.transform(batch.target))
        optimizer.zero_grad()
        loss.backward()
        loss.backward()  # expect: backward-twice
        optimizer.step()


def train_otherwise(model, batches, optimizer: torch.optim.Optimizer, scaler, device):
    for batch in batches:
        loss = F.smooth_l1_loss(model(batch.to(device)), scaler.transform(batch.target))
        optimizer.zero_grad()
        loss.backward()
        again(loss)
        optimizer.step()
