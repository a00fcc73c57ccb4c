"""Skills about other things, among which ours is offered: near enough to be chosen wrongly, useless for our queries."""

from __future__ import annotations

from torchtriage_evals.placebo import filler

OTHERS: dict[str, str] = {
    "tuning-databases": "Makes slow SQL queries fast: plans, indexes, locks. Use when a query or migration is slow.",
    "writing-dockerfiles": "Writes small, cached container images. Use when a build is slow or an image is large.",
    "reviewing-pull-requests": "Reviews a change for correctness, naming and tests. Use before a merge.",
    "profiling-web-pages": "Finds what delays a page: network, layout, scripts. Use when a site feels slow.",
    "cleaning-spreadsheets": "Repairs tables of data: duplicates, dates, missing cells. Use for CSV and Excel files.",
    "designing-experiments": "Plans A/B tests: power, randomisation, stopping. Use before data is collected.",
    "serving-models": "Puts a finished model behind an HTTP service: batches, versions. Use after training.",
    "drawing-charts": "Chooses and draws charts. Use when numbers have to be shown to people.",
    "managing-terraform": "Keeps cloud infrastructure as code. Use for plans, state files and drift.",
    "writing-release-notes": "Turns commits into notes for users. Use when a version is about to be published.",
}


def sheet(name: str) -> str:
    """The SKILL.md of the other skill NAME."""
    return f"---\nname: {name}\ndescription: {OTHERS[name]}\n---\n\n# {name}\n\n{filler(1200, len(name))}\n"
