"""Gradients that are checked on inputs from fixtures, helpers, attributes and options."""

import argparse
import unittest

import pytest
import torch
import torch.autograd as ag
from ext import LLTM
from fused import fused_rmsnorm
from loss import soft_dtw
from mylib.ops import deform_attn
from torch.autograd import gradcheck


@pytest.fixture
def inputs():
    torch.manual_seed(3)
    value = torch.rand(2, 30, 4, 8, requires_grad=True)
    loc = torch.rand(2, 10, 4, 2, dtype=torch.double)
    return value, loc


@pytest.mark.parametrize("impl", ["cpu", "cuda"])
def test_deform(inputs, impl):
    value, loc = inputs
    assert gradcheck(lambda v: deform_attn(v, loc, impl), value)  # expect: gradcheck-in-float32


class Cubic(ag.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x**2


def verify(fn, *shapes, device="cpu"):
    args = tuple(torch.randn(s, device=device, requires_grad=True) for s in shapes)
    ok = ag.gradcheck(fn, args, raise_exception=False)  # expect: gradcheck-in-float32
    print(fn, "ok" if ok else "WRONG")


verify(Cubic.apply, (4, 5))


class TestRMSNorm(unittest.TestCase):
    dtype = torch.float32

    def setUp(self):
        kw = dict(dtype=self.dtype, device="cuda")
        self.x = torch.randn(4, 16, **kw).requires_grad_()
        self.w = torch.ones(16, **kw).requires_grad_()

    def test_grad(self):
        self.assertTrue(torch.autograd.gradcheck(fused_rmsnorm, (self.x, self.w)))  # expect: gradcheck-in-float32


parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=3)
parser.add_argument("-f", "--features", type=int, default=17)
options = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
kwargs = {"dtype": torch.float32, "device": device, "requires_grad": True}

X = torch.randn(options.batch_size, options.features, **kwargs)
h = torch.randn(options.batch_size, 5, **kwargs)
W = torch.randn(15, 22, **kwargs)
variables = [X, W, h]
if gradcheck(LLTM.apply, variables):  # expect: gradcheck-in-float32
    print("Ok")


def random_series(b, t, d):
    return torch.randn(b, t, d)


class GradChecks:
    def __init__(self, b=2, t=5, d=3):
        self.a = random_series(b, t, d).requires_grad_()
        self.b = random_series(b, t, d)

    def run(self):
        inputs = (self.a, self.b)
        return gradcheck(soft_dtw, inputs, eps=1e-6, atol=1e-4)  # expect: gradcheck-in-float32


GradChecks().run()
