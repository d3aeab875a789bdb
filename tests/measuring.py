"""What the tests of `reproduce` share: small tables, results made up, and processes that end badly."""

import os
import signal
import sys
import time
from pathlib import Path

from manyhands.em.kernels import thread_count
from manyhands.reproduce.cells import cells_of, run_cell
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import DataSet, Published, Row, Table

BLOBS = DataSet(
    "blobs", make="make_blobs", arguments={"n_items": 60, "n_workers": 6, "n_classes": 2, "n_test": 40}, quick_items=30
)
CROWD = DataSet("crowd", make="make_crowd", arguments={"n_items": 60, "n_workers": 6}, quick_items=30)  # light to make
FOLDED = DataSet("folded", make="make_blobs", arguments=BLOBS.arguments, seeded=(), folds=5)
VOTE = Row("vote", "majority-vote", published={"crowd": Published(90.0)})
SKENE = Row("D&S", "dawid-skene", published={"crowd": Published(95.0, 1.0)})
LINEAR = Row("linear", "two-stage", parameters={"aggregator": "majority-vote", "classifier": "logistic-regression"})
UNKNOWN = Row("oracle", why="it sees the truth", published={"crowd": Published(99.0)})

TOML = """
title = "A small table"
paper = "Nobody 2020"
number = "Table 9"
seeds = 3
metrics = ["accuracy", "log_loss"]
points = true
deviations = ["Everything is made up."]
[[datasets]]
name = "crowd"
make = "make_crowd"
arguments = { n_items = 60, n_workers = 6 }
quick = { items = 30 }
[[rows]]
name = "vote"
method = "majority-vote"
published = { crowd = 90.0 }
[[rows]]
name = "D&S"
method = "dawid-skene"
published = { crowd = [95.0, 1.0] }
"""


def small_table(rows=(VOTE, SKENE), datasets=(CROWD,), **others):
    shown = {"metrics": ("accuracy",), "seeds": 2, "points": True} | others
    return Table("own/small", "A small table", "Nobody 2020.", "Table 9", tuple(datasets), tuple(rows), **shown)


def made_up(table, values, n_test=100, **others):
    """Records of a table from {(data set, row): a share for each seed}; text in place of it is an error."""
    found = {}
    for cell in cells_of(table):
        value = values.get((cell.dataset.name, cell.row.name), {})
        seed = cell.seed - table.first_seed
        if seed < len(value):
            result = {"error": value[seed]} if isinstance(value[seed], str) else {"metrics": {"accuracy": value[seed]}}
            about = {"commit": "c0ffee" * 6, "machine": "2 cores, x86_64", "seconds": 1.5, "n_test": n_test}
            found[cell.key] = {"key": cell.key} | about | result | others
    return Records(found)


def dies(line):
    """A process whose cell uses all memory there is."""
    line.send("ready")
    line.recv()
    os.kill(os.getpid(), 9)


def stillborn(line):
    """A process that does not come up."""
    sys.exit(3)


def sleeps(line):
    """A process in which every cell but that of the first seed takes a minute; a file tells when it is at one."""
    from manyhands.reproduce import runner

    def long_cell(cell, part=None):
        if cell.seed > 1000:
            Path(os.environ["ASLEEP"]).touch()
            time.sleep(60)
        return run_cell(cell, part)

    runner.run_cell = long_cell
    runner._work(line)


def command_that_sleeps(*arguments):
    """The command line, with such processes."""
    from manyhands.cli.app import run
    from manyhands.reproduce import runner

    runner._work = sleeps
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background may ignore it
    sys.exit(run(list(arguments)))


def tells_threads(line):
    """A process that says how many threads it was given."""
    from threadpoolctl import threadpool_info

    line.send("ready")
    line.recv()
    most = max([pool["num_threads"] for pool in threadpool_info()], default=1)
    line.send({"metrics": {"libraries": most, "kernels": thread_count(), "pid": os.getpid()}})
