"""Invalid arguments of the compiled modules: wrong types, lengths that do not match, None for a required array."""

import numpy as np
import pytest

from manyhands.em import kernels

pytestmark = pytest.mark.fast

needs_compiled = pytest.mark.skipif(
    kernels._fused is None or kernels._columns is None, reason="the compiled modules were not built"
)


def _em_arguments():
    table, posterior = np.zeros((4, 2)), np.zeros((3, 2))
    return {
        "n_classes": 2,
        "first": 0,
        "last": 3,
        "code": np.array([0, 1, 3], np.int32),
        "start": np.array([0, 2, 2, 3]),
        "table": table,
        "log_prior": np.zeros(2),
        "offset": None,
        "counts": table.copy(),
        "totals": np.zeros(2),
        "posterior": posterior,
    }


def _vote_arguments():
    return {
        "n_classes": 2,
        "first": 0,
        "last": 3,
        "label": np.array([0, 1, 1], np.int32),
        "start": np.array([0, 2, 2, 3]),
        "code": np.array([0, 1, 3], np.int32),
        "counts": np.zeros((4, 2)),
        "totals": np.zeros(2),
        "share": np.zeros((3, 2)),
    }


def _join_arguments():
    columns = {name: np.array([1, 0], np.int32) for name in ("item", "worker", "label")}
    return {"worker_bits": 3, "label_bits": 3, **columns, "key": np.zeros(2, np.int64)}


def _split_arguments():
    columns = {name: np.zeros(2, np.int32) for name in ("item", "worker", "label")}
    return {"worker_bits": 3, "label_bits": 3, "key": np.zeros(2, np.int64), **columns}


def _pick_arguments():
    posterior, rank = np.full((3, 2), 0.5), np.array([1, 0], np.int32)
    return {"tie": 0.0, "posterior": posterior, "rank": rank, "code": np.zeros(3, np.int32), "tied": np.zeros(3, bool)}


def _mark_arguments():
    return {"low": 5, "values": np.array([5, 7]), "present": np.zeros(3, bool)}


def _look_up_arguments():
    table, codes = np.array([0, -1, 1], np.int32), np.zeros(2, np.int32)
    return {"low": 5, "values": np.array([5, 7]), "table": table, "codes": codes}


ENTRIES = {
    "em_pass": ("_fused", _em_arguments, {"offset", "posterior"}),
    "vote_pass": ("_fused", _vote_arguments, {"share"}),
    "join_keys": ("_columns", _join_arguments, set()),
    "split_keys": ("_columns", _split_arguments, set()),
    "pick": ("_columns", _pick_arguments, set()),
    "mark": ("_columns", _mark_arguments, set()),
    "look_up": ("_columns", _look_up_arguments, set()),
}
ARRAYS = [
    (entry, name)
    for entry, (_, arguments, _) in ENTRIES.items()
    for name, value in arguments().items()
    if isinstance(value, np.ndarray) or value is None
]


def _call(entry, **changed):
    """Call a compiled function by its Python name, some of its arguments changed."""
    module, arguments, _ = ENTRIES[entry]
    given_arguments = arguments()
    assert set(changed) <= set(given_arguments)
    return getattr(getattr(kernels, module), entry)(*(given_arguments | changed).values())


@needs_compiled
@pytest.mark.parametrize("entry, name", ARRAYS)
def test_arrays_of_the_wrong_kind_are_refused(entry, name):
    """Not only of the wrong width: unsigned, floating and integer arrays of the same width, bytes, other byte order."""
    _call(entry)
    array = ENTRIES[entry][1]()[name]
    array = np.zeros((3, 2)) if array is None else array
    same_width = {8: (np.uint64, np.float64, np.int64), 4: (np.uint32, np.float32), 1: (np.uint8, np.int8)}
    wrong = [array.astype(dtype) for dtype in same_width[array.itemsize] if array.dtype != dtype]
    wrong += [array.astype(np.float16), array.astype(object), array.tobytes(), 5, "text"]
    if array.itemsize > 1:
        wrong.append(array.astype(array.dtype.newbyteorder()))
    for impostor in wrong:
        with pytest.raises((TypeError, BufferError)):
            _call(entry, **{name: impostor})


