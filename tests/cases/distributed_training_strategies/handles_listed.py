"""Handles in lists."""

import torch.distributed as dist


def dropped(parameters):
    handles = []
    for each in parameters:
        handles.append(dist.all_reduce(each.grad, async_op=True))  # expect: handle-not-waited
    for each in parameters:
        each.grad /= dist.get_world_size()


def listed(parameters):
    works = [dist.all_reduce(each.grad, async_op=True) for each in parameters]  # expect: handle-not-waited
    for each in parameters:
        each.grad /= dist.get_world_size()


def waited(parameters):
    handles = []
    for each in parameters:
        handles.append(dist.all_reduce(each.grad, async_op=True))
    for handle in handles:
        handle.wait()


def given(parameters):
    works = [dist.all_reduce(each.grad, async_op=True) for each in parameters]
    return works


def put(parameters, handles):
    for each in parameters:
        handles.append(dist.all_reduce(each.grad, async_op=True))
