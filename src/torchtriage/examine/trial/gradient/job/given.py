"""The arguments of the function: tensors that are differentiated, and everything else that it takes."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from typing import TYPE_CHECKING, Any

from .problem import Problem, settle
from .refusing import Refused, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .target import Subject

FACTORIES = ("make_inputs", "example_inputs", "inputs", "sample_inputs", "get_inputs")
SHAPE = re.compile(r"(?:(?P<type>[a-z]+\d*)(?:<(?P<below>\d+))?:)?(?P<shape>\(\)|\d+(?:\s*[,x]\s*\d+)*,?)")
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
DOMAINS = ("normal", "positive", "unit")
HOW = (
    "Write a function `make_inputs()` beside it that returns the arguments (tensors of float64 with requires_grad=True "
    'where a gradient is wanted), or give --shapes "3,4;4,5".'
)


class Given:
    """Arguments, taken apart. leaves: all values in them; wanted: which of these are differentiated.

    declared: whether that was said (requires_grad=True in a factory) and not taken to be so. origin: in words.
    """

    def __init__(self, subject: Subject, args: Sequence[Any], kwargs: dict[str, Any], origin: str) -> None:
        import torch
        from torch.utils import _pytree

        self.subject, self.origin = subject, origin
        layer = dict(subject.layer.named_parameters()) if subject.layer is not None else {}
        self.leaves, self._spec = _pytree.tree_flatten((tuple(args), dict(kwargs), layer))
        self.names, self.numbers = _names(subject, args, kwargs, layer)
        inner = [at for at, each in enumerate(self.leaves) if isinstance(each, torch.Tensor)]
        floating = [at for at in inner if self.leaves[at].is_floating_point() or self.leaves[at].is_complex()]
        own = len(self.leaves) - len(layer)
        asked = [at for at in floating if self.leaves[at].requires_grad]
        self.declared = any(at < own for at in asked)
        self.wanted = asked if self.declared else floating
        self.as_given = {at: self.leaves[at] for at in inner}
        self.dtype: Any = torch.float64

    def problem(self, dtype: Any = None) -> Problem:
        """The function of its differentiated tensors, in DTYPE (else that of the trial)."""
        dtype = dtype or self.dtype
        values = [as_type(self.leaves[at], dtype) for at in self.wanted]
        names, numbers = [self.names[at] for at in self.wanted], [self.numbers[at] for at in self.wanted]

        def function(tensors: list[Any]) -> list[Any]:
            return tensors_of(self.call(self.arguments(tensors, dtype)))

        return Problem(function, values, names, numbers)

    def arguments(self, tensors: Sequence[Any], dtype: Any = None) -> list[Any]:
        """All leaves, with TENSORS where they are differentiated and copies of everything else."""
        import torch

        made: list[Any] = []
        for at, leaf in enumerate(self.leaves):
            if at in self.wanted:
                made.append(tensors[self.wanted.index(at)])
            elif isinstance(leaf, torch.Tensor):
                floats = leaf.is_floating_point() or leaf.is_complex()
                made.append(as_type(leaf, dtype or self.dtype) if floats else leaf.detach().clone())
            else:
                made.append(_copied(leaf))
        return made

    def call(self, leaves: Sequence[Any]) -> Any:
        """The function of all LEAVES."""
        from torch.utils import _pytree

        args, kwargs, layer = _pytree.tree_unflatten(list(leaves), self._spec)
        if self.subject.layer is None:
            return self.subject.function(*args, **kwargs)
        import torch

        held = {name: as_type(each, self.dtype) if each.is_floating_point() else each.clone()
                for name, each in self.subject.layer.named_buffers()}  # fmt: skip
        return torch.func.functional_call(self.subject.layer, {**layer, **held}, args, kwargs)

    def shapes(self) -> str:
        """The arguments in words."""
        return ", ".join(f"{name} {_described(leaf)}" for name, leaf in zip(self.names, self.leaves, strict=True))


def as_type(tensor: Any, dtype: Any) -> Any:
    """A copy with the same numbers in DTYPE (complex where it was), laid out in a row."""
    import torch

    wide = {torch.float64: torch.complex128, torch.float32: torch.complex64}.get(dtype, torch.complex64)
    plain = tensor.detach().resolve_conj().resolve_neg() if tensor.is_complex() else tensor.detach()
    return plain.to(wide if tensor.is_complex() else dtype).contiguous().clone()


def tensors_of(output: Any) -> list[Any]:
    """The floating tensors in what a function returned."""
    import torch
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(output)
    return [
        each for each in leaves if isinstance(each, torch.Tensor) and (each.is_floating_point() or each.is_complex())
    ]


def _copied(leaf: Any) -> Any:
    try:
        return copy.deepcopy(leaf)
    except Exception:  # noqa: BLE001 - what cannot be copied is handed on as it is
        return leaf


def _described(leaf: Any) -> str:
    import torch

    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)[:40]
    kind = str(leaf.dtype).removeprefix("torch.")
    return f"{'x'.join(map(str, leaf.shape)) or 'scalar'}{'' if kind.startswith('float') else f' {kind}'}"


def _names(
    subject: Subject, args: Sequence[Any], kwargs: dict[str, Any], layer: dict[str, Any]
) -> tuple[list[str], list[int]]:
    """What each leaf is called, and the position of its argument."""
    from torch.utils import _pytree

    known = subject.parameters() or []
    plain = [each.name for each in known if each.kind is not inspect.Parameter.VAR_POSITIONAL]
    names, numbers = [], []
    for number, arg in enumerate([*args, *kwargs.values()]):
        keyword = list(kwargs)[number - len(args)] if number >= len(args) else ""
        name = keyword or (plain[number] if number < len(plain) else f"input {number}")
        inner = _pytree.tree_leaves(arg)
        single = len(inner) == 1 and inner[0] is arg
        names += [name] if single else [f"{name}[{at}]" for at in range(len(inner))]
        numbers += [number] * len(inner)
    return [*names, *layer], [*numbers, *range(len(args) + len(kwargs), len(args) + len(kwargs) + len(layer))]


def from_factory(subject: Subject, factory: Any, origin: str, seed: int = 0) -> Given:
    """The arguments that FACTORY returns: a tensor, a tuple or list, a dict, or (args, kwargs)."""
    settle(seed)
    try:
        made = factory() if callable(factory) else factory
    except Exception as error:
        raise Refused(f"{origin} raises {said(error)}", origin, "Mend it: it is called without arguments.") from error
    args, kwargs = _split(made, origin)
    return Given(subject, args, kwargs, origin)


def _split(made: Any, origin: str) -> tuple[Sequence[Any], dict[str, Any]]:
    import torch

    if isinstance(made, torch.Tensor):
        return (made,), {}
    if isinstance(made, dict):
        return (), made
    if isinstance(made, (tuple, list)):
        if len(made) == 2 and isinstance(made[0], (tuple, list)) and isinstance(made[1], dict):
            return made[0], made[1]
        return tuple(made), {}
    raise Refused(f"{origin} returns a {type(made).__name__}", origin, "Return the arguments as a tuple.")


def from_shapes(subject: Subject, text: str, seed: int = 0, domain: str = "normal", scale: float = 1.0) -> Given:
    """The arguments that --shapes describes, one after each semicolon."""
    import torch

    source = torch.Generator().manual_seed(seed)
    made = [_one(part.strip(), source, domain, scale) for part in text.split(";") if part.strip()]
    if not made:
        raise Refused("it describes no input", f"--shapes {text!r}", 'Write such as "3,4;4,5" or "3,4;int:3;=0.5".', 2)
    given = Given(subject, made, {}, "--shapes")
    given.declared = "const:" in text
    return given


def _one(text: str, source: Any, domain: str, scale: float) -> Any:
    import torch

    constant = text.startswith("const:")
    text = text.removeprefix("const:")
    for name in DOMAINS:
        if text.startswith(f"{name}:"):
            domain, text = name, text.removeprefix(f"{name}:")
    found = SHAPE.fullmatch(text.replace("scalar", "()"))
    if not found:
        return _literal(text.removeprefix("="))
    shape = [int(each) for each in re.findall(r"\d+", found["shape"])]
    kind = {"int": "int64", "long": "int64", "float": "float64", "double": "float64", "complex": "complex128",
            None: "float64"}.get(found["type"], found["type"])  # fmt: skip
    dtype = getattr(torch, kind, None)
    if not isinstance(dtype, torch.dtype):
        raise Refused(f"there is no dtype {kind}", f"--shapes {text!r}", "Write float32:, int:, bool: or complex:.", 2)
    if kind in FLOATS:
        drawn = drawn_from(domain, shape, source, scale, dtype)
        return drawn.requires_grad_(not constant)
    high = 2 if dtype is torch.bool else int(found["below"] or 2)
    return torch.randint(0, max(high, 1), shape, generator=source).to(dtype)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        do = "Write a shape (3,4), DTYPE:SHAPE (int:3, bool:3,4, int<7:3), () for a scalar, or =VALUE (=0.5, =None)."
        raise Refused(f"{text!r} is neither a shape nor a value", "--shapes", do, 2) from error


def drawn_from(domain: str, shape: Sequence[int], source: Any, scale: float, dtype: Any) -> Any:
    """Random numbers: normal, positive (from 0.2 on), or of the unit interval (0.1 to 0.9)."""
    import torch

    wide = torch.complex128 if dtype.is_complex else torch.float64
    drawn = (
        torch.randn(*shape, generator=source, dtype=wide) if shape else torch.randn((), generator=source, dtype=wide)
    )
    if domain == "positive":
        drawn = drawn.abs() + 0.2
    elif domain == "unit":
        drawn = (0.1 + 0.8 * torch.sigmoid(drawn.real)).to(wide)
    return (drawn * (scale if domain == "normal" else 1.0)).to(dtype)
