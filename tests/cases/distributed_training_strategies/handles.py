"""Asynchronous transfers, waited for and not."""

import torch
import torch.distributed as dist


def ring(block: torch.Tensor, rank: int, size: int):
    dist.isend(block, dst=(rank + 1) % size)  # expect: handle-not-waited
    received = torch.empty_like(block)
    dist.recv(received, src=(rank - 1) % size)
    return received


def overlapped(grads: list[torch.Tensor]):
    for grad in grads:
        work = dist.all_reduce(grad, async_op=True)  # expect: handle-not-waited
        grad.div_(dist.get_world_size())
    return grads


def exchange(left: torch.Tensor, right: torch.Tensor, peer: int):
    ops = [dist.P2POp(dist.isend, left, peer), dist.P2POp(dist.irecv, right, peer)]
    dist.batch_isend_irecv(ops)  # expect: handle-not-waited
    return right.sum()


def waited(block: torch.Tensor, rank: int, size: int):
    sending = dist.isend(block, dst=(rank + 1) % size)
    received = torch.empty_like(block)
    receiving = dist.irecv(received, src=(rank - 1) % size)
    for work in (sending, receiving):
        work.wait()
    return received


def waited_at_once(grad: torch.Tensor):
    dist.all_reduce(grad, async_op=True).wait()
    return grad


def collected(grads: list[torch.Tensor]):
    works = [dist.all_reduce(grad, async_op=True) for grad in grads]
    for work in works:
        work.wait()


def communication_hook(state, bucket):
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


def handed_back(grad: torch.Tensor):
    return dist.all_reduce(grad, async_op=True)


class Reducer:
    def __init__(self):
        self.pending = []
        self.last = None

    def start(self, grad: torch.Tensor):
        self.pending.append(dist.all_reduce(grad, async_op=True))
        self.last = dist.isend(grad, dst=0)

    def synchronous(self, grad: torch.Tensor, overlap: bool):
        dist.all_reduce(grad, async_op=False)
        work = dist.all_reduce(grad, async_op=overlap)
        if work is not None:
            work.wait()
