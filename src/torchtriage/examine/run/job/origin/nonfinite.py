"""Where a value that is not finite first arose: repeated passes, followed operation by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..code import frames
from ..events import NonFinite, replace
from .replay import replaying, silent

if TYPE_CHECKING:
    from .replay import Call, Calls


def why_forward(calls: Calls, roots: list[Any]) -> NonFinite:
    """Which operation of which module made the loss not finite."""
    for call in list(calls):
        module, why = call.repeatable()
        if module is None:
            return NonFinite(stage="unknown", why=why)
        try:
            origin = _forward_origin(call, module)
            if origin and origin.stage == "forward" and call.autocast:
                origin.autocast = str(call.autocast[0][1]).removeprefix("torch.")
                origin.persists = _forward_origin(call, module, autocast=False) is not None
        except Exception as error:  # noqa: BLE001 - the user's forward runs here; that it fails twice is a result
            return NonFinite(stage="unknown", why=f"the replay failed: {error!r}"[:300])
        if origin and not (calls.missed and origin.stage == "input"):
            return origin
        if origin:
            break
    why = _unwatched(calls, roots)
    if why:
        return NonFinite(stage="unknown", why=why)
    path, line = frames.caller()
    return NonFinite(stage="loss", path=path, line=line, chain=_chain(roots))


def _unwatched(calls: Calls, roots: list[Any]) -> str:
    """Why the fault may lie in a module that was not replayed; empty when it cannot."""
    if calls.missed:
        return f"{calls.missed} more calls of modules were not kept for a replay"
    modules = [module for call in calls if (module := call.module()) is not None]
    replayed = {id(owner) for module in modules for owner in module.parameters()}
    if any(id(leaf) not in replayed for leaf in leaves(roots)):
        return "the loss depends on a parameter of no module that was watched: one first called late is not"
    return ""


def leaves(roots: Any) -> list[Any]:
    """The tensors that a backward from ROOTS gives gradients to."""
    found: list[Any] = [root for root in roots if root.requires_grad and root.is_leaf]
    nodes = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        following = {each for each, _ in node.next_functions if each is not None} - seen
        seen |= following
        nodes += following
    return found


def _forward_origin(call: Call, module: Any, *, autocast: bool = True) -> NonFinite | None:
    """Replays CALL and follows every value that is not finite back to where it first arose."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    stack: list[Any] = [("", module)]
    trail = _Trail(module, stack)

    class Trace(TorchDispatchMode):  # type: ignore[misc]  # torch's types are not followed
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            before = trail.source((args, kwargs or {}), func)
            result = func(*args, **(kwargs or {}))
            for out in tensors(result):
                trail.follow(out, before, func)
            return result

    with torch.no_grad(), replaying(call, module, stack, autocast=autocast), Trace():
        result = module.forward(*call.args, **call.kwargs)
    found = [trail.born[t.data_ptr()] for t in tensors(result) if t.data_ptr() in trail.born]
    return next((origin for origin in found if origin.stage != "mask"), None)


class _Trail:
    """Of every value that is not finite: the operation in which it first arose.

    Its stage is "forward" (an operation made it), "parameter" or "input" (it came in from there), or "mask" (an
    infinity put there on purpose, as attention masks are: no fault until it turns into NaN).
    """

    def __init__(self, module: Any, stack: list[Any]) -> None:
        self.module, self.stack = module, stack
        self.parameters = {p.data_ptr(): name for name, p in module.named_parameters()}
        self.born: dict[int, NonFinite] = {}
        self.stored: dict[int, NonFinite] = {}  # the same by storage
        self.kept: list[Any] = []  # else memory is reused and one address names two tensors

    def source(self, given: Any, func: Any) -> NonFinite | None:
        """What the inputs of an operation bring along: an origin before a mask; None when all are finite."""
        found = [NonFinite(stage="mask")] if any(_infinite(leaf) for leaf in _leaves(given)) else []
        for tensor in tensors(given):
            if tensor.data_ptr() in self.born:
                found.append(self.born[tensor.data_ptr()])
            elif not _all_finite(tensor):
                base = tensor.untyped_storage().data_ptr()  # written through, or hidden by, a view of the same memory
                found.append(self.stored.get(base) or self._came_in(tensor, func))
        return min(found, key=lambda origin: origin.stage == "mask", default=None)

    def follow(self, out: Any, before: NonFinite | None, func: Any) -> None:
        """Notes for one result of an operation where what is not finite in it comes from."""
        import torch

        if _all_finite(out):
            self.born.pop(out.data_ptr(), None)
            return
        self.kept.append(out)
        nan = bool(torch.isnan(out).any())
        value = "NaN" if nan else "inf" if bool((out == float("inf")).any()) else "-inf"
        if before is None or (before.stage == "mask" and nan):
            before = replace(self._met(func, "forward"), value=value)
        self.born[out.data_ptr()] = before
        self.stored.setdefault(out.untyped_storage().data_ptr(), before)

    def _came_in(self, tensor: Any, func: Any) -> NonFinite:
        if is_mask(tensor):
            return NonFinite(stage="mask")
        name = self.parameters.get(tensor.data_ptr())
        return replace(self._met(func, "parameter"), parameter=name) if name else self._met(func, "input")

    def _met(self, func: Any, stage: str) -> NonFinite:
        path, line = frames.caller()
        name, part = self.stack[-1]
        kind, root = type(part).__name__, type(self.module).__name__
        op = str(func).split(".")[1]
        return NonFinite(stage=stage, module=name or kind, class_=kind, root=root, op=op, path=path, line=line)


