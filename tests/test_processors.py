"""What `make test-processors` runs is there; the run itself takes minutes on every configuration."""

import pytest

import processors

pytestmark = pytest.mark.fast


def test_the_paths_of_all_configurations_exist():
    """A path that was renamed would otherwise be found out by `make test-processors` alone."""
    named = {path for configuration in processors.configurations() for path in configuration.tests}
    assert {"tests/em", "tests/nn", "tests/test_bits.py"} <= named
    assert not sorted(path for path in named if not (processors.ROOT / path).exists())
