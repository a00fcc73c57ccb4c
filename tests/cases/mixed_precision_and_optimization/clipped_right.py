"""Clipping that is right: unscaled first, not scaled at all, or scaled on purpose."""

import torch
from torch import nn
from torch.amp import GradScaler, autocast

from mylib.amp import clip_with_scaler

optimizer = None


def unscaled_first(model: nn.Module, loader, optimizer, scaler: GradScaler, clip):
    for i, (x, y) in enumerate(loader):
        with autocast("cuda"):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def both_ways(model, loader, optimizer, scaler, use_amp):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if use_amp:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def in_bfloat16(model: nn.Module, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def scaled_bound(model: nn.Module, loader, optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()


def by_a_helper(model: nn.Module, loader, optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        clip_with_scaler(scaler, optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def unscale(scaler, optimizer):
    scaler.unscale_(optimizer)


def by_a_helper_of_this_file(model: nn.Module, loader, optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        unscale(scaler, optimizer)
        for p in model.parameters():
            p.grad.div_(2)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def disabled(model: nn.Module, loader, optimizer):
    scaler = GradScaler("cuda", enabled=False)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def stepped_before(model: nn.Module, loader, optimizer, scaler: GradScaler, second):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
        second.zero_grad()
        nn.functional.mse_loss(model(x), x).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        second.step()


def under_flags_that_exclude_each_other(model: nn.Module, loader, optimizer, scaler: GradScaler, args):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if args.half:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if args.half is False:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()


def only_when_not_scaled(model: nn.Module, loader, optimizer, args):
    scaler = GradScaler("cuda", enabled=args.half)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        if args.limit and not args.half:
            nn.utils.clip_grad_norm_(model.parameters(), args.limit)
        scaler.step(optimizer)
        scaler.update()


def in_the_other_arm(model: nn.Module, loader, optimizer, args):
    scaler = GradScaler("cuda", enabled=args.half)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        if args.half:
            scaler.unscale_(optimizer)
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def only_the_generator_is_scaled(generator: nn.Module, critic: nn.Module, loader, first, second, scaler: GradScaler):
    for noise, real in loader:
        first.zero_grad()
        scaler.scale(-critic(generator(noise)).mean()).backward()
        second.zero_grad()
        loss = critic(generator(noise).detach()).mean() - critic(real).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        second.step()
        scaler.step(first)
        scaler.update()
