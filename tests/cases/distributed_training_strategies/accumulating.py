"""Accumulation that averages over the ranks after every micro-batch."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model: nn.Module, loader, args):
    model = DDP(model.to(args.local_rank), device_ids=[args.local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    optimizer.zero_grad()
    for step, (inputs, targets) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), targets) / args.accumulate
        loss.backward()  # expect: no-sync-missing
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


class Trainer:
    def __init__(self, model: nn.Module, loader, local_rank: int):
        self.model = DDP(model.to(local_rank), device_ids=[local_rank])
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")
        self.loader, self.every = loader, 8

    def micro_step(self, batch):
        with torch.autocast("cuda"):
            loss = self.model(batch).mean() / self.every
        self.scaler.scale(loss).backward()  # expect: no-sync-missing

    def train(self):
        self.model.train()
        for index, batch in enumerate(self.loader, start=1):
            self.micro_step(batch)
            is_last = index % self.every == 0
            if is_last:
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad(set_to_none=True)


def every_batch(model: nn.Module, loader, local_rank: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(loss.item())


def now_and_then_both(model: nn.Module, loader, local_rank: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for step, (inputs, targets) in enumerate(loader):
        if step % 4 == 0:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()


def alone(model: nn.Module, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.zero_grad()
    for step, (inputs, targets) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), targets) / 4
        loss.backward()
        if (step + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


def in_chunks(model: nn.Module, loader, parts: int, local_rank: int):
    replica = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(replica.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        for source, target in zip(inputs.chunk(parts), targets.chunk(parts)):
            loss = nn.functional.mse_loss(replica(source), target) / parts
            loss.backward()  # expect: no-sync-missing
        optimizer.step()


def by_a_counter(model: nn.Module, loader, every: int, local_rank: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    waiting = 0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets) / every
        loss.backward()  # expect: no-sync-missing
        waiting += 1
        if waiting < every:
            continue
        waiting = 0
        optimizer.step()
        optimizer.zero_grad()


def skips_bad_batches(model: nn.Module, loader, local_rank: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        if not torch.isfinite(loss):
            continue
        optimizer.step()


def adversarial(generator: nn.Module, critic: nn.Module, loader, local_rank: int):
    critic = DDP(critic.to(local_rank), device_ids=[local_rank])
    generator = DDP(generator.to(local_rank), device_ids=[local_rank])
    critic_optimizer = torch.optim.Adam(critic.parameters())
    generator_optimizer = torch.optim.Adam(generator.parameters())
    for step, (real, noise) in enumerate(loader):
        critic_optimizer.zero_grad()
        (critic(generator(noise).detach()) - critic(real)).mean().backward()
        critic_optimizer.step()
        if step % 5 == 0:
            generator_optimizer.zero_grad()
            (-critic(generator(noise)).mean()).backward()
            generator_optimizer.step()
