"""Figures and names of metrics and series as text."""

from __future__ import annotations

from manyhands.reproduce.metric_names import (
    OF_CROWD,
    OF_HISTORY,
    OF_LABELS,
    OF_ROUND,
    UNIFORM_PRIOR,
    is_share,
    is_spread,
)

_TITLES = {"macro_f1": "macro F1", "ece": "ECE", "auc": "AUC", "label_auc": "label AUC"}
_LARGE = 100  # from here on, values that are no shares are shown without decimals


def figure(value: float | None, deviation: float | None, metric: str, points: bool) -> str:
    """Format a value with its deviation, with as many decimals as are meaningful.

    Parameters
    ----------
    value : float or None
        The value; None gives an empty text.
    deviation : float or None
        Its deviation.
    metric : str
        Name of the metric.
    points : bool
        Whether shares are per cent.

    Returns
    -------
    str
        Such as ``85.2 ± 0.3``.
    """
    if value is None:
        return ""
    form = ".3f"
    if points and is_share(metric):
        form = ".2f" if is_spread(metric) else ".1f"
    if metric == "fit_seconds":
        form = ".0f" if value >= 10 else ".2g"
    elif form == ".3f" and abs(value) >= _LARGE:
        form = ".0f"
    return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


def title(metric: str) -> str:
    """Return the name of a metric, or of a swept parameter, for people.

    Parameters
    ----------
    metric : str
        Name in the table.

    Returns
    -------
    str
        The name with spaces.

    Examples
    --------
    >>> title("round.combined_imbalance"), title("label_accuracy.first"), title("macro_f1")
    ('combined imbalance', 'label accuracy (first)', 'macro F1')
    """
    if metric.endswith(UNIFORM_PRIOR):
        return f"{title(metric.removesuffix(UNIFORM_PRIOR))} (uniform prior)"
    if metric.startswith(OF_LABELS):
        return f"label accuracy ({title(metric.removeprefix(OF_LABELS))})"
    name = metric.removeprefix(OF_ROUND).removeprefix(OF_HISTORY).removeprefix(OF_CROWD)
    return _TITLES.get(name, name.replace("__", " ").replace("_", " "))


def series_title(name: str) -> str:
    """Return the name of a series for people.

    Parameters
    ----------
    name : str
        Name in the table.

    Returns
    -------
    str
        The name with spaces.

    Examples
    --------
    >>> series_title("rounds.combined_imbalance"), series_title("shares.truth"), series_title("class_shares")
    ('combined imbalance', 'share in the truth', 'class shares')
    """
    kind, _, key = name.partition(".")
    if kind == "shares":
        return f"share in the {key}"
    return (key or kind).replace("_", " ")
