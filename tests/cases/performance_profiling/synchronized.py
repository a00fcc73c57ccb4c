"""Steps that wait for everything, those that measure by it, and several figures that are one."""

import time

import torch
import torch.nn.functional as F
from torch import nn


def in_every_step(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    began = time.time()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
        torch.cuda.synchronize()  # expect: sync-bound
    print("epoch took", time.time() - began)


def beside_a_clock(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        began = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
        torch.cuda.synchronize()
        print("step took", time.perf_counter() - began)


class Phases:
    def __init__(self, net):
        self.net = net.to("cuda")
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.spent = [0.0, 0.0]

    def now(self):
        torch.cuda.synchronize()
        return time.perf_counter()

    def run(self, loader):
        for x, y in loader:
            start = self.now()
            loss = F.cross_entropy(self.net(x.cuda()), y.cuda())
            middle = self.now()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.spent[0] += middle - start
            self.spent[1] += self.now() - middle


def wait():
    torch.cuda.synchronize()  # expect: sync-bound


def by_a_helper(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
        wait()


def now_and_then(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
        if step % 100 == 0:
            torch.cuda.synchronize()


def for_its_memory(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    peaks = []
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
        torch.cuda.synchronize()
        peaks.append(torch.cuda.max_memory_allocated())


def one_number_added_and_shown(loader, bar):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach().cpu().item() * len(x)
        bar.set_postfix(loss=loss.item())  # expect: printed-every-step


def two_losses_under_one_name(loader, generator):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    first = second = 0.0
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first += loss.item()  # expect: sync-bound
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        second += loss.item()


def two_values_in_one_line(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        logits = net(x.cuda())
        loss = F.cross_entropy(logits, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss, logits.max())  # expect: sync-bound
