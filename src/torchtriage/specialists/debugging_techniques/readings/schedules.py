"""What a record says about learning rate schedules."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import End, Error, Rate
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Planned, ScheduleLed

ENOUGH_LOST, SHARE_LOST = 10, 0.1  # steps at a learning rate of 0 or less, and the share of all
SAME = 0.2  # by how much the steps of the optimizers may differ from the calls that a schedule was made for


@detector("run/schedule-unfinished")
def schedule_unfinished(record: RankRecord) -> Iterator[Sighting]:
    """The share of a schedule that was left when the job had ended by itself."""
    if not any(event.why == "exit" for event in record.all(End)) or record.has(Error):
        return
    for event in record.all(Planned):
        calls, end, turns = event.calls, event.end, event.turns
        if not 0 < calls < end:
            continue
        fact = f"{event.schedule} was made for {end} calls and had got {calls} when the job had ended"
        if event.rate is not None:
            fact += f", at a learning rate of {event.rate:.3g}"
        if abs(turns - end) <= SAME * end and calls * 2 <= turns:
            fact += f"; the optimizer made {turns} steps: the schedule counts steps, and is called once for many"
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        yield from further(Sighting(place, fact, 1 - calls / end, "of the schedule"), event.further)


@detector("run/schedule-exceeded")
def schedule_exceeded(record: RankRecord) -> Iterator[Sighting]:
    """A learning rate that has come to nothing, or below 0, long before the training ended."""
    last = {rate.number: rate for rate in record.all(Rate)}
    for rate in last.values():
        is_negative = rate.lr is not None and rate.lr < 0
        if not is_beyond(rate) or not (is_negative or all(is_beyond(each) for each in last.values())):
            continue
        lost = rate.at - (rate.since or 0)
        was = f"the learning rate of {rate.optimizer}, {rate.highest:g} at most, "
        if is_negative:
            fact = f"{was}fell below 0 by step {rate.since}, and was {rate.lr:.3g} in step {rate.at}: these steps climb"
        else:
            fact = f"{was}was {rate.lr:.3g} from step {rate.since} on: the last {lost} steps changed next to nothing"
        plans = [each for each in record.all(Planned) if each.calls > each.end > 0]
        says = [
            (f"{each.schedule}, made here for {each.end} calls, got {each.calls}", each.path, each.line)
            for each in plans
        ]
        says += [each for plan in plans or record.all(Planned) for each in plan.further]
        says.append((f"{rate.optimizer} is built here", rate.path, rate.line))
        says[0] = (f"{fact}; {says[0][0]}" if plans else fact, *says[0][1:])
        (fact, path, line), *others = says
        place = Place(path=path or None, line=line or None, rank=record.rank, step=rate.since)
        yield from further(Sighting(place, fact, float(lost), "steps"), others)


def is_beyond(rate: Rate) -> bool:
    """Whether the rate of an optimizer has been next to nothing for a part of the steps, and for no pause: many a
    schedule ends at 0, statistics of BatchNorm are taken anew at a rate that is set to 0 by hand, and optimizers that
    take turns are held still by it.
    """
    if rate.since is None or rate.lr is None or rate.maximizes or rate.returns:
        return False
    lost = rate.at - rate.since
    return (rate.scheduled or rate.lr < 0) and lost >= max(ENOUGH_LOST, SHARE_LOST * rate.at)


@detector("run/scheduler-before-optimizer")
def scheduler_before_optimizer(record: RankRecord) -> Iterator[Sighting]:
    """A schedule moves on before its optimizer's first step, and then before every other."""
    for event in record.all(ScheduleLed):
        place = Place(path=event.path, line=event.line, rank=record.rank, step=0)
        fact = f"{event.schedule} moved on before the first step of {event.optimizer}, which never saw the "
        fact += f"first learning rate; so did each of its {event.calls} calls: every rate comes one call early"
        yield from further(Sighting(place, fact, float(event.calls), "calls"), event.further)
