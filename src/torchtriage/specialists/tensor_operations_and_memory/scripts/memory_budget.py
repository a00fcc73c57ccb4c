"""What will fill the memory: parameters, gradients, optimizer states, and the activations of a batch, on a CPU.

Runs one forward pass on two batch sizes and adds up what autograd saves for backward, each storage once. Prints one
line for each term with its MiB, which of them is largest, and the largest batch that fits a device of --gib. Not in
it: the workspaces of kernels, fragmentation, CUDA's context. Copy `saved_bytes` to measure a part of a model.

    python memory_budget.py --model mypackage.models:build --shape 3,224,224 --batch 64 --gib 40
    python memory_budget.py --model gpt:build --shape 1024 --vocabulary 50257 --optimizer adam
"""

from __future__ import annotations

import argparse
from importlib import import_module

import torch
from torch import nn

NUMBERS = {"adam": 2, "momentum": 1, "sgd": 0}  # of optimizer state for each parameter
GIB = 2**30


def demo() -> nn.Module:
    """A stand-in for your model: takes (batch, 256)."""
    return nn.Sequential(*(part for _ in range(8) for part in (nn.Linear(256, 256), nn.GELU())))


def saved_bytes(model: nn.Module, inputs: torch.Tensor) -> int:
    """Bytes that a forward pass of MODEL over INPUTS keeps for backward, without the parameters themselves."""
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}
    held: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        held.setdefault(storage.data_ptr(), storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(inputs)
    total = sum(int(storage.nbytes()) for place, storage in held.items() if place not in own)
    del output
    return total


def inputs(batch: int, shape: list[int], vocabulary: int) -> torch.Tensor:
    size = [batch, *shape]
    return torch.randint(vocabulary, size) if vocabulary else torch.randn(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="MODULE:CALLABLE that builds the model (default: a small demo)")
    parser.add_argument("--shape", default="256", help="shape of one sample, such as 3,224,224")
    parser.add_argument("--vocabulary", type=int, default=0, help="the input is token ids below this number")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--optimizer", choices=sorted(NUMBERS), default="adam")
    parser.add_argument("--gib", type=float, default=24.0, help="memory of the device")
    given = parser.parse_args()

    name, _, attribute = given.model.partition(":")
    model = getattr(import_module(name), attribute)() if given.model else demo()
    shape = [int(each) for each in given.shape.split(",")]
    parameters = sum(each.nbytes for each in model.parameters())
    trained = sum(each.nbytes for each in model.parameters() if each.requires_grad)
    one, two = (saved_bytes(model, inputs(size, shape, given.vocabulary)) for size in (2, 4))
    sample, fixed = (two - one) / 2, max(one - (two - one), 0)
    terms = {
        "parameters": parameters,
        "gradients": trained,
        "optimizer states": NUMBERS[given.optimizer] * trained,
        "activations": fixed + sample * given.batch,
    }
    for term, size in terms.items():
        print(f"{term:17} {size / 2**20:12,.2f} MiB")
    largest = max(terms, key=lambda term: terms[term])
    print(f"largest: {largest}; {sample / 2**20:.2f} MiB of activations for each sample")
    room = given.gib * GIB - sum(terms.values()) + sample * given.batch
    print(f"largest batch in {given.gib:g} GiB, before workspaces: {max(int(room // max(sample, 1)), 0)}")


if __name__ == "__main__":
    main()
