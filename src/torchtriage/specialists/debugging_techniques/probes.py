"""What a run writes down about numbers that are not finite and gradients that go nowhere."""

from __future__ import annotations

from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_BUDGET = 0.01  # of the time may go into looking through all gradients
_FIRST_STEPS = 100  # of an optimizer, in which its gradients are followed
_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again


def origins(job: Job) -> None:
    """The first loss or gradient that is not finite, traced to the operation that made it; once per run.

    A healthy step costs one look at the loss and one at the gradient of the first parameter, through which a NaN of
    any later layer comes; the norm of all gradients is taken as often as one per cent of the time allows. When
    one is not finite, the forward passes since the last backward are replayed with their own inputs, random state
    and autocast.
    """
    import torch

    watch = _Origins(job)
    job.wrap(torch.amp.GradScaler, "scale", watch.scale)
    for listener in (watch.forward, watch.backward, watch.backwarded, watch.stepping, watch.stepped):
        job.on(listener.__name__, listener)


def carried(job: Job) -> None:
    """Optimizers whose gradients pile up: used by a step, then added to by the next backward without a zero_grad.

    Only an unbroken chain counts: the same gradient tensor with the same version right after the step and right
    before the next backward. Accumulation between two steps, a GAN's two optimizers and closures break it.
    A loop clears its gradients always or never, so an optimizer's first steps tell.
    """
    watch = _Carried(job)
    for listener in (watch.backward, watch.backwarded, watch.stepped):
        job.on(listener.__name__, listener)


