"""All programs and all mutants, made once."""

import pytest
from mutants.catalogue import mutants
from mutants.programs import read_all


@pytest.fixture(scope="session")
def programs():
    return read_all()


@pytest.fixture(scope="session")
def population(programs):
    return mutants([program.project for program in programs])
