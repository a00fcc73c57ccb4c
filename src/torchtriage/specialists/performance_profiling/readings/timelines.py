"""What traces say about where the time of a step goes, and why a device idles."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.trace.rank import RankSummary
from torchtriage.examine.detector import Sighting, detector
from torchtriage.specialists.performance_profiling.readings import rooflines

MOST_NAMED = 3
COMPUTING = 0.5  # of the step: below it, it does not matter what its kernels wait for
ON_ITS_WAY = "Memcpy HtoD"


@detector("trace/data-wait")
def data_wait(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which nothing computes because the loop waits for its next batch."""
    what = "the device idles while the host waits for" if told.on_device else "the loop waits for"
    yield _sighting(told, f"{{share}} of a step {what} the next batch of the DataLoader", "input")


@detector("trace/launch-wait")
def launch_wait(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which the device idles because the host has not launched the next kernel yet."""
    if not told.on_device or not told.kernel_count:
        return
    mean = told.kernel_time / told.kernel_count / 1e3
    short, steps = told.short / told.kernel_count, max(told.count, 1)
    yield _sighting(
        told,
        f"{{share}} of a step the device idles until the host launches the next kernel: "
        f"{told.kernel_count / steps:,.0f} kernels in a step, {mean:.1f} us in the mean, "
        f"{short:.0%} of them shorter than 10 us",
        "launch",
    )


@detector("trace/sync-wait")
def sync_wait(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which the device idles because the host had waited for it before it queued more."""
    if not told.on_device:
        return
    first = next((wait for wait in told.waits if wait.path), None)
    calls = sum(wait.count for wait in told.waits) / max(told.count, 1)
    names = ", ".join(dict.fromkeys(wait.operator or wait.call for wait in told.waits[:MOST_NAMED]))
    where = f", most often in {first.function} ({first.path}:{first.line})" if first else ""
    fact = f"{{share}} of a step the device idles after the host waited for it: {calls:.0f} such waits in a step"
    yield _sighting(told, f"{fact} ({names}){where}" if names else fact, "sync")


@detector("trace/transfer-wait")
def transfer_wait(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which the device does nothing but take data from the host."""
    coming = [copy for copy in told.copies if copy.name.startswith(ON_ITS_WAY)]
    exposed, copied = sum(copy.exposed for copy in coming), sum(copy.exposed for copy in told.copies)
    if not exposed:
        return
    carried, time = sum(copy.bytes for copy in coming), sum(copy.nanoseconds for copy in coming)
    pageable = sum(copy.nanoseconds for copy in coming if "Pageable" in copy.name) / max(time, 1)
    memory = "pageable" if pageable > 0.5 else "pinned"
    fact = (
        "{share} of a step the device does nothing but copy from the host: "
        f"{carried / max(told.count, 1) / 2**20:.1f} MiB in a step, "
        f"at {carried / max(time, 1):.1f} GB/s, from {memory} memory"
    )
    yield _sighting(told, fact, "memcpy", part=exposed / copied)


@detector("trace/loop-share")
def loop_share(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which nothing computes because the host runs code that calls no operator."""
    fact = "{share} of a step nothing computes while the host runs code between operators of torch"
    yield _sighting(told, fact, "host")


@detector("trace/compute-share")
def compute_share(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which kernels or operators compute, and are not known to wait for memory."""
    if not told.on_device:
        yield _sighting(told, "{share} of a step are operators that compute", "compute", "optimizer")
        return
    names = ", ".join(f"{row.name[:48]} {row.nanoseconds / told.kernel_time:.0%}" for row in told.kernels[:MOST_NAMED])
    part, cores = 1.0 - rooflines.limited_by_memory(told), rooflines.on_tensor_cores(told)
    fact = (
        f"{{share}} of a step the device computes, {cores:.0%} of that on tensor cores by its kernels' names ({names})"
    )
    yield _sighting(told, fact, "compute", part=part)


@detector("trace/memory-share")
def memory_share(told: RankSummary) -> Iterator[Sighting]:
    """The share of a step in which kernels run that move more bytes than their arithmetic can hide."""
    if not told.on_device or not told.kernel_count:
        return
    if told.total.get("compute", 0) > COMPUTING * told.length:
        rooflines.known(told)
    part = rooflines.limited_by_memory(told)
    if part:
        fact = f"{{share}} of a step the device runs kernels that wait for its memory: {rooflines.said(told)}"
        yield _sighting(told, fact, "compute", part=part)


def _sighting(told: RankSummary, fact: str, *phases: str, part: float = 1.0) -> Sighting:
    """The share of PHASES, of which only PART counts, over the steps; its interval leaves each step out once."""
    share, (low, high) = told.share(*phases)
    steps = f" ({told.count} steps, {told.length / max(told.count, 1) / 1e6:.1f} ms each)"
    value, spread = share * part, (low * part, high * part)
    return Sighting(
        Place(path=told.path, rank=told.rank),
        fact.replace("{share}", f"{value:.0%}", 1) + steps,
        value,
        "of the step",
        spread,
    )
