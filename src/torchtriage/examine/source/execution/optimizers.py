"""Optimizers and what goes with them: gradients, loss scaling, schedules, loaders, states."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import takewhile
from typing import Any, ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.frames import Raised
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.modules import Modules
from torchtriage.examine.source.execution.values import (
    LONGEST,
    OUTSIDE,
    OVER,
    Answer,
    Arguments,
    Endless,
    Function,
    Keywords,
    Object,
    Parameters,
    Unknown,
    Value,
    truth,
)


class Optimizers(Modules):
    """The optimizers of an execution."""

    optimizers: list[Object]
    blind: set[str]
    _of_others: ClassVar[dict[tuple[str, str], Callable[..., Value]]] = {}
    _of_kinds: ClassVar[dict[str, Callable[..., Value]]] = {}

    def blur(self, parameters: Iterable[Parameter] | None) -> None:
        """Of the gradients of PARAMETERS, or of all, nothing is known any more."""
        raise NotImplementedError

    def make_optimizer(self, made: Object, node: ast.AST) -> None:
        """The parameters that the optimizer MADE is given."""
        self.optimizers.append(made)
        self.happen(events.Made(self.spot(node), made))
        given = made.argument("params", 0, Unknown())
        made.state["of"] = given.of if isinstance(given, Parameters) else self._owner_of(given)
        made.state["born"] = self.steps
        made.state["groups"] = self._groups(given, node)
        self._note_known(made)

    def _owner_of(self, given: Value) -> Object | None:
        """The model of which GIVEN are all the parameters: [p for p in model.parameters() if p.requires_grad]."""
        first = given[0].owner if isinstance(given, list) and given and isinstance(given[0], Parameter) else None
        is_whole = first is not None and {*map(id, given)} == {*map(id, self.parameters(first))}
        return first if is_whole else None

    def _note_known(self, optimizer: Object) -> None:
        held = [each for group in optimizer.state["groups"] for each in group["params"]]
        optimizer.state["is_known"] = all(isinstance(each, Parameter) for each in held)

    def _groups(self, given: Value, node: ast.AST) -> list[dict[str, Value]]:
        found = [given] if isinstance(given, dict) else self.listed(_generated(given), node)
        if not isinstance(found, list):
            return [{"params": [Unknown("parameters")]}]
        if not any(isinstance(each, dict) for each in found):
            return [{"params": _of_pairs(found)}]
        return [self._group(each, node) for each in found]

    def _group(self, given: Value, node: ast.AST) -> dict[str, Value]:
        options = given if isinstance(given, dict) else {}
        held = options.get("params", Unknown())
        inside = [held] if isinstance(held, Tensor) else self.listed(held, node)
        return {**options, "params": _of_pairs(inside) if isinstance(inside, list) else [Unknown("parameters")]}

    def optimized(self, optimizer: Object) -> list[Parameter]:
        """The parameters that OPTIMIZER holds, as far as they are known."""
        groups = optimizer.state.get("groups", ())
        return [each for group in groups for each in group["params"] if isinstance(each, Parameter)]

    def step(self, optimizer: Value, node: ast.AST, scaler: Object | None = None) -> None:
        """OPTIMIZER.step(), by itself or by SCALER."""
        if not isinstance(optimizer, Object) or optimizer.kind != "optimizer":
            self.blur(None)
            self.blind.add("step")
            return
        held = self.optimized(optimizer)
        known = tuple((each, each.grad) for each in held if each.grad is not None and each.is_gradient_known)
        if scaler is not None:  # its step unscales what nobody has unscaled
            known = tuple((each, replace(gradient, scaled=None)) for each, gradient in known)
        is_known = all(each.is_gradient_known for each in held)
        self.happen(events.OptimizerStep(self.spot(node), optimizer, scaler, known, is_known))
        for each, gradient in known:
            each.grad = replace(gradient, used=len(gradient.by))
            each.version += 1

    def zero(self, parameters: Iterable[Parameter], node: ast.AST) -> None:
        """The gradients of PARAMETERS are dropped."""
        found = tuple(parameters)
        lost = tuple(each for each in found if each.is_gradient_known and not (each.grad and each.grad.is_taken))
        self.happen(events.ZeroGrad(self.spot(node), found, lost))
        for each in found:
            each.grad, each.is_gradient_known = None, True

    def clip(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """clip_grad_norm_ and its kin."""
        given = arguments[0] if arguments else keywords.get("parameters", Unknown())
        found = [given] if isinstance(given, Tensor) else self.listed(_generated(given), node)
        held = found if isinstance(found, list) else [Unknown("parameters")]
        known = tuple(each for each in held if isinstance(each, Parameter))
        gradients = tuple(each.grad for each in known if each.grad is not None and each.is_gradient_known)
        limit = arguments[1] if len(arguments) > 1 else keywords.get("max_norm", keywords.get("clip_value"))
        self.happen(events.Clip(self.spot(node), gradients, known, limit))
        return Tensor(self.spot(node))

    def operate(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…) of one of torch's own things; NotImplemented where that is not executed here."""
        work = self._of_others.get((held.kind, name)) or self._of_others.get(("", name))
        if work is not None and held.kind in _KINDS:
            return work(self, held, arguments, keywords, node)
        of_kind = self._of_kinds.get(held.kind)
        if of_kind is not None:
            return of_kind(self, held, name, arguments, keywords, node)
        return Unknown(name) if held.kind in ("scheduler", "loader") else NotImplemented

    def _of_default(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.container_method(held.state["items"], name, arguments, keywords, node)

    def _step_of(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        closure = arguments[0] if arguments else keywords.get("closure")
        if isinstance(closure, Function):
            self.call(closure, (), {}, node)
        self.step(held, node)
        return None

    def _zero_of(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.zero(self.optimized(held) if held.kind == "optimizer" else self.parameters(held), node)
        return None

    def _add_group(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        # of an optimizer of a class in the file, whose making was not executed, nobody knows what else it holds
        groups = held.state.setdefault("groups", [{"params": [Unknown("parameters")]}])
        groups += self._groups(arguments[0] if arguments else Unknown(), node)
        self._note_known(held)
        return None

    def _scale(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        first = arguments[0] if arguments else Unknown()
        enabled = held.argument("enabled", None, True)
        is_on = truth(enabled)
        if is_on is None:  # the same for all that it does
            is_on = held.state.setdefault("is_on", self.decide(node, enabled, []))
        if type(first) is Unknown:
            first = Tensor(self.spot(node), is_open=True)
        return replace(first, scaled=held) if isinstance(first, Tensor) and is_on else first

    def _unscale(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        first = self._as_optimizer(arguments[0] if arguments else Unknown())
        if not isinstance(first, Object) or first.kind != "optimizer":
            self.blur(None)
            self._unscale_all(held)
            return None
        self.happen(events.Unscale(self.spot(node), held, first))
        for each in self.optimized(first):
            each.grad = replace(each.grad, scaled=None) if each.grad is not None else None
        return None

    def _unscale_all(self, scaler: Object) -> None:
        """Gradients that are multiplied by the scale of SCALER may not be any more: NoamOpt(AdamW(…)) holds them."""
        losses = (each.loss for each in self.events if isinstance(each, events.Backward))
        for each in frozenset[Parameter]().union(*(loss.graph for loss in losses)):
            if each.grad is not None and each.grad.scaled is scaler:
                each.grad = replace(each.grad, scaled=None)

    def _step_by(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.step(self._as_optimizer(arguments[0] if arguments else Unknown()), node, held)
        return None

    def _as_optimizer(self, value: Value) -> Value:
        """VALUE, which a scaler steps: whatever it is called, it is an optimizer."""
        if type(value) is not Unknown:
            return value
        self.blur(None)
        self.blind.add("step")
        groups = [{"params": [Unknown("parameters")]}]
        state = {"groups": groups, "of": None, "is_known": False, "is_given": True}
        return value.values.setdefault("(optimizer)", Object("optimizer", state=state))

    def _update(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.ScalerUpdate(self.spot(node), held))
        return None

    def _schedule(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.SchedulerStep(self.spot(node), held, bool(arguments or keywords)))
        return None

    def _set_epoch(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.SetEpoch(self.spot(node), held))
        return None

    def _state_of(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.state_dict(), and at which event it was taken. Of a sharded model every rank has a part of it."""
        if held.made in lore()["wrappers"]["sharded"]:
            self.happen(events.Collective(self.spot(node), "state_dict"))
        return Object("state", spot=self.spot(node), state={"of": held, "at": len(self.events)})

    def _method_of_state(
        self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        """HELD.NAME(…) of what state_dict() gave."""
        entries = self.entries_of(held)
        if name == "copy":
            return held
        if name in ("items", "keys", "values"):
            return [*getattr(entries, name)()]
        return entries.get(arguments[0], Unknown(name)) if name == "get" and arguments else Unknown(name)

    def entries_of(self, state: Object) -> dict[Value, Value]:
        """The entries of STATE: tensors that share their memory with what it is the state of."""
        if "entries" not in state.state:  # programs ask for one after the other: state[name]
            of = state.state["of"]
            names = [name for name, _ in self.named_parameters(of)] if of.kind in ("module", "wrapper") else []
            state.state["entries"] = {name: Tensor(state.spot, state=state) for name in names or ["a name"]}
        entries: dict[Value, Value] = state.state["entries"]
        return entries

    def _method_of_region(
        self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        """HELD.__enter__() and HELD.__exit__() of a region of autocast, by a context manager of the program's own."""
        if name in ("__enter__", "__exit__"):
            self.region = held.state["region"] if name == "__enter__" else OUTSIDE
        return None

    def _clip_own(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """MODEL.clip_grad_norm_(1.0), which sharded models have."""
        return self.clip((self.parameters(held), *arguments), keywords, node)

    def _restore(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        strict = arguments[1] if len(arguments) > 1 else keywords.get("strict", True)
        state = arguments[0] if arguments else keywords.get("state_dict")
        self.happen(events.Restore(self.spot(node), held, state, strict))
        held.state["is_set"] = True
        for each in self.parameters(held) if held.kind in ("module", "wrapper") else ():
            each.is_empty = False
            each.zeroed = each.zeroed if each.version else None  # what is loaded behind a training says nothing of it
        return Answer("the keys that do not fit", part=held, spot=self.spot(node))

    def batch(self, loader: Object, node: ast.AST) -> Value:
        """What LOADER gives: tensors where its dataset has something, unless it is collated otherwise."""
        dataset = loader.argument("dataset", 0)
        method = dataset.method("__getitem__") if isinstance(dataset, Object) else None
        sampler = loader.argument("sampler", 3)
        is_part = isinstance(sampler, Object) and sampler.kind == "sampler" and not self.is_grad
        if is_part or method is None or loader.argument("collate_fn", 6) is not None:
            return Tensor(self.spot(node), is_batch=True, share=loader if is_part else None, loader=loader)
        if "sample" not in loader.state:
            begun = len(self.events)
            try:
                loader.state["sample"] = self.call(self.bound(dataset, method), (Unknown("an index"),), {}, node)
            except Raised:
                loader.state["sample"] = Unknown("a sample")
            if loader.argument("num_workers", 5, 0) != 0:  # there torch seeds all generators itself
                del self.events[begun:]
        return self._collated(loader.state["sample"], loader, node)

    def _collated(self, sample: Value, loader: Object, node: ast.AST) -> Value:
        if isinstance(sample, dict):
            return {key: self._collated(each, loader, node) for key, each in sample.items()}
        if isinstance(sample, tuple | list):
            return [self._collated(each, loader, node) for each in sample]
        return Tensor(self.spot(node), is_batch=isinstance(sample, Unknown), loader=loader)


def _generated(given: Value) -> Value:
    """GIVEN; of a generator the parameters that it gives, where it gives nothing else."""
    if not isinstance(given, Endless) or not given.is_generated:
        return given
    found = list(takewhile(lambda each: isinstance(each, Parameter), map(given.make, range(LONGEST))))
    return found if given.make(len(found)) is OVER else given


def _of_pairs(values: list[Value]) -> list[Value]:
    """Parameters, of which some were given with their names."""
    return [each[1] if isinstance(each, tuple) and len(each) == 2 else each for each in values]


def _use(name: str) -> Callable[..., Value]:
    """What calling the method NAME of a handle or a profiler does."""

    def use(self: Optimizers, held: Object, *given: Any) -> Value:
        self.happen(events.Handle(self.spot(given[-1]), held, name))
        return Unknown(name)

    return use


def _nothing(*_: Any) -> Value:
    return None


def _hooked(self: Optimizers, held: Object, *_: Any) -> Value:
    """A hook may do anything before or after a step."""
    held.has_escaped = True
    self.blur(self.optimized(held))
    self.blind |= {"zero_grad", "step"}
    return Unknown("a handle")


_KINDS = frozenset({"optimizer", "scaler", "scheduler", "sampler", "module", "wrapper", "handle", "profiler"})
Optimizers._of_others = {
    ("", "state_dict"): Optimizers._state_of,
    ("", "load_state_dict"): Optimizers._restore,
    ("module", "zero_grad"): Optimizers._zero_of,
    ("wrapper", "zero_grad"): Optimizers._zero_of,
    ("wrapper", "clip_grad_norm_"): Optimizers._clip_own,
    ("optimizer", "step"): Optimizers._step_of,
    ("optimizer", "zero_grad"): Optimizers._zero_of,
    ("optimizer", "add_param_group"): Optimizers._add_group,
    ("optimizer", "__init__"): _nothing,
    ("optimizer", "register_step_pre_hook"): _hooked,
    ("optimizer", "register_step_post_hook"): _hooked,
    ("scaler", "scale"): Optimizers._scale,
    ("scaler", "unscale_"): Optimizers._unscale,
    ("scaler", "step"): Optimizers._step_by,
    ("scaler", "update"): Optimizers._update,
    ("scaler", "get_scale"): lambda *_: Unknown("a scale"),
    ("scaler", "is_enabled"): lambda *_: Unknown("enabled"),
    ("handle", "wait"): _use("wait"),
    ("handle", "remove"): _use("remove"),
    **{("profiler", name): _use(name) for name in ("step", "start", "stop", "__enter__", "__exit__")},
    ("scheduler", "step"): Optimizers._schedule,
    ("sampler", "set_epoch"): Optimizers._set_epoch,
}
Optimizers._of_kinds = {
    **dict.fromkeys(("module", "wrapper"), Optimizers.module_method),
    "parser": Optimizers.parser_method,
    "defaultdict": Optimizers._of_default,
    "state": Optimizers._method_of_state,
    "autocast": Optimizers._method_of_region,
    "profiler": lambda self, held, name, *_: Unknown(name),
}
