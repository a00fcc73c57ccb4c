"""Losses that the model is cut off from, and those that only look so."""

import torch
import torch.nn.functional as F
from torch import nn


def classify(loader, epochs):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    model.train()
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            logits = model(images)
            predicted = logits.argmax(dim=1).float()  # expect: no-gradient-by-design
            loss = criterion(predicted, labels.float())
            loss.backward()
            optimizer.step()


class CountTrainer:
    def __init__(self, net: nn.Module, loader, lr: float):
        self.net = net
        self.loader = loader
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)

    def fit(self):
        self.net.train()
        for features, counts in self.loader:
            self.optimizer.zero_grad()
            predicted = torch.round(self.net(features)).squeeze(-1)  # expect: no-gradient-by-design
            loss = F.smooth_l1_loss(predicted, counts)
            loss.backward()
            self.optimizer.step()


def segment(model: nn.Module, loader, optimizer, scaler, accumulation: int):
    bce = nn.BCELoss()
    for step, (images, masks) in enumerate(loader):
        with torch.autocast("cuda"):
            probabilities = torch.sigmoid(model(images))
            mask = (probabilities > 0.5).float()  # expect: no-gradient-by-design
            loss = bce(mask, masks) / accumulation  # expect: bce-under-autocast
        scaler.scale(loss).backward()
        if (step + 1) % accumulation == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def by_hand(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        _, label = torch.max(model(inputs), 1)  # expect: no-gradient-by-design
        loss = ((label - targets).float() ** 2).mean()
        loss.backward()
        optimizer.step()


def accuracy_beside_the_loss(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        logits = model(inputs)
        loss = F.cross_entropy(logits, targets)
        hits = (logits.argmax(1) == targets).float().mean()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.3f} {hits.item():.3f}")


def straight_through(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        rounded = outputs + (outputs.round() - outputs).detach()
        loss = F.mse_loss(rounded, targets)
        loss.backward()
        optimizer.step()


def pseudo_labels(model: nn.Module, loader, optimizer):
    for inputs in loader:
        optimizer.zero_grad()
        logits = model(inputs)
        labels = logits.argmax(dim=1)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()


def q_learning(policy: nn.Module, target: nn.Module, memory, optimizer, gamma):
    for states, rewards, following in memory:
        optimizer.zero_grad()
        values = policy(states)
        actions = values.argmax(dim=1, keepdim=True)
        best, _ = target(following).max(1)
        loss = F.smooth_l1_loss(values.gather(1, actions).squeeze(1), rewards + gamma * best)
        loss.backward()
        optimizer.step()


def hinge(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        scores = model(inputs)
        wrong = (scores * targets < 1).float()
        loss = (wrong * (1 - scores * targets)).mean()
        loss.backward()
        optimizer.step()


def two_terms(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = F.mse_loss(outputs, targets) + 0.1 * F.l1_loss(outputs.round(), targets)  # expect: no-gradient-by-design
        loss.backward()
        optimizer.step()


def rounded_targets(model: nn.Module, loader, optimizer):
    criterion = nn.L1Loss()
    for inputs, targets in loader:
        optimizer.zero_grad()
        goal = targets.round()
        loss = criterion(model(inputs), goal)
        loss.backward()
        optimizer.step()


def learned_rounding(model: nn.Module, quantiser, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = quantiser.round(model(inputs))
        loss = F.mse_loss(quantiser(outputs), targets)
        loss.backward()
        optimizer.step()


class HardDiceLoss(nn.Module):
    def __init__(self, smooth: float = 1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        mask = (torch.sigmoid(logits) > 0.5).float()  # expect: no-gradient-by-design
        overlap = (mask * target).sum()
        return 1 - (2 * overlap + self.smooth) / (mask.sum() + target.sum() + self.smooth)


class SoftDiceLoss(nn.Module):
    def __init__(self, smooth: float = 1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        probability = torch.sigmoid(logits)
        hard = (probability > 0.5).float()
        overlap = (probability * target).sum()
        self.last_hits = (hard * target).sum().item()
        return 1 - (2 * overlap + self.smooth) / (probability.sum() + target.sum() + self.smooth)


def segment_with_dice(unet: nn.Module, loader, optimizer):
    unet.train()
    criterion = HardDiceLoss()
    for images, masks in loader:
        optimizer.zero_grad()
        loss = criterion(unet(images), masks)
        loss.backward()
        optimizer.step()


def segment_with_soft_dice(unet: nn.Module, loader, optimizer):
    unet.train()
    criterion = SoftDiceLoss()
    for images, masks in loader:
        optimizer.zero_grad()
        loss = criterion(unet(images), masks)
        loss.backward()
        optimizer.step()


def sign_loss(output, target):
    return (torch.sign(output) - target).abs().mean()  # expect: no-gradient-by-design


def train_signs(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        output = model(inputs)
        loss = sign_loss(output, targets)
        loss.backward()
        optimizer.step()


def gather_in_a_list(model: nn.Module, loader, optimizer):
    for windows, targets in loader:
        optimizer.zero_grad()
        outputs, hidden = [], None
        for window in windows:
            output, hidden = model(window, hidden)
            outputs.append(output)
        rounded = torch.stack(outputs).round()
        loss = 0.0
        for own, target in zip(outputs, targets, strict=True):
            loss += F.mse_loss(own, target)
        loss = loss / len(targets)
        loss.backward()
        optimizer.step()
        print(rounded.mean().item())


def policy_gradient(policy: nn.Module, env, optimizer):
    state = env.reset()
    for _ in range(100):
        logits = policy(state)
        distribution = torch.distributions.Categorical(logits=logits)
        action = logits.argmax()
        state, reward, done = env.step(action)
        loss = -distribution.log_prob(action) * reward
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def hard_mining(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        each = F.cross_entropy(model(inputs), targets, reduction="none")
        keep = each > each.median()
        loss = each[keep].mean()
        loss.backward()
        optimizer.step()


class Quantiser(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def with_its_own_gradient(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(Quantiser.apply(model(inputs)), targets)
        loss.backward()
        optimizer.step()
