"""What calling a function or class of a package gives, and what of it is an event of the training."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.expressions import is_of_rank
from torchtriage.examine.source.execution.lore import MODULE, kind_of, lore
from torchtriage.examine.source.execution.optimizers import Optimizers
from torchtriage.examine.source.execution.tensors import tensors_in
from torchtriage.examine.source.execution.values import (
    Arguments,
    Endless,
    External,
    Function,
    Keywords,
    Loaded,
    Object,
    Parameter,
    Tensor,
    Unknown,
    Value,
    truth,
)

_JOINS = frozenset({"cat", "concat", "concatenate", "vstack", "hstack"})
_GRAD_MODES = {"torch.no_grad": False, "torch.inference_mode": False, "torch.enable_grad": True}


class Library(Optimizers):
    """The packages of an execution. default_format: of autocast on CUDA, "" where the program has set another."""

    default_format = "float16"
    _functions: ClassVar[dict[str, Callable[..., Value]]] = {}

    def escape(self, *values: Value) -> None:
        """Code that is not executed gets VALUES: what they lead to may be changed by it."""
        raise NotImplementedError

    def external(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What calling NAME, of a package, gives."""
        if name.endswith(".__init__") and arguments and isinstance(arguments[0], Object):  # nn.Module.__init__(self)
            arguments[0].state["is_made"] = True
        is_seed = "seed" in name.rpartition(".")[2]
        if is_seed or name in lore()["watched"] or name.startswith(tuple(lore()["watched_packages"])):
            self.happen(events.LibraryCall(self.spot(node), name, arguments, keywords))
        found = self.python(name, arguments, keywords, node)
        if found is not NotImplemented:
            return found
        work = self._functions.get(name)
        if work is not None:
            return work(self, name, arguments, keywords, node)
        made = self._made(name, arguments, keywords, node)
        if made is not NotImplemented:
            return made
        package = name.partition(".")[0]
        if package in ("torch", "torchvision", "einops"):
            return self._of_torch(name, arguments, keywords, node)
        if package == "tqdm":
            return arguments[0] if arguments else keywords.get("iterable", Unknown("tqdm"))
        if package not in lore()["harmless"]["packages"]:
            self.escape(*arguments, *keywords.values())
        return Unknown(name)

    def _made(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """An instance of the class NAME of a package; NotImplemented for what is no class known here."""
        is_order = name.startswith("torch.utils.data.") and name.endswith("Sampler")
        kind = kind_of(name) or ("order" if is_order else "")
        if kind == "wrapper":
            return self.wrapped(name, arguments, keywords, node)
        if kind == "module":
            return self.make_module(name, arguments, keywords, node)
        if not kind:
            return NotImplemented
        made = Object(kind, name, None, self.spot(node), arguments, keywords)
        if kind == "optimizer":
            self.make_optimizer(made, node)
        else:
            self.happen(events.Made(self.spot(node), made))
        return made

    def _of_torch(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A function of torch: an operation on the tensors that it is given, unless it is known to be another thing."""
        head, _, last = name.rpartition(".")
        if head == "torch.nn.functional":
            training = self.is_training(self.under[-1]) if self.under else None
            self.happen(events.FunctionCall(self.spot(node), last, arguments, keywords, training))
        if head == "torch.nn.init":
            for each in tensors_in(arguments[:1]):
                if isinstance(each, Parameter):
                    each.is_empty = False
                each.created = "computed" if each.created else ""
            return arguments[0] if arguments else Unknown(name)
        if head == "torch.distributed":
            return self._distributed(last, arguments, keywords, node)
        if head == "torch" and last in _JOINS and any(_is_made_at(each, node) for each in tensors_in(arguments[:1])):
            self.happen(events.Joined(self.spot(node)))
        if last in lore()["losses"]:
            return self.loss(last, arguments, keywords, node)
        if head == "torch" and last in lore()["tensors"]["creates"]:
            return self.created(last, arguments, keywords, node)
        return self._operation_of(name, [*arguments, *keywords.values()], node)

    def _operation_of(self, name: str, operands: list[Value], node: ast.AST) -> Value:
        head, _, last = name.rpartition(".")
        first = next(iter(tensors_in(operands)), None)
        if first is not None:
            return self.tensor_method(first, last, tuple(each for each in operands if each is not first), {}, node)
        is_function = head in ("torch", "torch.nn.functional") and last[:1].islower()
        is_operation = is_function and last not in lore()["tensors"]["others"]
        is_of_unknown = any(isinstance(each, Unknown) for each in operands)
        return Tensor(self.spot(node), is_open=True) if is_operation and is_of_unknown else Unknown(name)

    def _distributed(self, last: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if last in lore()["collectives"]:
            self.happen(events.Collective(self.spot(node), last))
        if last in ("isend", "irecv") or (last in lore()["collectives"] and truth(keywords.get("async_op", False))):
            handle = Object("handle", f"torch.distributed.{last}", None, self.spot(node))
            self.happen(events.Made(self.spot(node), handle))
            return handle
        return Unknown(last, is_of_rank=last in ("get_rank", "get_node_local_rank", "get_group_rank"))

    def _grad_mode(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if arguments and isinstance(arguments[0], Function):  # torch.no_grad()(function)
            return arguments[0]
        return Object("grad_mode", state={"enabled": _GRAD_MODES[name]})

    def _grad_set(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("grad_mode", state={"enabled": truth(arguments[0] if arguments else True)})

    def _clip(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.clip(arguments, keywords, node)

    def _autocast(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A region, with its format: on CUDA the default unless another is asked for; "" where it may be off."""
        device = (
            arguments[0] if arguments else keywords.get("device_type", "cuda")
        )  # torch.cuda.amp.autocast() has none
        wanted = keywords.get("dtype", arguments[1] if len(arguments) > 1 else None)
        found = wanted.name.removeprefix("torch.") if isinstance(wanted, External) else ""
        if wanted is None and (device == "cuda" or device is True):
            found = self.default_format
        is_on = truth(keywords.get("enabled", True)) is True
        return Object("autocast", state={"format": found if is_on else ""})

    def _autocast_default(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.default_format = ""

    def _parameter(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made = Parameter(self.spot(node))
        made.graph = frozenset({made})
        made.requires_grad = truth(keywords.get("requires_grad", arguments[1] if len(arguments) > 1 else True))
        data = arguments[0] if arguments else keywords.get("data")
        made.is_empty = isinstance(data, Tensor) and data.created == "empty"
        return made

    def _save(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        given = dict(zip(("obj", "f"), arguments, strict=False)) | dict(keywords)
        self.happen(events.Save(self.spot(node), given.get("obj"), given.get("f")))

    def _sum(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = self.listed(arguments[0], node) if arguments else []
        total: Value = 0
        for each in found if isinstance(found, list) else [Unknown(name)]:
            total = self.binary(ast.Add(), total, each, node)
        return total

    def _device(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        rank = next(filter(is_of_rank, arguments), None)
        return Unknown("a device" if rank is None else rank.why, is_of_rank=rank is not None, is_plain=True)

    def _shard(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """fully_shard(module): the same module, with other parameters."""
        first = arguments[0] if arguments else keywords.get("module")
        made = Object("shard", name, None, self.spot(node), arguments, keywords, state={"module": first})
        self.happen(events.Made(self.spot(node), made))
        return first

    def _load(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Loaded("torch.load", path=arguments[0] if arguments else keywords.get("f"), spot=self.spot(node))

    def _profiled(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made = Object("profiler", name, None, self.spot(node), arguments, keywords)
        self.happen(events.Made(self.spot(node), made))
        return made

    def _gradients(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.GradientCall(self.spot(node)))
        return Endless(lambda _: Tensor(self.spot(node), is_open=True))

    def _checkpointed(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.call(arguments[0], arguments[1:], {}, node) if arguments else Unknown(name)

    def _chained(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        parts = arguments
        if name.endswith("from_iterable"):
            parts = tuple(arguments[0]) if arguments and isinstance(arguments[0], list | tuple) else (Unknown(),)
        found = [self.listed(each, node) for each in parts]
        return (
            [each for one in found for each in one] if all(isinstance(each, list) for each in found) else Unknown(name)
        )

    def _counted(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        start = arguments[0] if arguments and isinstance(arguments[0], int) else 0
        return Endless(lambda number: start + number)

    def _cycled(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        return Endless(lambda number: self.element(over, number, node), over)

    def _true(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """Whether there is a device: a program is checked as it runs where it is meant to."""
        return True

    def is_subclass(self, name: str, of: str) -> bool | None:
        if of == MODULE:
            return kind_of(name) in ("module", "wrapper") or None
        return name == of if name.startswith("torch.nn.") and of.startswith("torch.nn.") else None


def _is_made_at(tensor: Tensor, node: ast.AST) -> bool:
    """Whether TENSOR is what NODE has given before."""
    return tensor.spot is not None and tensor.spot.node is node


Library._functions = {
    **dict.fromkeys(_GRAD_MODES, Library._grad_mode),
    "torch.set_grad_enabled": Library._grad_set,
    "torch.autograd.set_grad_enabled": Library._grad_set,
    "torch.nn.utils.clip_grad_norm_": Library._clip,
    "torch.nn.utils.clip_grad_value_": Library._clip,
    "torch.nn.utils.clip_grads_with_norm_": Library._clip,
    "timm.utils.dispatch_clip_grad": Library._clip,
    "torch.amp.autocast": Library._autocast,
    "torch.set_autocast_dtype": Library._autocast_default,
    "torch.set_autocast_gpu_dtype": Library._autocast_default,
    "torch.nn.Parameter": Library._parameter,
    "builtins.sum": Library._sum,
    "torch.save": Library._save,
    "torch.load": Library._load,
    "torch.distributed.fsdp.fully_shard": Library._shard,
    "torch.distributed._composable.fsdp.fully_shard": Library._shard,
    "torch.profiler.profile": Library._profiled,
    "torch.device": Library._device,
    "torch.autograd.grad": Library._gradients,
    "torch.utils.checkpoint.checkpoint": Library._checkpointed,
    "torch.cuda.is_available": Library._true,
    "torch.distributed.is_available": Library._true,
    "torch.cuda.is_bf16_supported": Library._true,
    "itertools.chain": Library._chained,
    "itertools.chain.from_iterable": Library._chained,
    "itertools.count": Library._counted,
    "itertools.islice": Library._cycled,
    "itertools.cycle": Library._cycled,
}
