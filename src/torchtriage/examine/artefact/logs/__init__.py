"""Logs and tracebacks of one or many ranks: what was said first, and what only followed from it."""

from torchtriage.examine.artefact.logs.live import read_crashes as read_crashes
from torchtriage.examine.artefact.logs.read import measurements as measurements
from torchtriage.examine.artefact.logs.read import read as read
from torchtriage.examine.artefact.logs.said import Logs as Logs
