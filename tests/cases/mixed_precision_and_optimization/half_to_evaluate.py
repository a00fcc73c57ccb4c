"""A float16 copy for the evaluation that ends the program."""

import argparse
import torch
from torch import nn
import torchvision
from helpers import freeze, evaluate, make_loader


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--test-only", action="store_true")
    args = ap.parse_args()
    model = torchvision.models.resnet18().cuda()
    if args.test_only:
        model.half()
        evaluate(model)
        return
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in make_loader():
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
    model.half()
    torch.save(model.state_dict(), "half.pt")


main()
