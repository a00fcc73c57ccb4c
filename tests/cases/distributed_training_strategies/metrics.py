"""Figures of one rank's share, returned as if they were those of all."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm


def build_loader(dataset, batch_size: int):
    sampler = DistributedSampler(dataset, shuffle=False)
    return DataLoader(dataset, batch_size, sampler=sampler)


@torch.no_grad()
def validate(model: nn.Module, loader, device):
    model.eval()
    correct, total = 0, 0
    for images, labels in loader:
        outputs = model(images.to(device))
        correct += (outputs.argmax(1).cpu() == labels).sum().item()  # expect: metrics-not-reduced
        total += labels.size(0)
    return correct / total


class Evaluator:
    def __init__(self, dataset, model: nn.Module):
        self.model = model
        self.loader = build_loader(dataset, 64)

    def loss(self):
        self.model.eval()
        summed = 0.0
        with torch.no_grad():
            for images, labels in tqdm(self.loader):
                summed += nn.functional.cross_entropy(self.model(images), labels).item()  # expect: metrics-not-reduced
        return summed / len(self.loader)


@torch.no_grad()
def on_the_whole_set(model: nn.Module, dataset):
    model.eval()
    correct = 0
    for images, labels in DataLoader(dataset, 64):
        correct += (model(images).argmax(1) == labels).sum().item()
    return correct / len(dataset)


@torch.no_grad()
def first_outputs(model: nn.Module, dataset):
    model.eval()
    for images, _ in build_loader(dataset, 64):
        return model(images)
    return None


def main(model: nn.Module, dataset, device):
    dist.init_process_group("nccl")
    accuracy = validate(model, build_loader(dataset, 64), device)
    if dist.get_rank() == 0:
        print(f"accuracy {accuracy:.4f}")


def accuracy_in_percent(model: nn.Module, dataset, device):
    loader = build_loader(dataset, 64)
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images.to(device)).argmax(1).cpu() == labels).sum().item()  # expect: metrics-not-reduced
            seen += len(labels)
    accuracy = right / seen * 100
    print(f"{accuracy:.1f} %")
    return accuracy


@torch.no_grad()
def throughput(model: nn.Module, dataset, seconds: float):
    model.eval()
    rows = 0
    for images, _ in build_loader(dataset, 64):
        model(images)
        rows += 1
    return rows
