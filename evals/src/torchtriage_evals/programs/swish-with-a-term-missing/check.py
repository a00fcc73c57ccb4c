"""Both gradients pass the numerical check, for one beta and for inputs of several shapes."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    for shape in ((5,), (2, 3), (2, 3, 2)):
        for start in (1.7, 0.3):
            x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
            beta = torch.tensor([start], dtype=torch.float64, requires_grad=True)
            assert torch.allclose(program.swish(x, beta), x * torch.sigmoid(beta * x)), "another activation"
            told = torch.autograd.gradcheck(program.swish, (x, beta), raise_exception=False)
            assert told, f"gradcheck fails for inputs of shape {shape}, beta {start}"
            torch.nn.functional.mse_loss(program.swish(x, beta), torch.zeros_like(x)).backward()
            assert beta.grad is not None, "beta gets no gradient"
            assert beta.grad.shape == beta.shape
