"""What a model's answers depend on, by asking it: in evaluation mode, without gradients, on the batch at hand."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .delivery import is_varied, tensors
from .events import Influence
from .sequences import FEW, Later, has_code, is_ids
from .softmaxes import softmaxes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .delivery import Delivered

SMALL = 1e-3  # of the size of the answers, that their spread counts as at least: what is below is rounding
MOVES = 4  # other weights with which a model is asked that answers alike with its own
ANSWERS = ("logits", "last_hidden_state", "prediction", "pred", "output")  # of a model's own classes of outputs
LABELS = ("label", "target", "y_true")  # in the names of arguments that are no inputs


def influence(
    number: int, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], delivered: Delivered
) -> tuple[Influence, Later | None]:
    """What the answers of MODULE to ARGS and KWARGS depend on; `why` where that cannot be asked.

    Of a model of ids also what an answer depends on that comes later. Leaves modes and weights as they are.
    """
    import torch

    asked = _Asked(torch, module, args, kwargs)
    found = Influence(
        number=number,
        module=type(module).__name__,
        rows=asked.rows,
        parameters=sum(each.numel() for each in module.parameters() if each.requires_grad),
    )
    with torch.no_grad(), _evaluated(module):
        try:
            return asked.influence(found, delivered)
        except Exception as error:  # noqa: BLE001 - a model may refuse other batches than the job's
            return replace(found, why=f"{type(error).__name__}: {error}"[:300]), None


def places_that_matter(module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> set[int | str]:
    """Of the tensors in a call of MODULE those whose samples reach its answers: targets that it is given do not.

    Where it gives no answer for each sample, the first tensor alone. Modes, weights and generators stay.
    """
    import torch

    asked = _Asked(torch, module, args, kwargs)
    found: set[int | str] = set()
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _evaluated(module):
        for _ in asked.weights():
            before = asked.answer({})
            if not found and before is not None and before.shape[0] == asked.rows:
                found = {place for place in asked.places if asked.matters(before, place)}
            if found:
                break
    return found or set(asked.places[:1])


class _Asked:
    """A model and the call that it is about to get, in which single tensors are exchanged."""

    def __init__(self, torch: Any, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.torch, self.module, self.args, self.kwargs = torch, module, args, kwargs
        everything: dict[int | str, Any] = dict(enumerate(args))
        everything.update(kwargs)
        self.opaque = [type(each).__name__ for each in everything.values() if not _is_plain(each)]
        self.places: list[int | str] = [
            place
            for place, value in everything.items()
            if isinstance(value, torch.Tensor) and value.dim() and not _is_label(place)
        ]
        self.rows = self._argument(self.places[0]).shape[0] if self.places else 0
        self.places = [each for each in self.places if self._argument(each).shape[0] == self.rows]

    def influence(self, found: Influence, delivered: Delivered) -> tuple[Influence, Later | None]:
        if self.opaque:
            return replace(found, why=f"it is given a {self.opaque[0]}, of which parts cannot be exchanged"), None
        if self.rows < FEW:
            return replace(found, why=f"it is given {self.rows} samples at once"), None
        before = self.answer({})
        if before is None or before.shape[0] != self.rows or not before.is_floating_point():
            return replace(found, why="its answer is no tensor with a row for each sample"), None
        if not self.torch.equal(before, self.answer({})):
            return replace(found, why="it draws random numbers in evaluation mode, too"), None
        inputs = [self._argument(place) for place in self.places]
        varied = [is_varied(each) for each in inputs]
        found = replace(
            found,
            inputs=[(str(place), list(tensor.shape)) for place, tensor in zip(self.places, inputs, strict=True)],
            varied=varied,
            distinct=self._distinct(inputs),
            constant=not any(varied) and delivered.has_as_large(inputs),
            own=self._own(),
        )
        return self._with_others(found, before, inputs, delivered), self._later(before)

    def _own(self) -> list[bool | None]:
        """Of each input whether anything that the model gives depends on it: at its own weights, or with others.

        A last layer of zeros answers alike to all, and so does one that is dead before its first update.
        """
        found: list[bool | None] = [None if not is_varied(self._argument(place)) else False for place in self.places]
        for _ in self.weights():
            before = self._outputs({})
            for number, place in enumerate(self.places):
                if found[number] is False and not all(
                    self._is_same(before, place, other) for other in (_rolled, _first)
                ):
                    found[number] = True
            if any(found):
                break
        return found

    def _is_same(self, before: Sequence[Any], place: int | str, change: Callable[[Any], Any]) -> bool:
        after = self._outputs({place: change(self._argument(place))})
        return len(before) == len(after) and all(map(self.torch.equal, before, after))

    def weights(self) -> Iterator[None]:
        """Nothing: with the model's own weights, then with others around them, and with such as a usual start has."""
        yield
        parameters = [each for each in self.module.parameters() if each.is_floating_point()]
        own = [each.detach().clone() for each in parameters]
        try:
            for number in range(MOVES):
                draw = self.torch.Generator().manual_seed(number)
                for each, was in zip(parameters, own, strict=True):
                    size = float(was.float().abs().mean()) + (was[0].numel() if was.dim() > 1 else 1) ** -0.5
                    noise = self.torch.randn(was.shape, generator=draw)
                    each.copy_((was if number % 2 else 0) + (size * noise).to(was.dtype))
                yield
        finally:
            for each, was in zip(parameters, own, strict=True):
                each.copy_(was)

    def matters(self, before: Any, place: int | str) -> bool | None:
        """Whether the answers change when the samples of one input change places; None where these are all alike."""
        tensor = self._argument(place)
        other = _rolled(tensor)
        if self.torch.equal(other, tensor):
            return None
        return not self.torch.equal(self.answer({place: other}), before)

    def _distinct(self, inputs: Sequence[Any]) -> int:
        """Of how many kinds the samples are, by all that the model is given of them."""
        rows = [each.reshape(self.rows, -1)[:, :4096].double() for each in inputs]
        return int(self.torch.unique(self.torch.cat(rows, 1), dim=0).shape[0])

    def _with_others(self, found: Influence, before: Any, inputs: Sequence[Any], delivered: Delivered) -> Influence:
        """FOUND, and whether answers depend on other samples, where the first dimension is that of samples for sure."""
        why = _why_no_samples(self.rows, inputs, delivered, self.module)
        spread = _spread(before)
        if why or spread is None:
            return replace(found, no_samples=why or "its answers are all the same")
        half = self.rows // 2
        first = self._changed(before, lambda tensor: _halves(self.torch, tensor, half), slice(None, half))
        last = self._changed(
            before, lambda tensor: _halves(self.torch, tensor.flip(0), half).flip(0), slice(half, None)
        )
        if first is None or last is None:
            return replace(found, no_samples="its answers to other samples have another shape")
        with self._along_samples() as layers:
            after = self.answer({place: _rolled(self._argument(place)) for place in self.places})
        order = min(_distance(after, _rolled(before), sort=sort) for sort in (False, True)) / spread
        found = replace(found, others=max(first, last) / spread, order=order, along=layers[0] if layers else "")
        place = None if layers else self._softmax()
        if place is not None:
            found = replace(found, along="a softmax goes over them", path=place[0], line=place[1])
        return found

    def _softmax(self) -> tuple[str, int] | None:
        """Where a softmax goes over the samples. With one sample less, so that only their dimension has that size."""
        found: list[tuple[str, int]] = []
        try:
            with softmaxes(self.rows - 1, found):
                self._output({place: self._argument(place)[1:] for place in self.places})
        except Exception:  # noqa: BLE001 - a model may want a batch of the size that it was given
            return None
        return found[0] if found else None

    def _changed(self, before: Any, change: Callable[[Any], Any], rows: slice) -> float | None:
        """By how much the answers for those ROWS change whose samples stay as they are."""
        after = self.answer({place: change(self._argument(place)) for place in self.places})
        if after is None or after.shape != before.shape:
            return None
        return float((after[rows].float() - before[rows].float()).abs().max())

    @contextmanager
    def _along_samples(self) -> Iterator[list[str]]:
        """The layers that take the first dimension for that of a sequence, and are given the samples there."""
        nn, found = self.torch.nn, list[str]()
        kinds = (nn.RNNBase, nn.MultiheadAttention)

        def called(layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            given = next((each for each in (*args, *kwargs.values()) if isinstance(each, self.torch.Tensor)), None)
            if given is not None and given.shape[0] == self.rows and (given.dim() == 2 or not layer.batch_first):
                found.append(f"{names[layer]} ({type(layer).__name__}) takes them for the steps of a sequence")

        names = {layer: name for name, layer in self.module.named_modules() if isinstance(layer, kinds)}
        hooks = [layer.register_forward_pre_hook(called, with_kwargs=True) for layer in names]
        try:
            yield found
        finally:
            for hook in hooks:
                hook.remove()

    def _later(self, before: Any) -> Later | None:
        """By how much the answers about one sequence change, when what stands in its second half is exchanged.

        Of one alone: where experts have places for so many tokens, those of other samples matter.
        """
        spread = _spread(before)
        places = [place for place in self.places if is_ids(self._argument(place))]
        if len(places) != 1 or before.dim() != 3 or spread is None or has_code(self.module):
            return None
        ids = self._argument(places[0])
        half, length = ids.shape[1] // 2, ids.shape[1]
        rows = [row for row in range(self.rows - 1) if (ids[row, half:] != ids[row + 1, half:]).any()]
        if length <= FEW or before.shape[1] != length or length == self.rows or not rows:
            return None
        other = ids.clone()
        other[rows[0], half:] = ids[rows[0] + 1, half:]
        after = self.answer({places[0]: other})
        if after is None or after.shape != before.shape:
            return None
        return Later(ids, rows[0], (after[rows[0]].float() - before[rows[0]].float()).abs().amax(1) / spread)

    def _outputs(self, exchanged: Mapping[int | str, Any]) -> list[Any]:
        """All tensors in what the model gives, but for losses."""
        return [each for each in tensors(self._output(exchanged)) if each.dim()]

    def answer(self, exchanged: Mapping[int | str, Any]) -> Any:
        return self._tensor(self._output(exchanged))

    def _output(self, exchanged: Mapping[int | str, Any]) -> Any:
        args = tuple(exchanged.get(number, each) for number, each in enumerate(self.args))
        return self.module(*args, **{name: exchanged.get(name, each) for name, each in self.kwargs.items()})

    def _tensor(self, output: Any) -> Any:
        """The answers in what a model gives: itself, the first of several, or what is called so."""
        if isinstance(output, self.torch.Tensor):
            return output if output.dim() else None
        named: list[Any] = [output.get(name) for name in ANSWERS] if isinstance(output, dict) else []
        named += [getattr(output, name, None) for name in ANSWERS]
        several = list(output) if isinstance(output, (tuple, list)) else []
        found = (each for each in (*named, *several) if isinstance(each, self.torch.Tensor) and each.dim())
        return next(found, None)

    def _argument(self, place: int | str) -> Any:
        return self.args[place] if isinstance(place, int) else self.kwargs[place]


@contextmanager
def _evaluated(module: Any) -> Iterator[None]:
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _why_no_samples(rows: int, inputs: Sequence[Any], delivered: Delivered, module: Any) -> str:
    """Why answers may depend on other rows, or rows be no samples; empty where neither can be.

    A first dimension may be that of nodes, of the elements of a set, or of time.
    """
    if delivered.samples != rows or any(rows in each.shape[1:2] for each in inputs):
        return "it is not known whether the first dimension of what it is given is that of samples"
    if not delivered.is_shuffled:
        return "its loader gives samples in their order, which may mean something"
    if any(getattr(part, "track_running_stats", True) is False and _is_batch_norm(part) for part in module.modules()):
        return "it normalises by the batch at hand in evaluation mode, too"
    return ""


def _is_batch_norm(part: Any) -> bool:
    return "BatchNorm" in type(part).__name__


def _spread(before: Any) -> float | None:
    """The standard deviation of all answers; None where they are all the same, or not finite."""
    numbers = before.float()
    found = float(numbers.std())
    return found + SMALL * float(numbers.abs().mean()) if 0 < found < float("inf") else None


def _is_plain(value: Any) -> bool:
    import torch

    return value is None or isinstance(value, (torch.Tensor, bool, int, float, str, torch.dtype, torch.device))


def _is_label(place: int | str) -> bool:
    return any(word in str(place).lower() for word in LABELS)


def _rolled(tensor: Any) -> Any:
    return tensor.roll(1, 0)


def _first(tensor: Any) -> Any:
    """The first sample in all rows."""
    return tensor[:1].expand_as(tensor).clone()


def _distance(after: Any, before: Any, *, sort: bool) -> float:
    """The largest difference; with SORT of each row's numbers in order of size: scores against all other samples come
    in the order of these.
    """
    pair = [each.float().flatten(1).sort(1).values if sort else each.float() for each in (after, before)]
    return float((pair[0] - pair[1]).abs().max())


def _halves(torch: Any, tensor: Any, half: int) -> Any:
    """TENSOR with other samples in the second half: those of the first, in another order."""
    other = torch.cat([tensor[:half], tensor[:half].roll(1, 0), tensor[:half].roll(2, 0)])
    return other[: len(tensor)]