def why_backward(calls: Calls) -> NonFinite:
    """Which operation's derivative made a gradient not finite; each forward is repeated and differentiated alone."""
    for call in reversed(calls):
        module, why = call.repeatable()
        if module is None:
            return NonFinite(stage="unknown", why=why)
        try:
            origin = _backward_origin(call, module)
        except Exception as error:  # noqa: BLE001 - the user's forward runs here; that it fails twice is a result
            return NonFinite(stage="unknown", why=f"the replay failed: {error!r}"[:300])
        if origin:
            return origin
    if calls.missed:
        return NonFinite(stage="unknown", why=f"{calls.missed} more calls of modules were not kept for a replay")
    return NonFinite(stage="unknown", why="the derivative of each watched module alone is finite: it arises elsewhere")


def _backward_origin(call: Call, module: Any) -> NonFinite | None:
    import torch
    from torch.overrides import TorchFunctionMode

    stack: list[Any] = [("", module)]
    root = type(module).__name__
    makers: dict[Any, NonFinite] = {}
    found: list[NonFinite] = []

    class Marks(TorchFunctionMode):  # type: ignore[misc]  # torch's types are not followed
        """Remembers for every node of the graph the line and module that made it."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            nodes = [out.grad_fn for out in tensors(result) if out.grad_fn is not None]
            while nodes:
                node = nodes.pop()
                if node not in makers:
                    path, line = frames.caller()
                    name, part = stack[-1]
                    owner = name or type(part).__name__
                    makers[node] = NonFinite(stage="backward", module=owner, root=root, path=path, line=line)
                    nodes += [following for following, _ in node.next_functions if following is not None]
            return result

    def judge(node: Any) -> Any:
        def hook(made: Any, given: Any) -> None:
            if not found and _all_finite(given) and not _all_finite(made):
                found.append(replace(makers[node], op=node.name().removesuffix("0").removesuffix("Backward")))

        return hook

    with torch.enable_grad(), replaying(call, module, stack), Marks():
        result = [out for out in tensors(module.forward(*call.args, **call.kwargs)) if out.grad_fn is not None]
    for node in makers:
        if "AccumulateGrad" not in node.name():
            node.register_hook(judge(node))
    owners = [p for p in module.parameters() if p.requires_grad]
    if result and owners:
        with silent():
            torch.autograd.grad(result, owners, [torch.ones_like(out) for out in result], allow_unused=True)
    return found[0] if found else None


def _chain(roots: list[Any]) -> list[str]:
    """The operations between the loss and the first finite value below it, the last one first; at most six."""
    chain: list[str] = []
    node = next((root.grad_fn for root in roots if root.grad_fn is not None), None)
    while node is not None and len(chain) < 6:
        power = getattr(node, "_saved_exponent", 0)  # of a square nothing is undefined
        whole = isinstance(power, (int, float)) and power >= 1
        chain.append("Square" if whole else node.name().removesuffix("0").removesuffix("Backward"))
        inner = [following for following, _ in node.next_functions if following is not None]
        node = inner[0] if inner else None
    return chain


def _leaves(value: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return list(tree_leaves(value))


def tensors(value: Any) -> list[Any]:
    """The floating-point tensors in a nest of tuples, lists and dicts."""
    import torch

    return [leaf for leaf in _leaves(value) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]


def is_mask(tensor: Any) -> bool:
    """Whether what is not finite in TENSOR is minus infinity beside one and the same number, as in attention masks."""
    import torch

    finite = tensor[torch.isfinite(tensor)]
    below = finite.numel() + int((tensor == float("-inf")).sum()) == tensor.numel()
    return below and (not finite.numel() or bool(finite.min() == finite.max()))


def _infinite(leaf: Any) -> bool:
    return isinstance(leaf, float) and leaf in (float("inf"), float("-inf"))


def _all_finite(value: Any) -> bool:
    import torch

    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors(value))
