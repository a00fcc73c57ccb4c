"""Contexts: what `with` enters and leaves, of torch, of Python and of the project."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import format_of
from torchtriage.examine.source.execution.optimizers import Optimizers
from torchtriage.examine.source.execution.values import (
    Arguments,
    Function,
    Keywords,
    Object,
    Region,
    Unknown,
    Value,
    truth,
)

GRAD_MODES = {"torch.no_grad": False, "torch.inference_mode": False, "torch.enable_grad": True}


class Contexts(Optimizers):
    """Regions of autocast and without gradients, and the rest. default_format: of autocast on CUDA, "" where the
    program has set another.
    """

    default_format = "float16"

    def escape(self, *values: Value) -> None:
        """Code that is not executed gets VALUES: what they lead to may be changed by it."""
        raise NotImplementedError

    def enter(self, value: Value, node: ast.AST) -> tuple[Callable[[], None], Value]:
        before = self.is_grad, self.region

        def leave() -> None:
            self.is_grad, self.region = before

        if not isinstance(value, Object):
            return leave, value if isinstance(value, Unknown) else Unknown("a context")
        if value.method("__enter__"):
            entered = self.call(self.attribute(value, "__enter__", node), (), {}, node)

            def leave_own() -> None:
                self._leave(value, node)
                leave()

            return leave_own, entered
        if value.cls is not None:  # of a class out of sight: it may do anything
            self.escape(value)
        return self._enter_known(value, leave, node)

    def _enter_known(self, value: Object, leave: Callable[[], None], node: ast.AST) -> tuple[Callable[[], None], Value]:
        """What entering VALUE, of torch's or Python's own, does, and LEAVE or what leaving it does instead."""
        if value.kind == "autocast":
            self.region = value.state["region"]
        elif value.kind == "grad_mode":
            outside = value.state.get("before", self.is_grad)  # set_grad_enabled() has acted already
            leave = partial(setattr, self, "is_grad", outside)
            self.is_grad = value.state["enabled"] is not False
            self.note_ungraded(node)
        elif value.kind == "no_sync":
            outer, self.is_unsynced = self.is_unsynced, True
            leave = partial(setattr, self, "is_unsynced", outer)
        elif value.kind == "scaled":
            return leave, value.state["loss"]
        elif value.kind == "context":
            entered = next(value.state["body"], None)
            return lambda: _resume(value.state["body"]), entered
        elif value.kind in ("profiler", "anomaly"):
            self.happen(events.Handle(self.spot(node), value, "__enter__"))
            leave = partial(self._leave_aid, value, node)
        return leave, None if value.kind in ("autocast", "grad_mode", "no_sync") else value

    def _leave_aid(self, value: Object, node: ast.AST) -> None:
        value.state["is_over"] = True
        self.happen(events.Handle(self.spot(node), value, "__exit__"))

    def _leave(self, value: Object, node: ast.AST) -> None:
        if value.method("__exit__"):
            self.call(self.attribute(value, "__exit__", node), (None, None, None), {}, node)

    def _grad_mode(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if arguments and isinstance(arguments[0], Function):  # torch.no_grad()(function)
            return arguments[0]
        return Object("grad_mode", state={"enabled": GRAD_MODES[name]})

    def _grad_set(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        wanted = arguments[0] if arguments else keywords.get("mode", True)
        is_on = truth(wanted)
        before, self.is_grad = self.is_grad, self.decide(node, wanted, []) if is_on is None else is_on
        return Object("grad_mode", state={"enabled": self.is_grad, "before": before})

    def _autocast(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A region, with its format: on CUDA the default unless another is asked for."""
        device = arguments[0] if arguments else keywords.get("device_type", "cuda")  # autocast() of old has none
        wanted = keywords.get("dtype", arguments[1] if len(arguments) > 1 else None)
        found = format_of((wanted,))
        if wanted is None and (device == "cuda" or device is True) and "**" not in keywords:
            found = self.default_format
        enabled = keywords.get("enabled", arguments[2] if len(arguments) > 2 else True)
        is_on = truth(enabled)
        if is_on is None:
            is_on = self.decide(node, enabled, [])
        host = found if is_on and device == "cpu" else ""
        is_on &= device != "cpu"
        region = Region(found if is_on else "", self.spot(node), is_on and enabled, host=host)
        return Object("autocast", state={"region": region})

    def _autocast_default(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.default_format = ""

    def _enter_by_hand(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """torch.no_grad().__enter__(), for the rest of the program."""
        if name == "__enter__":
            held.state["before"] = self.is_grad
            self.is_grad = held.state["enabled"] is not False
        elif name == "__exit__":
            self.is_grad = held.state.get("before", True)
        return None


Optimizers._of_kinds |= {"grad_mode": Contexts._enter_by_hand}


def _resume(body: Iterator[Value]) -> None:
    """What stands behind the `yield` of a context manager."""
    for _ in body:
        return
