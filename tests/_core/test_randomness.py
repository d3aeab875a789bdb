"""One seed, one generator."""

import numpy as np
import pytest

from manyhands._core.randomness import make_generator, seed_unset


def test_the_same_seed_gives_the_same_stream():
    """For plain and NumPy integers and seed sequences alike; another seed gives another stream."""
    streams = [make_generator(seed).random(3).tolist() for seed in (7, np.int64(7), np.random.SeedSequence(7), 8)]
    assert streams[0] == streams[1] == streams[2] != streams[3]


def test_no_seed_means_fresh_entropy():
    """Two generators without a seed differ."""
    assert make_generator(None).random() != make_generator(None).random()


def test_a_generator_is_used_as_it_is():
    """It advances, as its owner expects."""
    generator = np.random.default_rng(0)
    assert make_generator(generator) is generator


def test_the_global_generator_is_left_alone():
    """Seeding it changes nothing, and nothing moves it."""
    before = repr(np.random.get_state())  # noqa: NPY002
    make_generator(None).random(10)
    make_generator(3).spawn(2)
    assert repr(np.random.get_state()) == before  # noqa: NPY002


def test_torch_is_seeded_inside_and_given_back():
    """The same draw inside for the same generator, another for the next child, and outside nothing has moved."""
    import torch

    from manyhands._core.randomness import torch_seeded

    def inside(rng):
        with torch_seeded(rng):
            return torch.rand(3).tolist()

    before = torch.get_rng_state()
    rng = np.random.default_rng(0)
    first, second = inside(rng), inside(rng)
    assert first == inside(np.random.default_rng(0)) and first != second
    assert torch.equal(torch.get_rng_state(), before)


def test_torch_is_given_back_after_an_error():
    """An error inside the block does not leave the global generator seeded."""
    import torch

    from manyhands._core.randomness import torch_seeded

    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), torch_seeded(np.random.default_rng(0)):
        torch.rand(3)
        raise ZeroDivisionError
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_wrapped_is_seeded_too():
    """Every seed that is not set, however deep; one that is set stays."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    def seeds(seed, **forest):
        model = make_pipeline(RandomForestClassifier(**forest), RandomForestClassifier())
        found = seed_unset(model, np.random.default_rng(seed)).get_params()
        return [value for name, value in sorted(found.items()) if name.endswith("random_state")]

    assert seeds(1) == seeds(1) != seeds(2) and None not in seeds(1)
    assert 7 in seeds(1, random_state=7) and 7 not in seeds(1)