@needs_compiled
@pytest.mark.parametrize("entry, name", ARRAYS)
def test_none_stands_only_for_what_may_be_left_out(entry, name):
    """None where an array is needed is an error, never a crash."""
    if name in ENTRIES[entry][2]:
        _call(entry, **{name: None})
    else:
        with pytest.raises((TypeError, ValueError)):
            _call(entry, **{name: None})


@needs_compiled
@pytest.mark.parametrize(
    "entry, changed",
    [
        ("em_pass", {"n_classes": 0}),
        ("em_pass", {"n_classes": -1}),
        ("em_pass", {"n_classes": 4}),
        ("em_pass", {"n_classes": 2**31 - 1}),
        ("em_pass", {"first": -1}),
        ("em_pass", {"first": 2, "last": 1}),
        ("em_pass", {"last": 4}),
        ("em_pass", {"start": np.array([-1, 2, 2, 3])}),
        ("em_pass", {"start": np.array([0, 2, 2, 4])}),
        ("em_pass", {"start": np.zeros(0, np.int64), "last": 0}),
        ("em_pass", {"table": np.zeros((3, 2)), "counts": np.zeros((3, 2))}),
        ("em_pass", {"counts": np.zeros((2, 2))}),
        ("em_pass", {"log_prior": np.zeros(3)}),
        ("em_pass", {"totals": np.zeros(1)}),
        ("em_pass", {"offset": np.zeros((2, 2))}),
        ("em_pass", {"posterior": np.zeros((4, 2))}),
        ("vote_pass", {"n_classes": 0}),
        ("vote_pass", {"last": 4}),
        ("vote_pass", {"start": np.array([-1, 2, 2, 3])}),
        ("vote_pass", {"start": np.array([0, 2, 2, 4])}),
        ("vote_pass", {"code": np.zeros(2, np.int32)}),
        ("vote_pass", {"counts": np.zeros((4, 2))[:3]}),
        ("vote_pass", {"counts": np.zeros(7)}),
        ("vote_pass", {"counts": np.zeros(0)}),
        ("vote_pass", {"totals": np.zeros(3)}),
        ("vote_pass", {"share": np.zeros((2, 2))}),
        ("join_keys", {"worker_bits": -1}),
        ("join_keys", {"worker_bits": 32}),
        ("join_keys", {"worker_bits": 2**31 - 1, "label_bits": 2**31 - 1}),
        ("join_keys", {"worker_bits": 16, "label_bits": 16, "key": np.zeros(2, np.int32)}),
        ("join_keys", {"key": np.zeros(3, np.int64)}),
        ("join_keys", {"label": np.zeros(1, np.int32)}),
        ("split_keys", {"label_bits": -1}),
        ("split_keys", {"worker_bits": 16, "label_bits": 16, "key": np.zeros(2, np.int32)}),
        ("split_keys", {"worker": np.zeros(1, np.int32)}),
        ("pick", {"rank": np.zeros(0, np.int32)}),
        ("pick", {"rank": np.array([0, 2], np.int32)}),
        ("pick", {"rank": np.array([-1, 0], np.int32)}),
        ("pick", {"tied": np.zeros(2, bool)}),
        ("mark", {"low": 6}),
        ("mark", {"present": np.zeros(2, bool)}),
        ("mark", {"low": -(2**63)}),
        ("look_up", {"low": 6}),
        ("look_up", {"table": np.zeros(2, np.int32)}),
        ("look_up", {"codes": np.zeros(3, np.int32)}),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(entry, changed):
    """Numbers and lengths that disagree are an error, never a read or a write out of bounds."""
    with pytest.raises(ValueError, match="do not fit together"):
        _call(entry, **changed)


@needs_compiled
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_number_of_arguments_is_checked(entry):
    """One too few, one too many, none at all; results can only be written where writing is allowed."""
    module, arguments, _ = ENTRIES[entry]
    function, values = getattr(getattr(kernels, module), entry), list(arguments().values())
    for wrong in (values[:-1], [*values, None], []):
        with pytest.raises(TypeError):
            function(*wrong)
    values[-1].setflags(write=False)
    with pytest.raises((ValueError, BufferError)):
        function(*values)


@needs_compiled
def test_a_row_without_a_largest_number_has_a_class(either_path):
    """NaN everywhere: the first class of the rank on either path, not what happened to be in memory."""
    code, tied = kernels.largest(np.full((2, 3), np.nan), np.array([2, 0, 1], np.int32), 0.0)
    assert code.tolist() == [2, 2] and tied.tolist() == [False, False]
