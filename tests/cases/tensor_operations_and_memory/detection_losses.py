"""The losses of a detector, from its own dict, kept under their names."""

import torch
from torchvision.models.detection import fasterrcnn_resnet50_fpn


def train(loader, device, epochs):
    detector = fasterrcnn_resnet50_fpn(num_classes=5).to(device)
    sgd = torch.optim.SGD([p for p in detector.parameters() if p.requires_grad], lr=5e-3)
    for epoch in range(epochs):
        detector.train()
        log = {}
        for images, targets in loader:
            images = [i.to(device) for i in images]
            targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
            loss_dict = detector(images, targets)
            losses = sum(loss for loss in loss_dict.values())
            sgd.zero_grad()
            losses.backward()
            sgd.step()
            for name, value in loss_dict.items():
                log.setdefault(name, []).append(value)  # expect: graph-retained
        print(epoch, {k: sum(map(float, v)) / len(v) for k, v in log.items()})
