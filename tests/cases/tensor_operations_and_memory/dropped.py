"""Results that are thrown away, and statements that do work in place."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, dataset, device, epochs: int):
    model.to(device)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for images, labels in loader:
            images.to(device)  # expect: result-dropped
            if torch.cuda.is_available():
                labels.cuda(non_blocking=True)  # expect: result-dropped
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            loss.detach()  # expect: result-dropped
            print(loss)  # expect: printed-every-step


def train_right(model: nn.Module, dataset, device):
    model = model.half()
    model.to(device)
    model.float()
    loader = DataLoader(dataset, batch_size=32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        images.clamp_(0, 1)
        loss.detach_()
        print(loss, images.mean())  # expect: sync-bound


class Style(nn.Module):
    def __init__(self, image: torch.Tensor, net: nn.Module):
        super().__init__()
        self.image = nn.Parameter(image.clone())
        self.net = net
        self.net.to("cuda")

    def project(self, low: torch.Tensor, high: torch.Tensor):
        torch.clamp(low, 0.0, 1.0)  # expect: result-dropped
        torch.clamp(high, 0.0, 1.0, out=high)
        return low + high

    def scaled(self, x: torch.Tensor, mask: torch.Tensor):
        scores = x @ x.transpose(-2, -1)
        scores.masked_fill(mask, float("-inf"))  # expect: result-dropped
        return scores.softmax(dim=-1)


def resume(optimizer: torch.optim.Optimizer, path):
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    for state in optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                value.cuda()  # expect: result-dropped
                print(key, value.device)


def resume_right(optimizer: torch.optim.Optimizer, path):
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    for state in optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                state[key] = value.cuda()


def by_key(model: nn.Module, train_loader, device):
    for batch in train_loader:
        batch["image"].to(device)  # expect: result-dropped
        batch["label"] = batch["label"].to(device)
        print(model(batch["image"]), batch["label"])


def a_batch_may_move_itself(model: nn.Module, train_loader, device):
    for batch in train_loader:
        batch.to(device)
        print(model(**batch).loss)


def the_copy_is_timed(size: int):
    block = torch.ones(size)
    start = time.perf_counter()
    block.cuda()
    torch.cuda.synchronize()
    print(time.perf_counter() - start, block.numel())


def it_is_tried_whether_it_works(x: torch.Tensor):
    try:
        x.to("cuda")
    except RuntimeError:
        return x
    return x.to("cuda")


def the_device_is_woken():
    torch.zeros(1).cuda()
    torch.cuda.init()


def unknown_things(thing, hook, process):
    thing.to("cuda")
    hook.detach()
    process.float()
    return thing, hook, process


def the_last_use(x: torch.Tensor):
    y = x + 1
    y.to("cuda")


def a_step_outside_of_the_graph(weight: torch.Tensor, lr: float):
    weight.requires_grad_(True)
    loss = (weight**2).sum()
    loss.backward()
    weight.data.add_(weight.grad, alpha=-lr)
    F.relu(weight, inplace=True)
    return weight


def networks_move_themselves(build_model, cuda: bool, loader, reward):
    generator = Generator(8)
    critic = build_model(8)
    if cuda:
        generator.cuda()
        critic.cuda()
    for images, _ in loader:
        print(critic(generator(images)), reward)


class Generator(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.body = nn.Linear(width, width)

    def forward(self, x):
        x.view(x.size(0), -1)  # expect: result-dropped
        return self.body(x)


class Segmentation:
    """Batches go through a method of their own."""

    def __init__(self, net: nn.Module, loader, device):
        self.net, self.loader, self.device = net.to(device), loader, device
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, batch):
        image, mask = batch
        image.to(self.device)  # expect: result-dropped
        mask = mask.to(self.device)
        logits = self.net(image)
        logits.clamp(-30, 30)  # expect: result-dropped
        self.optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(logits, mask).backward()
        self.optimizer.step()

    def fit(self):
        for batch in self.loader:
            self.step(batch)


def wasserstein(critic: nn.Module, loader, optimizer: torch.optim.Optimizer, bound: float):
    for real, fake in loader:
        optimizer.zero_grad()
        (critic(fake).mean() - critic(real).mean()).backward()
        optimizer.step()
        for weight in critic.parameters():
            weight.data.clamp(-bound, bound)  # expect: result-dropped


def wasserstein_right(critic: nn.Module, loader, optimizer: torch.optim.Optimizer, bound: float):
    for real, fake in loader:
        optimizer.zero_grad()
        (critic(fake).mean() - critic(real).mean()).backward()
        optimizer.step()
        with torch.no_grad():
            for weight in critic.parameters():
                weight.clamp_(-bound, bound)


class Attention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        if mask is not None:
            scores.masked_fill(mask == 0, -1e9)  # expect: result-dropped
        return scores.softmax(-1) @ v


class Pipeline:
    """Its parts are registered elsewhere: nothing here tells that one is a tensor."""

    def decode(self, latents: torch.Tensor):
        self.vae.to(dtype=torch.float32)
        if latents.dtype != self.vae.dtype:
            self.vae = self.vae.to(latents.dtype)
        return self.vae.decode(latents)
