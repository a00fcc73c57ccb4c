"""What calling a function or class of a package gives, and what of it is an event of the training."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import SHIFTED
from torchtriage.examine.source.execution.autograd import Parameter, Tensor, release
from torchtriage.examine.source.execution.bounds import ABOVE, FREE
from torchtriage.examine.source.execution.contexts import GRAD_MODES, Contexts
from torchtriage.examine.source.execution.graphs import tensors_in
from torchtriage.examine.source.execution.lore import BASES, MODULE, kind_of, lore
from torchtriage.examine.source.execution.ranks import Guard, is_of_rank, names_rank
from torchtriage.examine.source.execution.values import (
    BROADCAST,
    Arguments,
    Endless,
    Function,
    Keywords,
    Loaded,
    Member,
    Object,
    Unknown,
    Value,
    given_model,
    share_of,
    truth,
)
from torchtriage.examine.source.roles import gives_model
from torchtriage.examine.source.torch_api.families import FACTORIES
from torchtriage.examine.source.torch_api.symbols import symbols

_STEPS = (1, 10, 100, 1_000, 10_000)
_JOINS = frozenset({"cat", "concat", "concatenate", "vstack", "hstack"})
_DROPOUTS = frozenset({"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})
"""Functions of torch itself that are those of torch.nn.functional, with the mode in third place."""
_NO_TENSORS = frozenset({"math", "numpy"})
"""Packages that give numbers and arrays, of whatever."""
_NUMBERS = frozenset(f"builtins.{name}" for name in ("int", "float", "bool", "str", "len", "isinstance", "hasattr"))


class Library(Contexts):
    """The packages of an execution."""

    worker: Object | None = None
    guards: list[Guard]
    _functions: ClassVar[dict[str, Callable[..., Value]]] = {}

    def external(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What calling NAME, of a package, gives."""
        if name.endswith(".__init__") and arguments and isinstance(arguments[0], Object):  # nn.Module.__init__(self)
            arguments[0].state["is_made"] = True
        is_seed = "seed" in name.rpartition(".")[2]
        if (
            is_seed
            or self.worker is not None
            or name in lore()["watched"]
            or name.startswith(tuple(lore()["watched_packages"]))
        ):
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
        return self._unseen(name, arguments, keywords, node)

    def _unseen(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What NAME of a package that is not executed gives; it may change what it is given."""
        package = name.partition(".")[0]
        for each in (*arguments, *keywords.values()):  # stack.enter_context(profile(…))
            if isinstance(each, Object) and each.kind in ("handle", "profiler"):
                each.has_escaped = True
        if package not in lore()["harmless"]["packages"]:
            if self.guards:
                self.happen(events.UnseenCall(self.spot(node)))
            self.escape(*arguments, *keywords.values())
        if package == "sklearn" or name.endswith((".mean", ".fmean")):
            for each in arguments:
                self.note_average(each, node)
        given = (*arguments, *keywords.values())
        is_rank = names_rank(name.rpartition(".")[2]) or any(map(is_of_rank, given))
        is_plain = package in _NO_TENSORS or name in _NUMBERS
        source = next((each for each in given if isinstance(each, Unknown)), None)
        return Unknown(name, is_of_rank=is_rank, is_plain=is_plain, share=share_of(given), source=source)

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
        if kind == "scheduler" and name.endswith(".LambdaLR"):
            made.state["factors"] = self._factors(made.argument("lr_lambda", 1), node)
        if kind == "optimizer":
            self.make_optimizer(made, node)
        else:
            self.happen(events.Made(self.spot(node), made))
        return made

    def _factors(self, work: Value, node: ast.AST) -> list[Value]:
        """By what the function WORK of a LambdaLR multiplies the rate, early, and in the course of a training."""
        begun = len(self.events)
        found = [self.call(work, (step,), {}, node) for step in _STEPS] if isinstance(work, Function) else [Unknown()]
        del self.events[begun:]
        return found

    def _note_draw(self, keywords: Keywords, node: ast.AST) -> None:
        """torch.randn(…, generator=generator)."""
        generator = keywords.get("generator")
        if isinstance(generator, Object) and generator.kind == "generator":
            self.happen(events.Draw(self.spot(node), generator))

    def _of_torch(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A function of torch: an operation on the tensors that it is given, unless it is known to be another thing."""
        head, _, last = name.rpartition(".")
        self._note_draw(keywords, node)
        if head == "torch.nn.functional" or (head == "torch" and last in _DROPOUTS):
            training = self.is_training(self.under[-1]) if self.under else None
            word = last if head != "torch" else f"torch.{last}"
            self.happen(events.FunctionCall(self.spot(node), word, arguments, keywords, training))
        for each in self.overwritten(name, arguments, keywords):
            self.overwrite(each, node)
        if head == "torch.nn.init":
            return self._initialized(name, arguments, node)
        if head.startswith("torch.distributed"):
            return self._distributed(name, arguments, keywords, node)
        return self._computed_by(name, arguments, keywords, node)

    def _initialized(self, name: str, arguments: Arguments, node: ast.AST) -> Value:
        """torch.nn.init.NAME(tensor): its memory is filled."""
        is_zero = name.endswith(".zeros_") or (name.endswith(".constant_") and arguments[1:] == (0,))
        for each in tensors_in(arguments[:1]):
            if isinstance(each, Parameter):
                each.zeroed = self.spot(node) if is_zero else None
                if each.owner is not None:
                    each.owner.state["is_set"] = True
            each.is_empty = False
            for one in each.graph:  # weight[i].view(shape): a part of it
                one.is_empty = False
        return arguments[0] if arguments else Unknown(name)

    def _computed_by(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What the function NAME of torch makes or computes."""
        head, _, last = name.rpartition(".")
        if head == "torch" and last in _JOINS and any(_is_made_at(each, node) for each in tensors_in(arguments[:1])):
            self.happen(events.Joined(self.spot(node)))
        if name in symbols().tensor_classes and (len(arguments) > 1 or isinstance(next(iter(arguments), None), int)):
            made = self.created("empty", (), keywords, node)  # torch.FloatTensor(rows, columns)
            is_on_host = not name.startswith("torch.cuda.")
            made.created = last if made.created and is_on_host else ""
            made.device = made.device if is_on_host else "cuda"
            return made
        if last in lore()["losses"]:
            return self.loss(last, arguments, keywords, node)
        if head == "torch" and (last in lore()["tensors"]["creates"] or last in FACTORIES):
            return self.created(last, arguments, keywords, node)
        result = self._operation_of(name, [*arguments, *keywords.values()], node)
        is_of_parts = head == "torch.sparse" or last.startswith("sparse_")  # it is made of indices, and of values
        if (head.startswith("torch.ops") or is_of_parts) and isinstance(result, Tensor):  # packed weights are no tensor
            result.created = ""
        return result

    def _operation_of(self, name: str, operands: list[Value], node: ast.AST) -> Value:
        head, _, last = name.rpartition(".")
        if head.startswith("torch._"):  # torch._refs.expand(x, shape), called for what it raises; _export is a tool
            is_operation = head.startswith(("torch._refs", "torch._prims", "torch._decomp"))
            return self.merged(operands, node) if is_operation else Unknown(name)
        is_function = head in ("torch", "torch.nn.functional") and last[:1].islower()
        first = next(iter(tensors_in(operands)), None)
        if first is None and is_function and last not in lore()["tensors"]["others"]:
            unknown = [each for each in operands if isinstance(each, Unknown) and not each.is_plain]
            if unknown:
                first = Tensor(self.spot(node), is_open=True, bounds=ABOVE if unknown[0].why == SHIFTED else FREE)
                operands = [each for each in operands if each is not unknown[0]]
        if first is None:
            return Unknown(name, is_of_rank=any(map(is_of_rank, operands)))
        return self.tensor_method(first, last, tuple(each for each in operands if each is not first), {}, node)

    def _distributed(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        head, _, last = name.rpartition(".")
        is_of_ranks = last in lore()["checkpoint_collectives"] and not keywords.keys() & set(lore()["alone"])
        if head.startswith("torch.distributed.checkpoint") and is_of_ranks:
            self.happen(events.Collective(self.spot(node), last))
        if head != "torch.distributed":
            return self._operation_of(name, [*arguments, *keywords.values()], node)
        if last in lore()["collectives"]:
            is_of_all = keywords.get("group") is None and "**" not in keywords and not _asks_for_group(node)
            self.happen(events.Collective(self.spot(node), last, is_of_all and not any(map(_is_group, arguments))))
            for each in tensors_in(arguments):  # what is summed over ranks is no sum of one tensor any more
                each.activation = ""
        if last == "broadcast_object_list" and arguments and isinstance(arguments[0], list):
            arguments[0][:] = [Unknown(BROADCAST) for _ in arguments[0]]
        if last in ("isend", "irecv", "batch_isend_irecv") or (
            last in lore()["collectives"] and truth(keywords.get("async_op", False))
        ):
            handle = Object("handle", f"torch.distributed.{last}", None, self.spot(node))
            self.happen(events.Made(self.spot(node), handle))
            return [handle] if last == "batch_isend_irecv" else handle
        return Unknown(last, is_of_rank=last in ("get_rank", "get_node_local_rank", "get_group_rank"))

    def _clip(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.clip(arguments, keywords, node)

    def _parameter(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made = Parameter(self.spot(node))
        made.graph = frozenset({made})
        made.requires_grad = truth(keywords.get("requires_grad", arguments[1] if len(arguments) > 1 else True))
        if made.requires_grad is False:
            made.graph = frozenset()
        data = arguments[0] if arguments else keywords.get("data")
        made.is_empty = isinstance(data, Tensor) and data.is_empty
        if isinstance(data, Tensor):
            made.base, made.device = data, data.device
        release(data)
        return made

    def _variable(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """Variable(tensor): a leaf with the same values."""
        first = arguments[0] if arguments else keywords.get("data")
        if not isinstance(first, Tensor):
            return first
        wanted = truth(keywords.get("requires_grad", False)) is True
        return replace(
            first, spot=self.spot(node), graph=frozenset(), ages=frozenset(), grad_fn=None, is_open=False,
            cut=self.spot(node) if first.graph else first.cut, is_leaf=wanted,
        )  # fmt: skip

    def _buffer(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """nn.Buffer(tensor): the module that it becomes an attribute of moves it."""
        return Tensor(self.spot(node))

    def _save(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        given = dict(zip(("obj", "f"), arguments, strict=False)) | dict(keywords)
        self.happen(events.Save(self.spot(node), given.get("obj"), given.get("f")))

    def _extreme(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """min(1.0, max_norm / norm) of Python's own."""
        return self.merged(arguments, node) if any(tensors_in(arguments)) else Unknown.of(name, *arguments)

    def _device(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        rank = next(filter(is_of_rank, arguments), None)
        if rank is not None:
            self.happen(events.LibraryCall(self.spot(node), name, arguments, keywords))
        named = arguments[0] if arguments and isinstance(arguments[0], str) else "a device"
        return Unknown(named if rank is None else rank.why, is_of_rank=rank is not None, is_plain=True)

    def _shard(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """fully_shard(module): the same module, with other parameters."""
        first = arguments[0] if arguments else keywords.get("module")
        made = Object("shard", name, None, self.spot(node), arguments, keywords, state={"module": first})
        self.happen(events.Made(self.spot(node), made))
        return first

    def _opened(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A file, whose receiver is its path."""
        path = arguments[0] if arguments else keywords.get("file")
        return Member(name, is_of_rank(path), receiver=path, name="open")

    def _load(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        path = arguments[0] if arguments else keywords.get("f")
        spot = self.spot(node)
        return Loaded("torch.load", is_of_rank(path), path=path, spot=spot, loaded=spot)

    def _profiled(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made = Object("profiler", name, None, self.spot(node), arguments, keywords)
        self.happen(events.Made(self.spot(node), made))
        return made

    def _anomaly(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """Anomaly detection: set for good, or for as long as its `with`."""
        mode = arguments[0] if arguments else keywords.get("mode", True)
        is_on = name.endswith(".detect_anomaly") or mode
        return Object("anomaly", name, None, self.spot(node), arguments, keywords, state={"is_on": truth(is_on)})

    def _gradients(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        outputs = arguments[0] if arguments else keywords.get("outputs")
        self.happen(events.GradientCall(self.spot(node), outputs))
        return Endless(lambda _: Tensor(self.spot(node), is_open=True))

    def _checkpointed(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.call(arguments[0], arguments[1:], {}, node) if arguments else Unknown(name)

    def _set_in_module(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """nn.Module.__setattr__(self, f"layer{number}", layer)."""
        held = arguments[0] if arguments else None
        return self.module_method(held, "__setattr__", arguments[1:], {}, node) if isinstance(held, Object) else None

    def _true(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """Whether there is a device: a program is checked as it runs where it is meant to."""
        return True

    def is_subclass(self, name: str, of: str) -> bool | None:
        if of == MODULE:
            return kind_of(name) in ("module", "wrapper") or None
        if (gives_model(name) or name in BASES) and of.startswith("torch.nn."):  # a whole model is no layer
            return False
        return name == of if name.startswith("torch.nn.") and of.startswith("torch.nn.") else None


def _is_group(value: Value) -> bool:
    """Whether VALUE, an argument of a collective, is a group of some ranks."""
    return isinstance(value, Unknown) and (value.why == "new_group" or "group" in value.why)


def _asks_for_group(node: ast.AST) -> bool:
    """Whether the call NODE names a group: one that others set, and that is None as far as anyone sees."""
    given = (each.value for each in node.keywords if each.arg == "group") if isinstance(node, ast.Call) else ()
    return any(not isinstance(each, ast.Constant) and "WORLD" not in ast.unparse(each) for each in given)


def _is_made_at(tensor: Tensor, node: ast.AST) -> bool:
    """Whether TENSOR is what NODE has given before."""
    return tensor.spot is not None and tensor.spot.node is node


Library._functions = {
    **dict.fromkeys(GRAD_MODES, Library._grad_mode),
    "torch.set_grad_enabled": Library._grad_set,
    "torch.autograd.set_grad_enabled": Library._grad_set,
    "torch._C._set_grad_enabled": Library._grad_set,
    "torch.nn.utils.clip_grad_norm_": Library._clip,
    "torch.nn.utils.clip_grad_value_": Library._clip,
    "torch.nn.utils.clip_grads_with_norm_": Library._clip,
    "timm.utils.dispatch_clip_grad": Library._clip,
    "torch.amp.autocast": Library._autocast,
    "torch.set_autocast_dtype": Library._autocast_default,
    "torch.set_autocast_gpu_dtype": Library._autocast_default,
    "torch.nn.Parameter": Library._parameter,
    "torch.autograd.Variable": Library._variable,
    "torch.nn.Buffer": Library._buffer,
    **dict.fromkeys(("builtins.min", "builtins.max"), Library._extreme),
    "torch.save": Library._save,
    "builtins.open": Library._opened,
    "torch.load": Library._load,
    "torch.distributed.fsdp.fully_shard": Library._shard,
    "torch.distributed._composable.fsdp.fully_shard": Library._shard,
    **dict.fromkeys(symbols().profilers, Library._profiled),
    **dict.fromkeys(symbols().anomaly_setters | symbols().anomaly_contexts, Library._anomaly),
    "torch.device": Library._device,
    "torch.autograd.grad": Library._gradients,
    "torch.utils.checkpoint.checkpoint": Library._checkpointed,
    "torch.cuda.is_available": Library._true,
    "torch.distributed.is_available": Library._true,
    "torch.cuda.is_bf16_supported": Library._true,
    "torch.nn.Module.__setattr__": Library._set_in_module,
    "torch.jit.trace": lambda self, name, arguments, keywords, node: given_model(self.spot(node)),
}
