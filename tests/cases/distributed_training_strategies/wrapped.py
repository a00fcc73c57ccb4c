"""Uses of the inner module that leave the reduction alone."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def teacher_is_bare(student: nn.Module, teacher: nn.Module, loader, local_rank: int):
    student = DDP(student.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(student.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = student(inputs)
        penalty = student.module.penalty()
        with torch.no_grad():
            wanted = teacher(inputs)
        loss = nn.functional.cross_entropy(outputs, targets) + nn.functional.mse_loss(outputs, wanted) + penalty
        loss.backward()
        optimizer.step()


def evaluated_bare(model: nn.Module, loader, held_out, local_rank: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            with torch.no_grad():
                print(model.module(held_out).mean())
    torch.onnx.export(model.module, held_out, "model.onnx")


class Shell(nn.Module):
    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, inputs):
        return self.module(inputs)


def not_a_wrapper(model: nn.Module, loader):
    shell = Shell(model)
    optimizer = torch.optim.AdamW(shell.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(shell.module(inputs), targets).backward()
        optimizer.step()


def distilled_from_itself(model: nn.Module, loader, local_rank: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    frozen = model.module
    for inputs, _ in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            wanted = frozen(inputs)
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
