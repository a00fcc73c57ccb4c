"""What starts or owns a training: launchers of processes and of command lines, Accelerate, Lightning."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.calls import Calls
from torchtriage.examine.source.execution.library import Library
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.values import Arguments, Keywords, Object, Unknown, Value

LIGHTNING = "pytorch_lightning.LightningModule"


class Frameworks(Calls):
    """A framework does here what its documentation says that it does with a program's own parts."""

    _of_accelerator: ClassVar[dict[str, Callable[..., Value]]] = {}

    # launchers

    def _spawn(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """torch.multiprocessing.spawn(function, args=(…)): it gets the number of its process first."""
        given = dict(zip(("fn", "args"), arguments, strict=False)) | dict(keywords)
        rest = given.get("args", ())
        rank = Unknown("rank", is_of_rank=True)
        self.call(given.get("fn", Unknown()), (rank, *(rest if isinstance(rest, tuple | list) else ())), {}, node)
        return None

    def _process(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A process of its own: what it does is done when it is made."""
        rest, target = keywords.get("args", ()), keywords.get("target")
        values = list(rest) if isinstance(rest, tuple | list) else []
        for place, word in enumerate(_argument_names(node)[: len(values)]):
            if word in self.turning:  # for rank in range(size): Process(target=run, args=(rank, size))
                values[place] = Unknown("rank", is_of_rank=True)
        if target is not None:
            self.call(target, tuple(values), {}, node)
        return Unknown("a process")

    def _launched(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """fire.Fire(main), notebook_launcher(main, args=(…)), app.run(main): the function, with what it is given."""
        first = arguments[0] if arguments else keywords.get("function", Unknown())
        rest = keywords.get("args", arguments[1] if len(arguments) > 1 else ())
        values = tuple(rest) if isinstance(rest, tuple | list) else ()
        return self.call(first, values if name.startswith("accelerate.") else (), {}, node)

    # Accelerate

    def _accelerator(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made = Object("accelerator", name, None, self.spot(node), arguments, keywords)
        self.happen(events.Made(self.spot(node), made))
        return made

    def special(self, value: Object, name: str) -> Value:
        if value.kind == "accelerator" and name not in self._of_accelerator:
            return Unknown(name, is_of_rank=name in ("is_main_process", "is_local_main_process", "process_index"))
        return super().special(value, name)

    def _method_of_accelerator(
        self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        return self._of_accelerator[name](self, arguments, keywords, node)

    def _scattered(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """data_parallel(model, batch): the model is called, on all devices."""
        return self.call(arguments[0], arguments[1:2], {}, node) if arguments else Unknown(name)

    def _prepared(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return arguments[0] if len(arguments) == 1 else arguments

    def _propagate(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if arguments and isinstance(arguments[0], Tensor):
            self.backward(arguments[0], keywords, node)
        else:
            self.blind.add("backward")
        return None

    def _unwrapped(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        first = arguments[0] if arguments else Unknown()
        return bare(first) if isinstance(first, Object) else first

    def _gathered(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.Collective(self.spot(node), "gather"))
        first = arguments[0] if arguments else Unknown()
        return Tensor(self.spot(node)) if isinstance(first, Tensor) else first

    def _met(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.Collective(self.spot(node), "barrier"))

    def _saved(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return None  # on the main process alone

    # transformers

    def _train_by(self, trainer: Object, node: ast.AST) -> None:
        """TRAINER.train() of a class that computes its own loss."""
        method = trainer.method("compute_loss")
        model = trainer.argument("model", 0, Unknown())
        if method is None:
            return
        with self._turns(ast.copy_location(ast.Pass(), method.node)) as turns:
            for _ in turns:
                given = self.call(self.bound(trainer, method), (model, Unknown("inputs")), {}, method.node)
                loss = given[0] if isinstance(given, tuple) and given else given
                if isinstance(loss, Tensor):
                    self.backward(loss, {}, method.node)

    # Lightning

    def fit(self, module: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> None:
        """Trainer.fit(MODULE, …): two epochs of three batches, as the Trainer goes through them."""
        optimizers = self._configured(module, node)
        loader = keywords.get("train_dataloaders", arguments[1] if len(arguments) > 1 else None)
        is_manual = module.values.get("automatic_optimization") is False
        step = module.method("training_step")
        if step is None:
            return
        for each in self.modules(module):
            each.state["is_moved"] = True
        epochs, batches = ast.copy_location(ast.Pass(), step.node), ast.copy_location(ast.Pass(), step.node)
        with self._turns(epochs) as turns:
            for _ in turns:
                self._hook_of(module, "on_train_epoch_start", (), node)
                with self._turns(batches) as inner:
                    for number in inner:
                        batch = self.element(loader, number, node)
                        self._trained(module, optimizers, (batch, number), step.node, is_manual=is_manual)
                self._validated(module, node)
                self._hook_of(module, "on_train_epoch_end", (), node)

    @contextmanager
    def _turns(self, node: ast.AST) -> Iterator[Iterator[int]]:
        with self.loop(node) as loop:
            loop.is_endless = True

            def numbers() -> Iterator[int]:
                while self.goes_on(loop):
                    yield loop.count

            yield numbers()

    def _trained(
        self, module: Object, optimizers: list[Object], batch: Arguments, node: ast.AST, *, is_manual: bool
    ) -> None:
        given = self._hook_of(module, "training_step", batch, node)
        loss = given.get("loss") if isinstance(given, dict) else given
        if is_manual or not isinstance(loss, Tensor):
            return
        for each in optimizers:
            self.zero(self.optimized(each), node)
        self.backward(loss, {}, node)
        for each in optimizers:
            self.step(each, node)

    def _validated(self, module: Object, node: ast.AST) -> None:
        before, self.is_grad = self.is_grad, False
        self.set_mode(module, False, node)
        with self._turns(ast.copy_location(ast.Pass(), node)) as turns:
            for number in turns:
                self._hook_of(module, "validation_step", (Tensor(self.spot(node)), number), node)
        self._hook_of(module, "on_validation_epoch_end", (), node)
        self.set_mode(module, True, node)
        self.is_grad = before

    def _hook_of(self, module: Object, name: str, arguments: Arguments, node: ast.AST) -> Value:
        method = module.method(name)
        return self.call(self.bound(module, method), arguments, {}, node) if method is not None else None

    def _configured(self, module: Object, node: ast.AST) -> list[Object]:
        """The optimizers that configure_optimizers gives, in any of its forms."""
        waiting, found = [self._hook_of(module, "configure_optimizers", (), node)], []
        while waiting:
            each = waiting.pop(0)
            if isinstance(each, Object) and each.kind == "optimizer":
                found.append(each)
            elif isinstance(each, dict):
                waiting.append(each.get("optimizer"))
            elif isinstance(each, list | tuple):
                waiting += each
        return found

    def _trainer(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("trainer", name, None, self.spot(node), arguments, keywords)

    def _method_of_trainer(
        self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        if name == "train" and held.method("compute_loss") is not None:
            self._train_by(held, node)
            return Unknown(name)
        module = keywords.get("model", arguments[0] if arguments else None)
        is_own = isinstance(module, Object) and module.cls is not None and LIGHTNING in module.cls.externals
        if name == "fit" and is_own:
            self.fit(module, arguments, keywords, node)
        elif name == "fit":
            self.escape(*arguments, *keywords.values())
        return Unknown(name)

    # apex

    def _initialize_amp(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """model, optimizer = amp.initialize(model, optimizer): the same, made for float16."""
        given = (*arguments[:2], *(keywords[each] for each in ("models", "optimizers") if each in keywords))
        return given[0] if len(given) == 1 else given

    def _scale_loss(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """`with amp.scale_loss(loss, optimizer) as scaled`: behind it the gradients are unscaled again."""
        return Object("scaled", name, state={"loss": arguments[0] if arguments else keywords.get("loss")})


def _argument_names(node: ast.AST) -> list[str]:
    """The names in `args=(…)` of NODE, the call that makes a process; "" for what is none."""
    values = next((each.value for each in getattr(node, "keywords", ()) if each.arg == "args"), None)
    parts = values.elts if isinstance(values, ast.Tuple | ast.List) else []
    return [each.id if isinstance(each, ast.Name) else "" for each in parts]


Frameworks._of_accelerator = {
    "prepare": Frameworks._prepared,
    **dict.fromkeys(("prepare_model", "prepare_data_loader", "prepare_optimizer"), Frameworks._prepared),
    "backward": Frameworks._propagate,
    "clip_grad_norm_": Frameworks.clip,
    "clip_grad_value_": Frameworks.clip,
    "unwrap_model": Frameworks._unwrapped,
    **dict.fromkeys(("gather", "gather_for_metrics", "reduce", "pad_across_processes"), Frameworks._gathered),
    "wait_for_everyone": Frameworks._met,
    **dict.fromkeys(("print", "log", "save", "save_state", "save_model", "end_training"), Frameworks._saved),
    **dict.fromkeys(
        ("accumulate", "autocast", "no_sync", "get_state_dict", "init_trackers", "load_state"),
        lambda self, *_: Unknown("accelerate"),
    ),
}
Library._of_kinds |= {
    "accelerator": Frameworks._method_of_accelerator,
    "trainer": Frameworks._method_of_trainer,
    "context": Frameworks.context_method,
}
Library._functions |= {
    "torch.nn.parallel.data_parallel": Frameworks._scattered,
    "torch.multiprocessing.spawn": Frameworks._spawn,
    "torch.multiprocessing.start_processes": Frameworks._spawn,
    **dict.fromkeys(("torch.multiprocessing.Process", "multiprocessing.Process"), Frameworks._process),
    **dict.fromkeys(("fire.Fire", "typer.run", "absl.app.run", "accelerate.notebook_launcher"), Frameworks._launched),
    "accelerate.Accelerator": Frameworks._accelerator,
    "apex.amp.initialize": Frameworks._initialize_amp,
    "apex.amp.scale_loss": Frameworks._scale_loss,
    "pytorch_lightning.Trainer": Frameworks._trainer,
}
