"""Hooks that are taken off again."""

import torch
import torchvision


def features(model, image):
    out = []
    handle = model.layer4.register_forward_hook(lambda module, args, output: out.append(output))
    with torch.no_grad():
        model(image)
    handle.remove()
    return out


def extract(images):
    net = torchvision.models.resnet18()
    handles = []
    for image in images:
        handles.append(net.layer1.register_forward_hook(print))
        net(image)
        handles.pop().remove()
    return [features(net, image) for image in images]
