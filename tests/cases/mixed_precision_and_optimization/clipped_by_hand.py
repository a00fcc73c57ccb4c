"""Gradients that are clipped by hand, by a wrapper's method, or through names of their own."""

import timm.utils
import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler


def norm_of(parameters):
    return torch.sqrt(sum((p.grad.float() ** 2).sum() for p in parameters if p.grad is not None))


def by_factor(gnn, graphs, optim, amp_scaler, limit=5.0):
    for graph in graphs:
        optim.zero_grad()
        with torch.autocast("cuda"):
            loss = gnn(graph)
        amp_scaler.scale(loss).backward()
        params = [p for p in gnn.parameters() if p.requires_grad]
        norm = norm_of(params)
        if norm > limit:
            for p in params:
                p.grad.mul_(limit / (norm + 1e-6))  # expect: clip-before-unscale
        amp_scaler.step(optim)
        amp_scaler.update()


def by_augmented_assignment(model, loader, optimizer, scaler, max_norm):
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        total = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        coef = min(1.0, max_norm / (total + 1e-6))
        for p in model.parameters():
            p.grad *= coef  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()


def by_value_in_a_list(model, loader, optimizer, scaler):
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        for g in grads:
            g.clamp_(-0.1, 0.1)  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()


def by_new_gradient(model, loader, optimizer, scaler):
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        for p in model.parameters():
            p.grad = torch.clamp(p.grad, -1.0, 1.0)  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()


def sharded(build, data):
    model = FullyShardedDataParallel(build().cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = ShardedGradScaler()
    for x in data:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        model.clip_grad_norm_(1.0)  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()


def dispatched(model, loader, optimizer, scaler):
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        timm.utils.dispatch_clip_grad(model.parameters(), 0.02, mode="agc")  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()


# what looks alike


def unscaled_first(gnn, graphs, optim, amp_scaler, limit=5.0):
    for graph in graphs:
        optim.zero_grad()
        with torch.autocast("cuda"):
            loss = gnn(graph)
        amp_scaler.scale(loss).backward()
        amp_scaler.unscale_(optim)
        norm = norm_of(gnn.parameters())
        if norm > limit:
            for p in gnn.parameters():
                p.grad.mul_(limit / (norm + 1e-6))
        amp_scaler.step(optim)
        amp_scaler.update()


def averaged(model, loader, optimizer, scaler, world_size):
    """A mean over processes commutes with the scale."""
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        for p in model.parameters():
            torch.distributed.all_reduce(p.grad)
            p.grad.div_(world_size)
            p.grad *= 1.0
        scaler.step(optimizer)
        scaler.update()


def activations_are_clamped(model, loader, optimizer, scaler):
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            out = model(x)
            loss = out.clamp(-10, 10).pow(2).mean()
        scaler.scale(loss).backward()
        for p in model.parameters():
            p.data.clamp_(-1, 1)
        scaler.step(optimizer)
        scaler.update()
