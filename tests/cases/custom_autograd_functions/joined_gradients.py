"""The gradients of another function are added to None for what is no tensor; a function in backward returns one."""

import torch
import torch.distributed as dist


class Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, source, group, *parts):
        ctx.source = source
        ctx.group = group
        output = torch.zeros_like(parts[0])
        dist.scatter(output, list(parts), source, group=group)
        return output

    @staticmethod
    def backward(ctx, grad):
        return (None, None) + Join.apply(ctx.source, ctx.group, grad)


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, target, group, part):
        ctx.target = target
        ctx.group = group
        parts = [torch.zeros_like(part) for _ in range(dist.get_world_size(group))]
        dist.gather(part, parts, target, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        def own(values):
            return values[dist.get_rank(ctx.group)]

        return None, None, own(grads)
