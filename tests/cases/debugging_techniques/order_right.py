"""Steps whose order looks wrong and is right."""

import math

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_

from mylib import project, synchronise


def after_the_step(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def accumulated(model: nn.Module, loader, every):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / every).backward()
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        clip_grad_norm_(model.parameters(), 1.0)  # what has been added up so far


def bad_batches_are_dropped(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if not torch.isfinite(loss):
            optimizer.zero_grad()
            continue
        optimizer.step()
        optimizer.zero_grad()


def gan(generator: nn.Module, critic: nn.Module, loader):
    opt_g, opt_c = optim.Adam(generator.parameters()), optim.Adam(critic.parameters())
    for real in loader:
        fake = generator(torch.randn(len(real), 8))
        opt_g.zero_grad()
        critic(fake).mean().neg().backward()
        opt_g.step()
        opt_c.zero_grad()
        (critic(fake.detach()).mean() - critic(real).mean()).backward()
        clip_grad_norm_(critic.parameters(), 1.0)
        opt_c.step()


def both_step_last(generator: nn.Module, critic: nn.Module, loader):
    opt_g, opt_c = optim.Adam(generator.parameters()), optim.Adam(critic.parameters())
    for real in loader:
        fake = generator(torch.randn(len(real), 8))
        opt_g.zero_grad()
        critic(fake).mean().neg().backward()
        opt_c.zero_grad()
        (critic(fake.detach()).mean() - critic(real).mean()).backward()
        opt_g.step()
        opt_c.step()


def sharpness_aware(model: nn.Module, loader, rho=0.05):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        moved = [rho * p.grad for p in model.parameters()]
        torch._foreach_add_(list(model.parameters()), moved)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        torch._foreach_sub_(list(model.parameters()), moved)
        optimizer.step()
        optimizer.zero_grad()


def put_back(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        kept = [p.grad.clone() for p in model.parameters()]
        optimizer.zero_grad()
        for p, grad in zip(model.parameters(), kept, strict=True):
            p.grad = grad.sign()
        optimizer.step()


def projected_elsewhere(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        stash = project(model)
        optimizer.zero_grad()
        stash.restore()
        optimizer.step()


def summed_over_ranks(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        stash = [x]
        optimizer.zero_grad()
        synchronise(model, stash)
        optimizer.step()


def attacked(model: nn.Module, loader):
    delta = torch.zeros(1, 784, requires_grad=True)
    attack = optim.SGD([delta], lr=0.1)
    for x, y in loader:
        attack.zero_grad()
        F.cross_entropy(model(x + delta), y).neg().backward()
        model.zero_grad()  # the attack does not need them
        attack.step()


def lbfgs(model: nn.Module, x, y):
    optimizer = optim.LBFGS(model.parameters())
    for _ in range(20):

        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def norm_is_only_measured(model: nn.Module, loader, log):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        log(clip_grad_norm_(model.parameters(), float("inf")), clip_grad_norm_(model.parameters(), math.inf))


def weights_are_clipped(critic: nn.Module, loader):
    optimizer = optim.RMSprop(critic.parameters(), lr=5e-5)
    for x in loader:
        optimizer.zero_grad()
        critic(x).mean().backward()
        optimizer.step()
        for p in critic.parameters():
            p.data.clamp_(-0.01, 0.01)


def schedule_last(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        scheduler.step()


def not_in_the_first_epoch(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def told_the_epoch(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(epochs):
        scheduler.step(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def stepped_before_the_loop(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    optimizer.zero_grad()
    optimizer.step()
    for _ in range(epochs):
        scheduler.step()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


class Warmup:
    """Sets the rate of the step that comes."""

    def __init__(self, optimizer, peak):
        self.optimizer, self.peak, self.count = optimizer, peak, 0

    def step(self):
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak * min(1.0, self.count / 4000)


def of_ones_own(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = Warmup(optimizer, 0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        scheduler.step()
        optimizer.step()


def two_of_each(actor: nn.Module, critic: nn.Module, loader):
    actor_optimizer, critic_optimizer = optim.Adam(actor.parameters()), optim.Adam(critic.parameters())
    actor_scheduler = optim.lr_scheduler.LinearLR(actor_optimizer)
    critic_scheduler = optim.lr_scheduler.LinearLR(critic_optimizer)
    for state, value in loader:
        critic_optimizer.zero_grad()
        F.mse_loss(critic(state), value).backward()
        critic_optimizer.step()
        critic_scheduler.step()
        actor_optimizer.zero_grad()
        critic(actor(state)).mean().neg().backward()
        actor_optimizer.step()
        actor_scheduler.step()
