"""Checks one torch.autograd.Function numerically and prints a line for each check: ok, or FAILS and why.

Checked on small float64 inputs: the gradient (gradcheck), with transposed inputs and with each input alone, the second
derivative, whether forward changes its inputs unmarked, whether backward changes the gradient that it is given, whether
the output outlives backward, whether it runs under autocast and, with --reference, values and gradients against a
composed function of the same file. Without --file it checks an example of its own. Ends with 1 if one of yours fails.

    python check_function.py --file ops.py --name Swish --shapes 3x4 1 --reference swish
"""

# pyright: reportIncompatibleMethodOverride=false

import argparse
import gc
import runpy
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck

Tensors = tuple[torch.Tensor, ...]


class Swish(torch.autograd.Function):  # type: ignore[misc]
    """x · sigmoid(beta · x), the example: setup_context keeps forward free of ctx, as torch.func wants it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tensors, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, beta = ctx.saved_tensors
        gate = torch.sigmoid(beta * x)
        slope = gate * (1 - gate)
        grad_x = grad_output * (gate + beta * x * slope) if ctx.needs_input_grad[0] else None
        grad_beta = (grad_output * x * x * slope).sum_to_size(beta.shape) if ctx.needs_input_grad[1] else None
        return grad_x, grad_beta


def swish(x: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(beta * x)


class Subject:
    """A function under check, called with copies of its inputs (it may work in place) and the constants behind them."""

    def __init__(
        self, apply: Callable[..., torch.Tensor], shapes: list[tuple[int, ...]], constants: list[float]
    ) -> None:
        self.apply, self.shapes, self.constants = apply, shapes, constants

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.apply(*(each.clone() for each in inputs), *self.constants)

    def inputs(self, dtype: torch.dtype = torch.float64) -> Tensors:
        torch.manual_seed(0)
        return tuple(torch.randn(each, dtype=dtype, requires_grad=True) for each in self.shapes)

    def transposed(self) -> Tensors:
        """The same shapes with strides the other way round, which clone() keeps."""
        torch.manual_seed(0)
        turned = (torch.randn(each[::-1], dtype=torch.float64) for each in self.shapes)
        return tuple(each.permute(*reversed(range(each.dim()))).requires_grad_() for each in turned)


def each_alone(subject: Subject) -> None:
    for needed in range(len(subject.shapes)):
        inputs = tuple(each.requires_grad_(place == needed) for place, each in enumerate(subject.inputs()))
        gradcheck(subject, inputs)


def second_derivative(subject: Subject) -> None:
    if not refuses(subject):
        gradgradcheck(subject, subject.inputs())


def refuses(subject: Subject) -> bool:
    """Whether a second derivative ends in once_differentiable's error; gradgradcheck passes that by and sees zeros."""
    inputs = subject.inputs()
    loss = subject(*inputs).square().sum()
    gradients = torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
    try:
        torch.stack([each.sum() for each in gradients if each is not None]).sum().backward()
    except RuntimeError as error:
        return "once_differentiable" in str(error)
    return False


def inputs_unchanged(subject: Subject) -> None:
    given = tuple(each.clone() for each in subject.inputs())
    before = [each._version for each in given]
    output = subject.apply(*given, *subject.constants)
    changed = [place for place, each in enumerate(given) if each._version != before[place]]
    unmarked = [place for place in changed if given[place].grad_fn is not output.grad_fn]
    if unmarked:
        raise ValueError(f"forward changes input {unmarked[0]} in place without mark_dirty")


def gradient_unchanged(subject: Subject) -> None:
    output = subject(*(inputs := subject.inputs()))
    given = torch.randn_like(output)
    before = given.clone()
    torch.autograd.grad(output, inputs, given, allow_unused=True)
    if not torch.equal(given, before):
        raise ValueError("backward changes grad_output in place")


def nothing_outlives(subject: Subject) -> None:
    gc.disable()
    try:
        output = subject(*subject.inputs())
        output.sum().backward()
        watched = weakref.ref(output)
        del output
        if watched() is not None:
            raise ValueError("the output is held after backward: a tensor as an attribute of ctx")
    finally:
        gc.enable()


def under_autocast(subject: Subject) -> None:
    inputs = subject.inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = subject(*inputs).float().sum()
    loss.backward()


CHECKS: dict[str, Callable[[Subject], object]] = {
    "gradient": lambda subject: gradcheck(subject, subject.inputs()),
    "gradient, transposed inputs": lambda subject: gradcheck(subject, subject.transposed()),
    "gradient, each input alone": each_alone,
    "second derivative, or its refusal": second_derivative,
    "inputs left as they are": inputs_unchanged,
    "grad_output left as it is": gradient_unchanged,
    "nothing held after backward": nothing_outlives,
    "autocast to bfloat16": under_autocast,
}


def as_reference(subject: Subject, reference: Callable[..., torch.Tensor]) -> None:
    """Values and gradients of both, in float64."""
    inputs = subject.inputs()
    ours, theirs = subject(*inputs), reference(*inputs, *subject.constants)
    torch.testing.assert_close(ours, theirs)
    weights = torch.randn_like(ours)
    torch.testing.assert_close(torch.autograd.grad(ours, inputs, weights), torch.autograd.grad(theirs, inputs, weights))


def report(checks: dict[str, Callable[[Subject], object]], subject: Subject) -> int:
    """Prints a line for each check and returns how many failed."""
    failed = 0
    for name, check in checks.items():
        try:
            check(subject)
        except Exception as error:  # noqa: BLE001 - whatever a foreign function raises is its result
            failed += 1
            print(f"FAILS  {name}: {' '.join(str(error).split())[:160]}")
        else:
            print(f"ok     {name}")
    print(f"{failed} of {len(checks)} checks fail")
    return failed


def shape(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split("x"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--file", help="the file that defines the Function; it is run, so guard its training by __name__"
    )
    parser.add_argument("--name", default="Swish", help="of the Function in the file")
    parser.add_argument("--shapes", nargs="+", type=shape, default=[(3, 4), (1,)], help="of its tensors, such as 3x4 4")
    parser.add_argument("--constants", nargs="*", type=float, default=[], help="the numbers that follow the tensors")
    parser.add_argument("--reference", help="a composed function of the same file to compare with")
    options = parser.parse_args()
    names: dict[str, Any] = runpy.run_path(options.file) if options.file else {"Swish": Swish, "swish": swish}
    subject = Subject(names[options.name].apply, options.shapes, options.constants)
    reference = options.reference or ("" if options.file else "swish")
    extra = {f"as {reference}": lambda each: as_reference(each, names[reference])} if reference else {}
    failed = report(CHECKS | extra, subject)
    if options.file:
        sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
