"""Results of non-blocking copies, read on the host without a wait."""

import numpy as np
import torch


@torch.no_grad()
def evaluate(model, loader):
    model.eval().cuda()
    scores, total = [], 0.0
    for images, labels in loader:
        outputs = model(images.cuda(non_blocking=True))
        probabilities = outputs.softmax(dim=-1).to("cpu", non_blocking=True)
        scores.append(np.mean(probabilities.numpy()))  # expect: non-blocking-race
        total += outputs.max().to("cpu", non_blocking=True).item()  # expect: non-blocking-race
    return scores, total


def best_of(values, names):
    on_host = values.to(device="cpu", non_blocking=True)
    order = names[:3]
    if on_host[0] > 0.5:  # expect: non-blocking-race
        return order
    return names


def save(model, path):
    state = {name: value.to("cpu", non_blocking=True) for name, value in model.state_dict().items()}
    torch.save({"model": state}, path)  # expect: non-blocking-race


def logged(loss, writer, step):
    value = loss.detach().to(torch.device("cpu"), non_blocking=True)
    print(f"step {step}: {value}")  # expect: non-blocking-race
    writer.add_scalar("loss", value, step)
