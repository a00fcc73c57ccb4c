"""What an execution of the program shows about modules: their mode, and what of them is registered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.modules import bare
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, wherever
from torchtriage.examine.source.execution.values import Object, truth

_EVALUATES = re.compile(r"eval|val\b|val_|_val|valid|test|predict|infer", re.IGNORECASE)


@detector("source/mode-left-in-eval")
def mode_left_in_eval(trainings: Trainings) -> Iterator[Sighting]:
    """A model that was trained in train mode goes on training in evaluation mode."""

    def find(training: Training) -> Facts:
        trained: set[int] = set()
        for forward, backward in training.backwards:
            model = bare(forward.model)
            if forward.training is True:
                trained.add(id(model))
            elif forward.training is False and id(model) in trained and training.has_modes(model):
                change = training.last_change(model, before=forward)
                if change is not None and change.mode is False:
                    yield change.spot, f"line {backward.spot.line} goes on training, and nothing calls train() again"

    yield from certain(trainings, find, where_reached=True)


@detector("source/mode-left-in-train")
def mode_left_in_train(trainings: Trainings) -> Iterator[Sighting]:
    """A model is evaluated in train mode."""

    def find(training: Training) -> Facts:
        trained = {id(bare(forward.model)) for forward, _ in training.backwards}
        for forward in training.of(events.Forward):
            is_evaluation = training.is_evaluation(forward) or (
                not forward.grad and any(map(_EVALUATES.search, training.calls(forward.spot)))
            )
            if (
                is_evaluation
                and forward.training is True
                and id(bare(forward.model)) in trained
                and training.has_modes(forward.model)
            ):
                yield (
                    forward.spot,
                    "the model is in train mode here: dropout and batch statistics are those of training",
                )

    yield from certain(trainings, find, where_reached=True)


@detector("source/unregistered-modules")
def unregistered_modules(trainings: Trainings) -> Iterator[Sighting]:
    """Layers that the forward pass calls stand in a plain list, tuple or dict: parameters() does not know them."""

    def find(training: Training) -> Facts:
        library = training.executor
        for plain in training.of(events.PlainContainer):
            for forward in training.of(events.Forward):
                known = library.modules(forward.model)
                called = [each for each in plain.modules if each in forward.called and each not in known]
                if plain.owner in known and any(library.parameters(each) for each in called):
                    yield (
                        plain.spot,
                        f"{len(called)} modules of `{plain.name}` are called in the forward pass and not registered",
                    )
                    break

    yield from certain(trainings, find, where_reached=True)


@detector("source/layers-shared-by-repetition")
def layers_shared_by_repetition(trainings: Trainings) -> Iterator[Sighting]:
    """A list of layers holds one layer several times: its parameters are shared."""

    def find(training: Training) -> Facts:
        for made in training.of(events.ModuleList):
            items = [each for each in made.items if isinstance(each, Object)]
            is_repeated = len(items) > 1 and len(items) == len(made.items) and all(each is items[0] for each in items)
            if is_repeated and training.executor.parameters(items[0]):
                yield made.spot, f"all {len(items)} elements are the same layer"

    yield from certain(trainings, find, where_reached=True)


@detector("source/dropout-always-on")
def dropout_always_on(trainings: Trainings) -> Iterator[Sighting]:
    """F.dropout drops in evaluation mode as well: it is not told the mode of its module."""

    def find(training: Training) -> Facts:
        for call in training.of(events.FunctionCall):
            if call.name.startswith(("dropout", "alpha_dropout")) and call.training is False:
                rate = call.keywords.get("p", call.arguments[1] if len(call.arguments) > 1 else 0.5)
                mode = call.keywords.get("training", call.arguments[2] if len(call.arguments) > 2 else True)
                if truth(mode) is True and rate != 0:
                    yield call.spot, "`training` is not given here: values are dropped in evaluation, too"

    yield from certain(trainings, find, where_reached=True)


@detector("source/requires-grad-typo")
def requires_grad_typo(trainings: Trainings) -> Iterator[Sighting]:
    """requires_grad is set on a module, and its parameters stay as they are."""

    def find(training: Training) -> Facts:
        for setting in training.of(events.Setting):
            if setting.owner is not None and setting.name == "requires_grad":
                yield setting.spot, "a module has no such setting: its parameters stay trainable"

    yield from certain(trainings, find, where_reached=True)


@detector("source/layer-built-in-forward")
def layer_built_in_forward(trainings: Trainings) -> Iterator[Sighting]:
    """A layer with parameters is made anew in each forward pass."""

    def find(training: Training) -> Facts:
        seen: set[tuple[str, int]] = set()
        for made in training.of(events.LayerMade):
            key = (made.spot.path, made.spot.line)
            if key in seen:
                yield made.spot, f"{made.layer.made.rpartition('.')[2]} is made here in every forward pass"
            seen.add(key)

    yield from certain(trainings, find)


@detector("source/unregistered-tensor")
def unregistered_tensor(trainings: Trainings) -> Iterator[Sighting]:
    """A forward pass computes with a tensor that is a plain attribute: moving the model leaves it behind."""

    def find(training: Training) -> Facts:
        moved = any(each.state.get("is_moved") for forward, _ in training.backwards for each in forward.called)
        for use in training.of(events.AttributeUse) if moved else ():
            if use.tensor.attribute is not None:
                yield use.tensor.attribute, f"line {use.spot.line} computes with it, and it is no buffer"

    yield from certain(trainings, find)


@detector("source/uninitialised-parameter")
def uninitialised_parameter(trainings: Trainings) -> Iterator[Sighting]:
    """A parameter is made of memory that nothing fills before it is used."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            for each in backward.loss.graph:
                if each.is_empty and not each.has_escaped and each.spot is not None:
                    yield each.spot, "torch.empty leaves what was in memory, and nothing writes to it"

    yield from certain(trainings, find)


