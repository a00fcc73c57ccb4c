"""What an agent reads: sheets of specialists, pages of faults, and the prompts that begin a triage."""

from __future__ import annotations

from functools import partial

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from torchtriage.catalog.load import catalog
from torchtriage.core.fault import Fault
from torchtriage.interface.skillpack.pack import ROUTER, reference, sheet, skills

SCHEME = "torchtriage"
SPECIALIST, FAULT = f"{SCHEME}://specialist/{{name}}", f"{SCHEME}://fault/{{slug}}"
MARKDOWN = "text/markdown"
OFFERED = 100  # completions in one answer, as the protocol has it


def provide(server: MCPServer) -> None:
    """Gives SERVER the sheets that there are, every fault's page, completions of their names, and the prompts."""
    rooms = {room.specialist: room.does for room in catalog().rooms}
    for name in skills():
        if sheet(name) is not None:
            does = rooms.get(name, "Which specialist looks first, and how to work with what it says.")
            server.add_resource(_resource(name, does))
    server.resource(SPECIALIST, name="specialist", description="The sheet of a specialist.", mime_type=MARKDOWN)(
        specialist
    )
    server.resource(FAULT, name="fault", description="The page of a fault, with its remedies.", mime_type=MARKDOWN)(
        fault
    )
    server.completion()(completed)  # type: ignore[no-untyped-call]
    server.prompt(title="Triage a symptom", description="From what a user sees to a verified remedy.")(triage)


def _resource(name: str, does: str) -> FunctionResource:
    uri = SPECIALIST.replace("{name}", name)
    return FunctionResource(
        uri=uri, name=name, title=name, description=does, mime_type=MARKDOWN, fn=partial(specialist, name)
    )


def specialist(name: str) -> str:
    """The sheet of the specialist NAME."""
    found = sheet(name)
    if found is None:
        known = ", ".join(each for each in skills() if sheet(each) is not None)
        raise ResourceNotFoundError(f"There is no sheet of that name. There are: {known}. Else call explain.")
    return found


def fault(slug: str) -> str:
    """The page of the fault SLUG."""
    found = reference(slug)
    if found is None:
        raise ResourceNotFoundError("There is no fault of that name. explain tells the nearest names.")
    return found


async def completed(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion | None:
    """The names that begin as ARGUMENT does, of what REF stands for."""
    del context
    if not isinstance(ref, ResourceTemplateReference):
        return None
    names = {SPECIALIST: [each for each in skills() if sheet(each) is not None], FAULT: list(_faults())}
    fitting = sorted(each for each in names.get(ref.uri, ()) if each.startswith(argument.value))
    return Completion(values=fitting[:OFFERED], total=len(fitting), has_more=len(fitting) > OFFERED)


def _faults() -> dict[str, Fault]:
    return catalog().faults


def triage(symptom: str) -> str:
    """How to go from SYMPTOM, the user's words, to a remedy that was verified."""
    words = "\n".join(f"> {line}" for line in symptom.splitlines())
    return (
        f"A PyTorch training has a problem. The user's words, quoted:\n\n{words}\n\n"
        "1. Call ask with these words. One question comes back: put it to the user, and stop. A referral: pass it on.\n"
        f"2. A plan comes back: read the sheet {SCHEME}://specialist/<name> of its first specialist, and no other.\n"
        "3. Measure: call check on the training's files, then run if this server starts jobs; else ask the user to run "
        "the plan's command. Guesses of the user are no evidence.\n"
        f"4. For each finding read {SCHEME}://fault/<slug>; apply the first remedy whose `when` holds.\n"
        "5. Call next_step with the case: only the steps that it hands out are open.\n"
        "6. Verify as the remedy's `verify` says, with another run. Say what stayed inconclusive.\n"
        f"Should no sheet fit, {SCHEME}://specialist/{ROUTER} tells how specialists divide the work."
    )
