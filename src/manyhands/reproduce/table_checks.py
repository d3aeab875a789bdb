"""Whether the parameters of a table's rows are parameters of their methods."""

from __future__ import annotations

from manyhands.reproduce.estimators import parameter_names
from manyhands.reproduce.keys import Keys
from manyhands.reproduce.tables import Table


def check_table(table: Table) -> None:
    """Refuse parameters that a method does not have; the methods are imported, and torch with some of them.

    Parameters
    ----------
    table : Table
        A parsed table.

    Raises
    ------
    ParameterError
        One sentence about the first unknown parameter.
    """
    for row in table.measured:
        keys = Keys({}, table.name, f"row {row.name!r}")
        known = parameter_names(row)
        for parameter in [name for setting in row.settings for name in setting]:
            if parameter == "random_state":
                keys.refuse("random_state is the seed of the run; leave it out")
            keys.check_known(parameter, known, f"parameter of {row.method} called")
