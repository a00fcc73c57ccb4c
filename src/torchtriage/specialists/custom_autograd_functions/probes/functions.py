"""What a run writes down about the forward passes of the user's own autograd functions."""

from __future__ import annotations

import ast
import weakref
from typing import TYPE_CHECKING, Any

from .events import ChangedInput, OnCtx

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from torchtriage.examine.run.job.job import Job

_LOOKS = frozenset({0, 1, 3, 20})  # steps after which new classes are looked for
_CALLS = 32  # of each class that are looked at: what forward does, it does every time


def functions(job: Job) -> None:
    """Tensors that forward leaves on ctx, and inputs that it changes without saying so."""
    job.spaced()
    watch = _Functions(job)
    job.listen(watch.iterated, watch.ending)


class _Functions:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: dict[type, _Kind] = {}

    def iterated(self, step: int) -> None:
        if step in _LOOKS:
            import torch

            compiled = any(hasattr(part, "_orig_mod") for root in self.job.roots for part in root.modules())
            for kind in [] if compiled else list(_below(torch.autograd.Function)):
                forward = self.job.written.code_of(vars(kind).get("forward"))
                if kind not in self.known and forward is not None and self.job.path_of(forward) is not None:
                    self.known[kind] = _Kind(self.job, kind)
        for each in self.known.values():
            each.left_over(step)

    def ending(self) -> None:
        for each in self.known.values():
            each.tell()


class _Leftover:
    """A tensor that forward leaves on ctx under one name: in how many calls, and its bytes in the first of them."""

    def __init__(self, size: int) -> None:
        self.what, self.calls, self.bytes = "input", 0, size


class _Kind:
    """One class of the user's that derives from torch.autograd.Function."""

    def __init__(self, job: Job, kind: type) -> None:
        self.job, self.name = job, kind.__name__
        self.probe = f"custom_autograd_functions/{kind.__name__} {id(kind)}"
        self.codes = {code.co_name: code for code in reversed(list(job.written.codes(kind)))}
        self.split = "setup_context" in vars(kind)
        self.calls = 0
        self.changed: dict[str, int] = {}  # input: calls that changed it
        self.on_ctx: dict[str, _Leftover] = {}
        self.kept: list[tuple[int, Any]] = []  # step and output, weak
        self.stayed = self.looked = 0
        self.pending: tuple[Any, ...] = ()
        job.place(self.probe, lambda job: self.put(job, kind))

    def put(self, job: Job, kind: type) -> None:
        job.wrap(kind, "forward", self.running)
        if self.split:
            job.wrap(kind, "setup_context", self.setting)

    def running(self, original: Any) -> Any:
        def forward(*args: Any, **kwargs: Any) -> Any:
            inputs = args if self.split else args[1:]
            versions = [_version(each) for each in inputs]
            output = original(*args, **kwargs)
            if self.split:
                self.pending = (versions,)
            else:
                self.called(args[0], inputs, output, versions)
            return output

        return forward

    def setting(self, original: Any) -> Any:
        def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
            result = original(ctx, inputs, output)
            if self.pending:
                (versions,), self.pending = self.pending, ()
                self.called(ctx, inputs, output, versions)
            return result

        return setup_context

    def called(self, ctx: Any, inputs: tuple[Any, ...], output: Any, versions: list[int | None]) -> None:
        self.calls += 1
        outputs = [each for each in (output if isinstance(output, tuple) else (output,)) if _is_tensor(each)]
        dirty = {id(each) for each in getattr(ctx, "dirty_tensors", None) or ()}
        for number, (each, before) in enumerate(zip(inputs, versions, strict=True)):
            if before is not None and each.requires_grad and before != each._version and id(each) not in dirty:
                name = self.argument(number)
                self.changed[name] = self.changed.get(name, 0) + 1
        for name, value in vars(ctx).items():
            self.left_on(name, value, inputs, outputs)
        if self.calls >= _CALLS:
            self.job.withdraw(self.probe)

    def left_on(self, name: str, value: Any, inputs: tuple[Any, ...], outputs: list[Any]) -> None:
        """Notes an attribute of ctx that is, or holds, an output or an input that needs a gradient."""
        for tensor in _tensors(value):
            of_output = any(each is tensor for each in outputs)
            if of_output or (tensor.requires_grad and any(each is tensor for each in inputs)):
                leftover = self.on_ctx.setdefault(name, _Leftover(tensor.nbytes))
                leftover.calls += 1
                if of_output:
                    leftover.what = "output"
                    self.kept.append((self.job.step, weakref.ref(tensor)))

    def left_over(self, step: int) -> None:
        """How many outputs of earlier steps are still there."""
        old = [kept for at, kept in self.kept if at < step]
        self.looked += len(old)
        self.stayed += sum(kept() is not None for kept in old)
        self.kept = [(at, kept) for at, kept in self.kept if at >= step]

    def argument(self, number: int) -> str:
        code = self.codes["forward"]
        names = code.co_varnames[: code.co_argcount][0 if self.split else 1 :]
        return names[number] if number < len(names) else f"input {number}"

    def tell(self) -> None:
        for name, leftover in self.on_ctx.items():
            backward = self.codes.get("backward")
            taken = backward is not None and any(
                self.job.written.stored(backward, name, deleted=deleted) for deleted in (False, True)
            )
            setter = self.codes["setup_context" if self.split else "forward"]
            path, line = self.at(setter, self.job.written.stored(setter, name))
            event = OnCtx(
                function=self.name, attribute=name, what=leftover.what, calls=leftover.calls, bytes=leftover.bytes,
                stayed=self.stayed, looked=self.looked, taken=taken, path=path, line=line,
            )  # fmt: skip
            self.job.record(event)
        for name, count in self.changed.items():
            forward = self.codes["forward"]
            path, line = self.at(forward, _changes(self.job.written.tree_of(forward), name))
            self.job.record(
                ChangedInput(function=self.name, input=name, changed=count, calls=self.calls, path=path, line=line)
            )

    def at(self, code: CodeType, line: int) -> tuple[str | None, int]:
        """The file of CODE and LINE, or where its body begins if that is 0: below its decorator."""
        return self.job.path_of(code), line or code.co_firstlineno + 1


def _below(kind: Any) -> Iterator[type]:
    for each in kind.__subclasses__():
        if not each.__module__.startswith("torch."):  # of which there are two hundred
            yield each
            yield from _below(each)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    if _is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple, dict)) and depth < 2:
        for each in list(value.values() if isinstance(value, dict) else value)[:64]:
            yield from _tensors(each, depth + 1)


def _version(value: Any) -> int | None:
    return int(value._version) if _is_tensor(value) and not value.is_inference() else None


def _changes(tree: ast.AST | None, name: str) -> int:
    """The first line of a function that changes the argument NAME in place, or hands it on; 0 when none is seen."""
    lines = [0]
    handed: list[int] = []
    for node in ast.walk(tree) if tree is not None else ():
        target: Any = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            handed += [node.lineno for each in node.args if isinstance(each, ast.Name) and each.id == name]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            target = node.func.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
        elif isinstance(node, ast.keyword) and node.arg == "out":
            target = node.value
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name) and target.id == name:
            lines.append(getattr(node, "lineno", 0))
    return min(lines[1:] or handed, default=0)
