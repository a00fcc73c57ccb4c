"""What a record says about the forward passes of the user's own autograd functions."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.custom_autograd_functions.probes.events import ChangedInput, OnCtx

OFTEN = 0.5  # of the calls that are looked at


@detector("run/tensor-on-ctx")
def tensor_on_ctx(record: RankRecord) -> Iterator[Sighting]:
    """Forward leaves an input or an output on ctx, outside of save_for_backward."""
    for event in record.all(OnCtx):
        if event.taken:
            continue
        held = f"ctx.{event.attribute}"
        fact = f"{event.function}: {held} is an {event.what} of forward ({_size(event.bytes)} a call)"
        stays = f"; {event.stayed} of {event.looked} were still there after their step" if event.looked else ""
        place = _place(record, event, container=held)
        yield Sighting(place, f"{fact}, in {event.calls} calls{stays}", float(event.calls), "calls")


@detector("run/dirty-not-marked")
def dirty_not_marked(record: RankRecord) -> Iterator[Sighting]:
    """Forward changes an input that needs a gradient in place, and does not mark it dirty."""
    for event in record.all(ChangedInput):
        if event.changed < OFTEN * event.calls:
            continue
        fact = f"{event.function}.forward changed its input {event.input} in place, without ctx.mark_dirty,"
        said = f"{fact} in {event.changed} of {event.calls} calls"
        yield Sighting(_place(record, event), said, float(event.changed), "calls")


def _place(record: RankRecord, event: OnCtx | ChangedInput, container: str | None = None) -> Place:
    return Place(path=event.path, line=event.line, rank=record.rank, container=container)


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