@detector("source/forward-called-directly")
def forward_called_directly(trainings: Trainings) -> Iterator[Sighting]:
    """The forward of a module is called by its name: its hooks do not run."""
    yield from wherever(
        trainings,
        events.DirectForward,
        lambda _: "forward() runs none of the module's hooks: calling the module does",
    )


@detector("source/hook-handle-dropped")
def hook_handle_dropped(trainings: Trainings) -> Iterator[Sighting]:
    """A hook is registered again and again on one module, and none is removed."""

    def find(training: Training) -> Facts:
        removed = {id(each.handle) for each in training.of(events.Handle)}
        first: dict[tuple[int, int], events.HookMade] = {}
        for hook in training.of(events.HookMade):
            key = id(hook.module), id(hook.spot.node)
            before = first.setdefault(key, hook)
            is_kept = not removed & {id(before.handle), id(hook.handle)} and not hook.handle.has_escaped
            is_again = before is not hook and before.loops != hook.loops
            if is_again and is_kept:
                yield hook.spot, "one more hook is registered on the same module each time, and all of them run"

    yield from certain(trainings, find)


@detector("source/parameter-then-moved")
def parameter_then_moved(trainings: Trainings) -> Iterator[Sighting]:
    """What a module keeps is the result of an operation on a parameter, and no parameter."""

    def find(training: Training) -> Facts:
        for kept in training.of(events.Kept):
            owner = kept.owner
            if isinstance(owner, Object) and owner.kind == "module" and not kept.loops and kept.tensor.graph:
                own = set(training.executor.parameters(owner))
                if all(each.owner is None and each not in own for each in kept.tensor.graph):
                    yield kept.spot, f"`{kept.name}` is computed of a parameter: parameters() does not have it"

    yield from certain(trainings, find, where_reached=True)


@detector("source/super-init-missing")
def super_init_missing(trainings: Trainings) -> Iterator[Sighting]:
    """A layer is assigned to a module whose own __init__ has not run."""
    yield from wherever(
        trainings,
        events.EarlyAssignment,
        lambda early: f"`{early.name}` is assigned when nn.Module.__init__ has not run: that raises",
    )
