"""Flight Recorder dumps of the ranks of a job: which collectives each had asked for, and which are under way."""

from torchtriage.examine.artefact.flight.dumps import Dumps, measurements, read

__all__ = ["Dumps", "measurements", "read"]
