"""Clocks around device work, waiting and not waiting."""

import time
from time import perf_counter as clock

import torch
import torchvision
from torch import nn

from mylib import evaluate

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torchvision.models.resnet50().to(device)
batch = torch.randn(64, 3, 224, 224, device=device)


def latency(runs=50):
    model.eval()
    with torch.no_grad():
        for _ in range(10):
            model(batch)
        start = time.time()
        for _ in range(runs):
            output = model(batch)
        end = time.time()  # expect: timing-without-sync
    elapsed = end - start  # the second reading is above
    return elapsed / runs


def products(n):
    a = torch.randn(n, n, device="cuda")
    b = torch.randn(n, n).cuda()
    t0 = clock()
    c = a @ b
    print("took", clock() - t0)  # expect: timing-without-sync
    t0 = clock()
    torch.matmul(a, b)
    torch.cuda.synchronize()
    return clock() - t0


def by_step(loader: list, optimizer: torch.optim.Optimizer):
    net = nn.Linear(10, 10).cuda()
    end = time.time()
    for x, y in loader:
        net(x)
        print(time.time() - end)
        end = time.time()


def an_epoch(loader, optimizer: torch.optim.Optimizer):
    began = time.time()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return time.time() - began


def read_out():
    start = time.perf_counter()
    value = model(batch).mean().item()
    return value, time.perf_counter() - start


def brought_home():
    start = time.perf_counter()
    logits = model(batch).cpu()
    return logits, time.perf_counter() - start


def waited_by_helper():
    def wait():
        torch.cuda.synchronize()

    start = time.perf_counter()
    model(batch)
    wait()
    return time.perf_counter() - start


def out_of_sight():
    start = time.perf_counter()
    model(batch)
    evaluate(model)
    return time.perf_counter() - start


def on_the_host(net: nn.Module, x: torch.Tensor):
    host = nn.Linear(10, 10)
    start = time.perf_counter()
    host(x)
    return time.perf_counter() - start


def loading(path):
    start = time.perf_counter()
    state = torch.load(path)
    return state, time.perf_counter() - start


def tested_inside():
    start = time.perf_counter()
    out = model(batch)
    if torch.isinf(out).any():
        raise ValueError
    return time.perf_counter() - start


def asserted_inside():
    start = time.perf_counter()
    out = model(batch)
    assert (out < 1).all()
    return time.perf_counter() - start


def repeated_until_small():
    start = time.perf_counter()
    out = model(batch)
    while out.norm() > 1:
        out = model(out)
    return time.perf_counter() - start


def selected_by_a_mask():
    start = time.perf_counter()
    out = model(batch)
    kept = out[out > 0]
    return kept, time.perf_counter() - start


def formatted_inside():
    start = time.perf_counter()
    total = model(batch).sum()
    line = f"{total:.3f}"
    return line, time.perf_counter() - start


def copied_to_the_host(target=torch.device("cpu")):
    start = time.perf_counter()
    out = model(batch).to(target)
    return out, time.perf_counter() - start


def copied_into_a_buffer(buffer):
    start = time.perf_counter()
    buffer.copy_(model(batch))
    return time.perf_counter() - start


def scaled_step(optimizer):
    scaler = torch.amp.GradScaler("cuda")
    start = time.perf_counter()
    scaler.scale(model(batch).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return time.perf_counter() - start


def launch_against_total():
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(50):
        model(batch)
    launched = time.perf_counter() - start
    torch.cuda.synchronize()
    total = time.perf_counter() - start
    return launched, total


def decided_by_the_host(runs, verbose=False):
    start = time.perf_counter()
    for i in range(runs):
        out = model(batch.to(torch.float16))
        if i == 3 and verbose:
            out = model(out)
    return time.perf_counter() - start  # expect: timing-without-sync