def updates(job: Job) -> None:
    """Optimizers that never step although backward keeps filling the gradients of their parameters."""
    import torch

    ledgers: list[_Ledger] = []

    def init(original: Any) -> Any:
        def built(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            ledgers.append(_Ledger(self, job.caller()))

        return built

    def backwarded(_roots: Any) -> None:
        for ledger in ledgers:
            if not ledger.steps and ledger.filled(job.caller) and ledger.backwards in _TIMES:
                job.record("updates", **ledger.facts())

    def turn(optimizer: Any, _scaler: Any = None) -> None:
        for ledger in ledgers:
            ledger.steps += ledger.optimizer() is optimizer

    def ending() -> None:
        for ledger in ledgers:
            job.record("updates", **ledger.facts(), last=True)

    job.wrap(torch.optim.Optimizer, "__init__", init)
    job.on("backwarded", backwarded)
    job.on("stepped", turn)
    job.on("skipped", turn)
    job.on("ending", ending)


class _Origins:
    """Looks at every loss and gradient, and keeps what a replay would need until the next step."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.calls: list[_Call] = []
        self.scaled: list[tuple[Any, Any]] = []
        self.spent = self.done = False
        self.due = 0.0  # when all gradients are looked at again; in between, the first one is

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            """The unscaled loss will be judged: a scaled one may overflow in health, and its step is skipped then."""
            result = original(scaler, outputs)
            if not self.done:
                self.scaled[:] = [*self.scaled[-3:], (result, outputs)]
            return result

        return scaling

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        import torch

        if self.done or not torch.is_grad_enabled():
            return
        if self.spent:
            self.calls.clear()
            self.spent = False
        if len(self.calls) < 16:
            self.calls.append(_Call(module, args, kwargs))

    def backward(self, roots: Any) -> None:
        import torch

        if self.done:
            return
        unscaled = [next((loss for result, loss in self.scaled if result is root), root) for root in roots]
        losses = [loss for loss in unscaled if isinstance(loss, torch.Tensor) and loss.is_floating_point()]
        for loss in losses:
            if loss.is_cuda:
                self.judge_later(torch.isfinite(loss.detach()).all())
            elif not (isfinite(loss.item()) if loss.numel() == 1 else _all_finite(loss.detach())):
                self.tell({"seen": "loss", **_why_forward(self.job, self.calls, losses)})
                return

    def backwarded(self, _roots: Any) -> None:
        self.spent = True
        self.scaled.clear()

    def stepping(self, optimizer: Any) -> None:
        import torch

        if self.done or getattr(optimizer, "found_inf", None) is not None:
            return  # a fused optimizer is told by its scaler to leave the parameters alone
        began = perf_counter()
        if self.due > began:
            first = optimizer.param_groups[0]["params"][0].grad
            total = first.sum() if first is not None and first.is_floating_point() else None
        else:
            total = _total_norm(optimizer)
            self.due = began + (perf_counter() - began) / _BUDGET
        if total is None:
            return
        if total.is_cuda:
            self.judge_later(torch.isfinite(total))
        elif not isfinite(total.item()):
            self.tell_gradients(optimizer)

    def tell_gradients(self, optimizer: Any) -> None:
        owners = _with_gradient(optimizer)
        bad = [owner for owner in owners if not _all_finite(owner.grad)]
        if bad:  # else the norm of large finite gradients overflowed
            nearest = self.job.module_name(bad[-1]) or "a tensor of no module"
            count = {"bad": len(bad), "of": len(owners), "nearest": nearest}
            self.tell({"seen": "gradient", **count, **_why_backward(self.job, self.calls)})

    def stepped(self, _optimizer: Any) -> None:
        self.calls.clear()

    def judge_later(self, finite: Any) -> None:
        step = self.job.step

        def then(value: float) -> None:
            if not value:
                self.tell({"seen": "late", "at": step, "stage": "unknown", "why": "on CUDA it is read a step late"})

        self.job.late.read(finite, then)

    def tell(self, facts: dict[str, Any]) -> None:
        if not self.done:
            self.done = True
            self.job.record("non-finite", **facts)
        self.calls.clear()
        self.scaled.clear()


def _with_gradient(optimizer: Any) -> list[Any]:
    """The optimizer's parameters whose gradients one fused call can take: dense, on one device, no subclass."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    found = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    found = [p for p in found if type(p.grad) in plain and p.grad.layout is torch.strided]
    return [p for p in found if p.grad.device == found[0].grad.device and p.grad.is_floating_point()]


def _total_norm(optimizer: Any) -> Any:
    """The sum of the norms of all gradients that one fused call can take, not yet waited for; None without any."""
    import torch

    owners = _with_gradient(optimizer)
    if not owners:
        return None
    norms = torch._foreach_norm([p.grad for p in owners])  # pyright: ignore  # public in all but its name
    return torch.stack([each.float() for each in norms]).sum()


class _Carried:
    """The chains of all optimizers that are in their first steps."""

    def __init__(self, job: Job) -> None:
        import weakref

        self.job = job
        self.watched: weakref.WeakKeyDictionary[Any, _Chain] = weakref.WeakKeyDictionary()
        self.told: weakref.WeakSet[Any] = weakref.WeakSet()
        self.line: tuple[str, int] = ("", 0)

    def backward(self, _roots: Any) -> None:
        for chain in self.watched.values():
            chain.before_backward()

    def backwarded(self, _roots: Any) -> None:
        for chain in self.watched.values():
            if chain.after_backward():
                self.line = self.job.caller()

    def stepped(self, optimizer: Any) -> None:
        if optimizer in self.told:
            return
        chain = self.watched.setdefault(optimizer, _Chain())
        chain.after_step(optimizer)
        if chain.steps >= _FIRST_STEPS:
            del self.watched[optimizer]
            self.told.add(optimizer)
        if chain.running in _TIMES:
            name, (path, line) = type(optimizer).__name__, self.line
            self.job.record("carried", optimizer=name, running=chain.running, path=path, line=line)


class _Chain:
    """The gradients of one optimizer: are they still those that its last step used?"""

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self.noted: list[tuple[int, int]] | None = None
        self.unbroken = self.added = False
        self.running = self.steps = 0

    def before_backward(self) -> None:
        now = self.state()
        self.unbroken = self.unbroken and now is not None and now == self.noted
        self.noted = now

    def after_backward(self) -> bool:
        now = self.state()
        self.added = self.added or (self.unbroken and now != self.noted)
        self.noted = now
        return self.unbroken and self.added

    def after_step(self, optimizer: Any) -> None:
        self.steps += 1
        self.running = self.running + 1 if self.unbroken and self.added else 0
        if self.state() is None:
            every = _with_gradient(optimizer)
            self.owners = [every[0], every[-1]] if every else []
        self.noted = self.state()
        self.unbroken, self.added = self.noted is not None, False

    def state(self) -> list[tuple[int, int]] | None:
        if not self.owners or any(owner.grad is None for owner in self.owners):
            return None
        return [(id(owner.grad), owner.grad._version) for owner in self.owners]


class _Ledger:
    """Of one optimizer: how often backward filled its gradients, and how often it stepped."""

    def __init__(self, optimizer: Any, built: tuple[str, int]) -> None:
        import weakref

        self.optimizer, self.name, self.built = weakref.ref(optimizer), type(optimizer).__name__, built
        self.backwards = self.steps = 0
        self.where: tuple[str, int] | None = None
        self.first: list[Any] = []
        self.watched: list[Any] = []

    def filled(self, caller: Any) -> bool:
        """Whether this backward left a gradient that is not zero; looked at closely ten times, then believed."""
        optimizer = self.optimizer()
        if optimizer is None:
            return False
        if not self.watched:
            self.watched = [p for p in _with_gradient(optimizer) if p.numel()][:4]
            self.first = [p.detach().flatten()[:64].clone() for p in self.watched]
        full = [p for p in self.watched if p.grad is not None]
        if not full or (self.backwards < 10 and not any(bool(p.grad.any()) for p in full)):
            return False
        self.where = self.where or caller()
        self.backwards += 1
        return True

    def facts(self) -> dict[str, Any]:
        pairs = zip(self.watched, self.first, strict=True)
        moved = any(bool((p.detach().flatten()[:64] != was).any()) for p, was in pairs)
        path, line = self.where or ("", 0)
        built = f"{self.built[0]}:{self.built[1]}"
        counts = {"backwards": self.backwards, "steps": self.steps, "moved": moved}
        return {"optimizer": self.name, "built": built, **counts, "path": path, "line": line}


class _Call:
    """One forward pass of a root module, and what is needed to repeat it: inputs, random state, autocast."""

    def __init__(self, module: Any, args: Any, kwargs: Any) -> None:
        import weakref

        import torch

        self.module = weakref.ref(module)
        self.args, self.kwargs = _detached(args), _detached(kwargs)
        self.versions = self.seen_versions()
        self.random = torch.get_rng_state()
        self.random_cuda = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
        kinds = ("cuda", "cpu") if torch.cuda.is_initialized() else ("cpu",)
        self.autocast = [(kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)]

    def seen_versions(self) -> list[int]:
        """Of the inputs that are tensors themselves; what is nested deeper is seldom changed in place."""
        given = (*self.args, *self.kwargs.values())
        return [each._version for each in given if hasattr(each, "_version") and not each.is_inference()]

    def repeatable(self) -> tuple[Any, str]:
        """The module whose forward can be called again here, or the reason why none can."""
        import torch

        module = self.module()
        if module is None:
            return None, "the module is gone"
        if type(module).__name__ == "DistributedDataParallel":
            module = module.module
        module = getattr(module, "_orig_mod", module)
        if any("FSDP" in type(part).__name__ for part in module.modules()):
            return None, "a sharded module cannot be replayed on one rank"
        if any(isinstance(part, torch.nn.SyncBatchNorm) and part.training for part in module.modules()):
            return None, "a module with SyncBatchNorm cannot be replayed on one rank"
        if self.versions != self.seen_versions():
            return None, "the inputs were changed in place after the forward pass"
        return module, ""


def _replaying(call: _Call, module: Any, stack: list[Any], *, autocast: bool = True) -> Any:
    """A context in which MODULE computes as it did in CALL; afterwards all its state is what it was before.

    Buffers are exchanged for copies, not copied back: writing to them would bump their versions, and the
    job's own backward, which is still to come, would refuse them.
    """
    import contextlib
    import random
    import sys

    import torch

    numpy = sys.modules.get("numpy")
    parts = dict(module.named_modules())
    before = [(part, dict(part._buffers), _flags(part)) for part in parts.values()]
    ours = [torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()]
    with contextlib.ExitStack() as undo:
        undo.callback(torch.set_rng_state, ours[0])
        undo.callback(random.setstate, ours[1])
        if numpy:
            undo.callback(numpy.random.set_state, ours[2])
        if call.random_cuda is not None:
            undo.callback(torch.cuda.set_rng_state, torch.cuda.get_rng_state())
            torch.cuda.set_rng_state(call.random_cuda)
        torch.set_rng_state(call.random)
        for part, buffers, flags in before:
            undo.callback(part.__dict__.update, flags)
            undo.callback(part._buffers.update, buffers)
            part._buffers.update({name: b if b is None else b.detach().clone() for name, b in buffers.items()})
        for name, part in parts.items():
            enter = part.register_forward_pre_hook(lambda part, _, name=name: stack.append((name, part)))
            leave = part.register_forward_hook(lambda *_: stack.pop() and None, always_call=True)
            undo.callback(enter.remove)
            undo.callback(leave.remove)
        for kind, dtype in call.autocast:
            undo.enter_context(torch.autocast(kind, dtype=dtype, enabled=autocast, cache_enabled=False))
        return undo.pop_all()


def _why_forward(job: Job, calls: list[_Call], roots: list[Any]) -> dict[str, Any]:
    """Which operation of which module made the loss not finite."""
    for call in list(calls):
        module, why = call.repeatable()
        if module is None:
            return {"stage": "unknown", "why": why}
        try:
            origin = _forward_origin(job, call, module)
            if origin and origin["stage"] == "forward" and call.autocast:
                origin["autocast"] = str(call.autocast[0][1]).removeprefix("torch.")
                origin["persists"] = _forward_origin(job, call, module, autocast=False) is not None
        except Exception as error:  # noqa: BLE001 - the user's forward runs here; that it fails twice is a result
            return {"stage": "unknown", "why": f"the replay failed: {error!r}"[:300]}
        if origin:
            return origin
    path, line = job.caller()
    return {"stage": "loss", "path": path, "line": line, "chain": _chain(roots)}


def _forward_origin(job: Job, call: _Call, module: Any, *, autocast: bool = True) -> dict[str, Any] | None:
    """Replays CALL and follows every value that is not finite back to where it first arose."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    stack: list[Any] = [("", module)]
    trail = _Trail(job, module, stack)

    class Trace(TorchDispatchMode):  # type: ignore[misc]  # torch's types are not followed
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = (args, kwargs or {})
            before = trail.source(given)
            result = func(*args, **(kwargs or {}))
            for out in _tensors(result):
                trail.follow(out, before, func)
            return result

    with torch.no_grad(), _replaying(call, module, stack, autocast=autocast), Trace():
        result = module.forward(*call.args, **call.kwargs)
    found = [trail.born[t.data_ptr()] for t in _tensors(result) if t.data_ptr() in trail.born]
    return next((record for record in found if record["stage"] != "mask"), None)


class _Trail:
    """Of every value that is not finite: the operation in which it first arose.

    stages of a record: "forward" (an operation made it), "parameter" and "input" (it came in from there), "mask"
    (an infinity put there on purpose, as attention masks are: no fault until it turns into NaN).
    """

    def __init__(self, job: Job, module: Any, stack: list[Any]) -> None:
        self.job, self.module, self.stack = job, module, stack
        self.parameters = {p.data_ptr(): name for name, p in module.named_parameters()}
        self.born: dict[int, dict[str, Any]] = {}
        self.kept: list[Any] = []  # else memory is reused and one address names two tensors

    def source(self, given: Any) -> dict[str, Any]:
        """The record that an operation's inputs bring along: an origin before a mask, empty when all are finite."""
        found: list[dict[str, Any]] = [{"stage": "mask"}] if any(_infinite(leaf) for leaf in _leaves(given)) else []
        for tensor in _tensors(given):
            if tensor.data_ptr() in self.born:
                found.append(self.born[tensor.data_ptr()])
            elif not _all_finite(tensor):
                found.append(self._came_in(tensor))
        return min(found, key=lambda record: record["stage"] == "mask", default={})

    def follow(self, out: Any, before: dict[str, Any], func: Any) -> None:
        """Notes for one result of an operation where what is not finite in it comes from."""
        import torch

        if _all_finite(out):
            self.born.pop(out.data_ptr(), None)
            return
        self.kept.append(out)
        nan = bool(torch.isnan(out).any())
        value = "NaN" if nan else "inf" if bool((out == float("inf")).any()) else "-inf"
        if before and (before["stage"] != "mask" or not nan):
            self.born[out.data_ptr()] = {**self._place(func), **before}
        else:
            self.born[out.data_ptr()] = {**self._place(func), "stage": "forward", "value": value}

    def _came_in(self, tensor: Any) -> dict[str, Any]:
        import torch

        if not bool((torch.isnan(tensor) | (tensor == float("inf"))).any()):
            return {"stage": "mask"}
        name = self.parameters.get(tensor.data_ptr())
        return {"stage": "parameter", "parameter": name} if name else {"stage": "input"}

    def _place(self, func: Any) -> dict[str, Any]:
        path, line = self.job.caller()
        name, part = self.stack[-1]
        own = {"module": name or type(part).__name__, "class": type(part).__name__, "path": path, "line": line}
        return {**own, "op": str(func).split(".")[1], "root": type(self.module).__name__}


def _why_backward(job: Job, calls: list[_Call]) -> dict[str, Any]:
    """Which operation's derivative made a gradient not finite; each forward is repeated and differentiated alone."""
    for call in reversed(calls):
        module, why = call.repeatable()
        if module is None:
            return {"stage": "unknown", "why": why}
        try:
            origin = _backward_origin(job, call, module)
        except Exception as error:  # noqa: BLE001 - the user's forward runs here; that it fails twice is a result
            return {"stage": "unknown", "why": f"the replay failed: {error!r}"[:300]}
        if origin:
            return {"stage": "backward", **origin}
    return {"stage": "unknown", "why": "the derivative of each module alone is finite: it arises in the loss"}


def _backward_origin(job: Job, call: _Call, module: Any) -> dict[str, Any] | None:
    import torch
    from torch.overrides import TorchFunctionMode

    stack: list[Any] = [("", module)]
    places: dict[Any, dict[str, Any]] = {}
    found: list[dict[str, Any]] = []

    class Marks(TorchFunctionMode):  # type: ignore[misc]  # torch's types are not followed
        """Remembers for every node of the graph the line and module that made it."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            nodes = [out.grad_fn for out in _tensors(result) if out.grad_fn is not None]
            while nodes:
                node = nodes.pop()
                if node not in places:
                    path, line = job.caller()
                    name, part = stack[-1]
                    places[node] = {"module": name or type(part).__name__, "path": path, "line": line}
                    places[node]["root"] = type(module).__name__
                    nodes += [following for following, _ in node.next_functions if following is not None]
            return result

    def judge(node: Any) -> Any:
        def hook(made: Any, given: Any) -> None:
            if not found and _all_finite(given) and not _all_finite(made):
                found.append({**places[node], "op": node.name().removesuffix("0").removesuffix("Backward")})

        return hook

    with torch.enable_grad(), _replaying(call, module, stack), Marks():
        result = [out for out in _tensors(module.forward(*call.args, **call.kwargs)) if out.grad_fn is not None]
    for node in places:
        if "AccumulateGrad" not in node.name():
            node.register_hook(judge(node))
    owners = [p for p in module.parameters() if p.requires_grad]
    if result and owners:
        torch.autograd.grad(result, owners, [torch.ones_like(out) for out in result], allow_unused=True)
    return found[0] if found else None


def _chain(roots: list[Any]) -> list[str]:
    """The operations between the loss and the first finite value below it, the last one first; at most six."""
    chain: list[str] = []
    node = next((root.grad_fn for root in roots if root.grad_fn is not None), None)
    while node is not None and len(chain) < 6:
        chain.append(node.name().removesuffix("0").removesuffix("Backward"))
        inner = [following for following, _ in node.next_functions if following is not None]
        node = inner[0] if inner else None
    return chain


def _flags(part: Any) -> dict[str, Any]:
    """A module's plain counters and switches, which its forward may change."""
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in vars(part).items() if type(value) in plain}


def _detached(value: Any) -> Any:
    import torch

    match value:
        case torch.Tensor():
            return value.detach() if value.requires_grad else value
        case tuple() if type(value) is tuple:
            return tuple(_detached(item) for item in value)
        case list():
            return [_detached(item) for item in value]
        case dict() if type(value) is dict:
            return {name: _detached(item) for name, item in value.items()}
        case _:
            return value


def _leaves(value: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return list(tree_leaves(value))


def _tensors(value: Any) -> list[Any]:
    """The floating-point tensors in a nest of tuples, lists and dicts."""
    import torch

    return [leaf for leaf in _leaves(value) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]


def _infinite(leaf: Any) -> bool:
    return isinstance(leaf, float) and leaf in (float("inf"), float("-inf"))


def _all_finite(value: Any) -> bool:
    import torch

    return all(bool(torch.isfinite(tensor).all()) for tensor in _tensors(value))
