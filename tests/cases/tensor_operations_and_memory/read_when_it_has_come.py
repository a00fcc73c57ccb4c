"""Results of non-blocking copies that are waited for, or that something out of sight may wait for."""

import numpy as np
import torch


@torch.no_grad()
def evaluate(model, loader):
    model.eval().cuda()
    scores, waiting, copied = [], [], torch.cuda.Event()
    for images, labels in loader:
        outputs = model(images.cuda(non_blocking=True))
        probabilities = outputs.softmax(dim=-1).to("cpu", non_blocking=True)
        largest = outputs.max().to("cpu", non_blocking=True)
        copied.record()
        copied.synchronize()
        scores.append(np.mean(probabilities.numpy()))
        waiting.append(largest.item())
    return scores, waiting


def collected(batches):
    """All copies are started, and waited for once."""
    views = [batch.to("cpu", non_blocking=True).numpy() for batch in batches]
    torch.cuda.synchronize()
    return np.concatenate(views)


def shown(values):
    on_host = values.to("cpu", non_blocking=True).numpy()
    torch.cuda.current_stream().synchronize()
    return on_host.mean()


def offloaded(module, stream):
    """Waited for by whoever fetches it back."""
    with torch.cuda.stream(stream):
        return [each.data.to("cpu", non_blocking=True) for each in module.parameters()]


def bounded(values, limit):
    on_host = values.to("cpu", non_blocking=True)
    if limit > values.sum().item():  # waits for all that was queued
        return on_host.tolist()
    return []


def finished(values, done):
    on_host = values.to("cpu", non_blocking=True)
    done(values)  # may wait
    return on_host.tolist()


def moved(batch, device):
    """Where to, nobody knows."""
    batch = batch.to(device, non_blocking=True)
    return float(batch[0])


def blocked(values):
    return values.to("cpu", non_blocking=False).numpy().mean()


def shape_of(values):
    on_host = values.to("cpu", non_blocking=True)
    print(on_host.shape, on_host.dtype)
    return on_host


def converted(values):
    """Nothing of the result is read here."""
    on_host = values.to("cpu", non_blocking=True)
    array = on_host.numpy()
    torch.cuda.synchronize()
    return array.sum()


def given_another_value(values, default):
    on_host = values.to("cpu", non_blocking=True)
    on_host = default
    return float(on_host)


def saved(model, path):
    state = {name: value.to("cpu", non_blocking=True) for name, value in model.state_dict().items()}
    torch.cuda.synchronize()
    torch.save({"model": state}, path)


def flattened(values):
    flat = values.to("cpu", non_blocking=True).numpy().reshape(-1)
    torch.cuda.synchronize()
    return flat.sum()


def ordered(batches):
    copies = [batch.to("cpu", non_blocking=True) for batch in batches]
    ordered = tuple(copies)
    torch.cuda.synchronize()
    return ordered
