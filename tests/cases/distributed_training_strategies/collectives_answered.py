"""Collectives behind a test of the rank that the other ranks answer, or need not."""

import torch
import torch.distributed as dist
from contextlib import contextmanager

from mylib.comm import serve_workers


@contextmanager
def first_rank_first(local_rank: int):
    if local_rank not in [-1, 0]:
        dist.barrier()
    yield
    if local_rank == 0:
        dist.barrier()


def broadcast_from_main(weights: torch.Tensor, rank: int):
    if rank == 0:
        weights = weights * 2
        dist.broadcast(weights, src=0)
    else:
        weights = torch.empty_like(weights)
        dist.broadcast(weights, src=0)
    return weights


def gather_on_main(row: torch.Tensor, rank: int, size: int):
    if rank == 0:
        rows = [torch.zeros_like(row) for _ in range(size)]
        dist.gather(row, gather_list=rows, dst=0)
        return torch.stack(rows)
    dist.gather(row, dst=0)
    return None


def in_a_group(loss: torch.Tensor, rank: int, half: dist.ProcessGroup):
    if rank < 4:
        dist.all_reduce(loss, group=half)
    if rank == 0:
        dist.all_reduce(loss, dist.ReduceOp.SUM, half)
    return loss


def when_distributed(loss: torch.Tensor, args):
    if args.local_rank != -1:
        dist.all_reduce(loss)
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return loss
    dist.all_reduce(loss)
    return loss


def answered_out_of_sight(rank: int):
    if rank == 0:
        objects = [{"step": 0}]
        dist.broadcast_object_list(objects, src=0)
    else:
        serve_workers()


def between_two(tensor: torch.Tensor, rank: int):
    if rank == 0:
        dist.send(tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor, src=0)
    dist.barrier()


def all_then_one_prints(loss: torch.Tensor, rank: int):
    dist.reduce(loss, dst=0)
    if rank == 0:
        print(loss.item() / dist.get_world_size())
    dist.barrier()


def switched_on_for_all(loss: torch.Tensor, args, rank: int):
    if args.log_rank_mean and not args.quiet:
        dist.all_reduce(loss)
    if not args.all_ranks_log and rank != 0:
        return
    dist.barrier()


def send_state(rank: int, state: dict):
    if rank == 0:
        share(state)
    else:
        share(None)


def share(state):
    box = [state]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def one_after_the_other(rank: int, size: int, read):
    for turn in range(size):
        if turn == rank:
            read()
            dist.barrier()


def in_turn(rank: int, size: int, read):
    for turn in range(size):
        if rank == turn:
            read()
        dist.barrier()
