"""Faults that lie between a helper, a base class or a callable loss and the loop that uses them, and look-alikes."""

import abc

import torch
import torch.nn.functional as F
from torch import nn, optim


def stack(*sizes, last=nn.Identity):
    layers = []
    for at, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b), nn.ReLU() if at < len(sizes) - 2 else last()]
    return nn.Sequential(*layers)


class Agent:
    def __init__(self, size, actions):
        self.actor = stack(size, 64, actions, last=nn.Tanh)
        self.critic = stack(size + actions, 64, 1)
        self.actor_opt = optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_opt = optim.Adam(self.critic.parameters(), lr=1e-3)

    def value_loss(self, s, a, y):
        return F.mse_loss(self.critic(torch.cat([s, a], -1)).squeeze(-1), y)

    def policy_loss(self, s):
        return -self.critic(torch.cat([s, self.actor(s)], -1)).mean()

    def update(self, s, a, y):
        value = self.value_loss(s, a, y)
        gain = self.policy_loss(s)
        self.critic_opt.zero_grad()
        value.backward()
        self.critic_opt.step()
        self.actor_opt.zero_grad()
        gain.backward()  # expect: inplace-breaks-autograd
        self.actor_opt.step()
        return value.item(), gain.item()

    def update_in_turn(self, s, a, y):
        value = self.value_loss(s, a, y)
        self.critic_opt.zero_grad()
        value.backward()
        self.critic_opt.step()
        later = self.policy_loss(s)
        self.actor_opt.zero_grad()
        later.backward()
        self.actor_opt.step()


class Weighted:
    """A loss that is called as a function."""

    def __init__(self, share=0.5):
        self.share, self.inner = share, nn.BCEWithLogitsLoss()

    def __call__(self, raw, mask):
        overlap = (raw * mask).sum() / (raw + mask).sum()
        return self.share * self.inner(raw, mask) + (1 - self.share) * (1 - overlap)


class Lesions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(1, 8, 3, padding=1)
        self.head = nn.Sequential(nn.Conv2d(8, 1, 1), nn.Sigmoid())  # expect: softmax-before-cross-entropy
        self.objective = Weighted()

    def forward(self, scan):
        return self.head(self.body(scan).relu())

    def training_step(self, batch):
        return self.objective(self(batch["scan"]), batch["mask"])


@torch.no_grad()
def score(lm, ids, mask):  # used for the reference and for the policy alike
    taken = F.log_softmax(lm(ids[:, :-1]).float(), dim=-1).gather(-1, ids[:, 1:, None]).squeeze(-1)  # expect: loss-detached
    return (taken * mask[:, 1:]).sum(-1)


def margin(lm, batch):
    good = score(lm, batch["chosen"], batch["chosen_mask"])
    poor = score(lm, batch["rejected"], batch["rejected_mask"])
    return good - poor


def prefer(policy, ref, loader, *, beta=0.1):
    optimizer = optim.RMSprop(policy.parameters(), lr=5e-7)
    for batch in loader:
        h = margin(policy, batch) - margin(ref, batch)
        loss = -F.logsigmoid(beta * h).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Base(abc.ABC):
    bound = 1.0

    def __init__(self, net):
        self.net, self.optimizer = net, optim.AdamW(net.parameters())

    @abc.abstractmethod
    def apply(self): ...

    def fit(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            F.mse_loss(self.net(x), y).backward()  # expect: step-missing
            self.apply()


class OnlyClips(Base):
    def apply(self):
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), self.bound)
        print(f"{norm:.3f}")


def noise_scale(net, batches):
    """Only measures the gradients."""
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        print(nn.utils.clip_grad_norm_(net.parameters(), 1e9))


def one_of_two(state, x, y):
    for each in state["opts"].values():
        each.zero_grad()
    loss = F.mse_loss(state["adapter"](state["net"](x)), y)
    loss.backward()  # expect: step-missing
    state["opts"]["net"].step()
    return loss.item()


def adapt(loader):
    net, adapter = nn.Linear(4, 4), nn.Linear(4, 4)
    opts = {"net": optim.SGD(net.parameters(), lr=0.1), "adapter": optim.Adam(adapter.parameters())}
    state = {"net": net, "adapter": adapter, "opts": opts}
    for _ in range(9):
        seen = [one_of_two(state, x, y) for x, y in loader]
        print(sum(seen))


def calibrate(net, loader, scale=1.0):
    optimizer = optim.LBFGS([scale])
    for x, y in loader:
        with torch.no_grad():
            raw = net(x)
        loss = F.cross_entropy(raw * scale, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
