"""The lines that call a loss: functions of torch, followed for some steps, note on the graph who called them."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Classes, Targets

from . import _nodes
from ._chance import Guesses, gain, least, mass_above_one, share_outside, spread_of
from ._copies import Copies
from .events import Scores

if TYPE_CHECKING:
    from torchtriage.examine.run.job.events import Further, Guess
    from torchtriage.examine.run.job.job import Job

_ENTROPY = ("weight", "reduction", "ignore_index", "label_smoothing")  # what follows logits and targets
_BINARY = ("weight", "pos_weight", "reduction")
_PROBABLE = ("weight", "reduction")
_RETURNS = 3  # lines
_SUM = 2  # of torch's numbers for reductions


class Lines:
    """Follows groups of functions by name, each until the step after this one has ended, or for more steps."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.guesses: dict[tuple[str, int], Guesses] = {}  # by kind of loss and number of classes
        self.copies = Copies()
        self.latest: tuple[Any, Any] | None = None  # the class of the model that was called last, and its output, weak

    def follow(self, what: str, steps: int = 2) -> None:
        """For so many STEPS that are watched the functions of the group WHAT (a method here) note their calls."""
        job, name, left = self.job, f"{self.probe}.{what}", steps

        def iterated(_step: int) -> None:
            nonlocal left
            left -= 1
            if not left:
                job.withdraw(name)

        def place(job: Job) -> None:
            job.sampled()
            getattr(self, what)(job)
            job.listen(iterated)

        job.withdraw(name)
        job.place(name, place)

    def entropies(self, job: Job) -> None:
        import torch
        from torch._C import _nn  # pyright: ignore  # it has no stub

        for name in ("cross_entropy_loss", "nll_loss_nd"):
            job.wrap(_nn, name, self.noting_entropy)
        job.wrap(torch, "embedding", self.copies.noting)
        job.wrap(torch, "binary_cross_entropy_with_logits", self.noting_binary)
        job.wrap(_nn, "binary_cross_entropy", self.noting_binary)

    def activations(self, job: Job) -> None:
        import torch

        for owner in (torch, torch.Tensor):
            for name in ("softmax", "sigmoid", "relu", "relu_"):
                job.wrap(owner, name, self.noting)
        job.wrap(torch, "binary_cross_entropy_with_logits", self.noting)
        self.entropies(job)

    def losses(self, job: Job) -> None:
        from torch._C import _nn  # pyright: ignore  # it has no stub

        for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"):
            job.wrap(_nn, name, self.noting_given)

    def distances(self, job: Job) -> None:
        from torch._C import _nn  # pyright: ignore  # it has no stub

        job.wrap(_nn, "mse_loss", self.noting_distance)

    def differences(self, job: Job) -> None:
        import torch

        self.losses(job)  # the L1 loss is a difference
        for owner in (torch.Tensor, torch):
            for name in ("__sub__", "__rsub__", "sub", "subtract"):
                if hasattr(owner, name):
                    job.wrap(owner, name, self.noting_given)

    def products(self, job: Job) -> None:
        import torch

        for owner in (torch.Tensor, torch):
            for name in ("__mul__", "__rmul__", "mul", "multiply"):
                if hasattr(owner, name):
                    job.wrap(owner, name, self.noting_given)

    def noting(self, original: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self.note(result)
            return result

        return noted

    def noting_entropy(self, original: Any) -> Any:
        """Also the value, what a guess costs, and how much the logits differ between samples."""
        raw = original.__wrapped__  # a call of our own must not be taken for the job's

        def noted(logits: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(logits, target, *args, **kwargs)
            if result.grad_fn is not None and logits.dim() > 1:
                options = {**dict(zip(_ENTROPY, args, strict=False)), **kwargs}
                more = {name: each for name, each in options.items() if name not in ("reduction", "weight")}
                guesses = self.guesses.setdefault(("entropy", logits.shape[1]), Guesses())
                prior, even = guesses.cross_entropy(logits, target, options)

                def cost(answers: Any, wanted: Any) -> Any:
                    return raw(answers, wanted, options.get("weight"), 1, **more)

                guess = (Scores if _nodes.is_bare(_judge(result)) else Classes)(
                    at=self.job.step,
                    classes=logits.shape[1],
                    labels=guesses.labels,
                    summed=target.numel() if _reduction(args, kwargs) == _SUM else 1,
                    whole=not result.dim(),
                    mark=self.mark(target),
                )
                self.read(guess, value=result.detach().mean(), prior=prior, even=even, spread=_spread(logits))
                self.read(guess, gain=gain(cost, logits, target), floor=least(target, logits.shape[1], options))
                self.read(guess, copied=self.copies.share(_judge(result), target, options.get("ignore_index", -100)))
                if "nll" in original.__name__:
                    self.read(guess, above=mass_above_one(logits))
                self.note_guess(result, guess)
            return result

        return noted

    def noting_binary(self, original: Any) -> Any:
        raw = original.__wrapped__

        def noted(answers: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(answers, target, *args, **kwargs)
            if result.grad_fn is not None and answers.dim():
                names = _BINARY if "with_logits" in original.__name__ else _PROBABLE
                options = {**dict(zip(names, args, strict=False)), **kwargs}
                more = {name: each for name, each in options.items() if name == "pos_weight"}
                guesses = self.guesses.setdefault(("binary", answers.dim()), Guesses())
                prior, even = guesses.yes_or_no(target, options)
                weighted = options.get("weight") is not None

                def cost(given: Any, wanted: Any) -> Any:
                    return raw(given, wanted, reduction=1, **more)

                guess = Classes(
                    at=self.job.step,
                    classes=2,
                    labels=guesses.labels,
                    summed=target.numel() if options.get("reduction") == _SUM else 1,
                    whole=not result.dim() and not weighted,
                    mark=self.mark(target),
                )
                self.read(guess, value=result.detach().mean(), prior=prior, even=even, spread=_spread(answers))
                self.read(guess, outside=share_outside(target))
                if not weighted:
                    self.read(guess, gain=gain(cost, answers, target))
                self.note_guess(result, guess)
            return result

        return noted

    def mark(self, target: Any) -> int | None:
        """To tell batches apart; None on a device, which would be waited for."""
        return next((mark for _, mark, _ in self.job.marks(target)), None)

    def read(self, guess: Guess, **numbers: Any) -> None:
        """Fills these fields of GUESS once they have arrived from their device; None is left out."""
        for name, number in numbers.items():
            if number is not None:
                self.job.late.read(number.float(), partial(setattr, guess, name))

    def noting_distance(self, original: Any) -> Any:
        """The value of a mean squared error, and what a constant prediction costs."""

        def noted(first: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(first, target, *args, **kwargs)
            if getattr(result, "grad_fn", None) is not None and not target.requires_grad:
                summed = result.numel() == 1 < target.numel() and _reduction((None, *args), kwargs) == _SUM
                guess = Targets(at=self.job.step, classes=0, summed=target.numel() if summed else 1)
                prior, zero = spread_of(target)
                self.read(guess, value=result.detach().mean(), prior=prior, zero=zero)
                self.note_guess(result, guess)
            return result

        return noted

    def noting_given(self, original: Any) -> Any:
        """Only where the shapes are not meant to meet."""

        def noted(first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(first, second, *args, **kwargs)
            if getattr(result, "grad_fn", None) is not None and hasattr(second, "requires_grad"):
                mark, pair = self.note(result), _given(first, second)
                if _by_mistake(*pair, result):
                    mark.given = [list(each.shape) for each in pair]
                    mark.returns = self.return_lines(pair)
            return result

        return noted

    def return_lines(self, tensors: tuple[Any, Any]) -> Further:
        """The lines on which the model returns, where one of TENSORS is what it returned."""
        if self.latest is None or not any(each is self.latest[1]() for each in tensors):
            return []
        kind = self.latest[0]
        code = self.job.written.code_of(kind.forward)
        path = self.job.path_of(code) if code is not None else None
        lines = self.job.written.returns(code) if code is not None and path is not None else []
        return [(f"{kind.__name__} returns it here", path or "", line) for line in lines[-_RETURNS:]]

    def note_guess(self, result: Any, guess: Guess) -> None:
        mark = self.note(result)
        guess.path, guess.line, guess.module = mark.path, mark.line, mark.module
        mark.guess = guess

    def note(self, result: Any) -> _nodes.Mark:
        """Notes who called for RESULT on the operation that made it; without one, nobody will read the note."""
        node = _judge(result)
        if node is None:
            return _nodes.Mark()
        mark, module = _nodes.mark(node), _module()
        mark.path, mark.line = self.job.caller()
        mark.module = self.job.module_name(module) if module is not None else None
        return mark


def _judge(result: Any) -> Any:
    """The operation that makes a loss, below the mean, of the absolute value, of what it gives; None without one."""
    node = result.grad_fn
    while node is not None and _nodes.kind(node) in ("Mean", "Sum", "Abs"):
        node = node.next_functions[0][0]
    return node


def _spread(answers: Any) -> Any:
    """How much outputs differ between samples; None where that cannot be told."""
    return answers.detach().float().std(0).mean() if answers.dim() <= 2 and len(answers) > 1 else None


def _reduction(args: Any, kwargs: dict[str, Any]) -> Any:
    """Torch's number for the reduction of a call: what follows the weight."""
    return kwargs.get("reduction", args[1] if len(args) > 1 else None)


def _given(first: Any, second: Any) -> tuple[Any, Any]:
    """What the user gave to a loss of torch.nn.functional, before it was expanded."""
    frame: Any = sys._getframe(1)
    for _ in range(8):
        if frame is None:
            break
        if frame.f_code.co_filename.endswith("nn/functional.py") and "target" in frame.f_locals:
            return frame.f_locals["input"], frame.f_locals["target"]
        frame = frame.f_back
    return first, second


def _by_mistake(first: Any, second: Any, result: Any) -> bool:
    """(N, 1) against (N,), one of them to learn: nobody pairs all with all by shapes of different lengths, unless they
    added the dimension on purpose, and did not have the loss sum it all up. Or a loss of torch's own of one prediction
    against a whole batch.
    """
    if not result.dim() and first.dim() == second.dim() > 1 and first.shape[0] == 1 < second.shape[0]:
        return bool(first.requires_grad and not second.requires_grad and first.shape[1:] == second.shape[1:])
    longer, shorter = (first, second) if first.dim() > second.dim() else (second, first)
    equal = longer.numel() == shorter.numel() and longer.dim() > shorter.dim()
    if not equal or first.requires_grad == second.requires_grad:
        return False
    if not result.dim():
        return True
    if longer.grad_fn is not None:
        return not _stretched(longer)
    return not (longer._is_view() and longer._base.dim() < longer.dim())


def _stretched(tensor: Any) -> bool:
    """Whether its maker only added a dimension, which of a column (N, 1) is no proof of purpose when a view did it."""
    node = tensor.grad_fn
    if _nodes.kind(node) != "View" or tensor.dim() < 3:
        return _nodes.kind(node) == "Unsqueeze"
    made, output = node.next_functions[0]
    before = _nodes.shape(made, output)
    return len(before) < tensor.dim() and [n for n in before if n > 1] == [n for n in tensor.shape if n > 1]


def _module() -> Any:
    """The innermost module whose code is running."""
    import torch

    frame: Any = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and frame.f_code.co_name == "forward":
            return owner
        frame = frame.f_back
    return None
