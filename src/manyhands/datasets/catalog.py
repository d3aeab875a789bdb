"""Catalogue of the data folder: one entry for each data set."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from manyhands.exceptions import ParameterError


@dataclass(frozen=True)
class Spec:
    """Content of the folder of a data set.

    Attributes
    ----------
    description : str
        One or two sentences.
    family : {"crowd", "patterns", "items", "hotel", "syn"}
        Which reader to use.
    features : mapping of str to (str, str)
        Name of a choice of features -> (file, prefix of its arrays); the first is the default.
    rows : str or None
        Array that has the item of each row of the features; None if row i is item i.
    duplicates : {"last", "all"}
        Which labels to keep if a worker labelled an item several times.
    class_names : tuple of str or None
        Names of the classes.
    extra : tuple of str
        Further content of the data set.
    """

    description: str
    family: str = "crowd"
    features: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    rows: str | None = None
    duplicates: str = "last"
    class_names: tuple[str, ...] | None = None
    extra: tuple[str, ...] = ()


_PLAIN = {"default": ("features.npz", "X")}
_SCENES = ("highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry")
_WEATHER = ("can't tell", "negative", "neutral", "positive", "not about the weather")
_GASES = ("Ethanol", "Ethylene", "Ammonia", "Acetaldehyde", "Acetone", "Toluene")

SPECS: dict[str, Spec] = {
    "labelme": Spec(
        "Scenes labelled on Mechanical Turk, with features of VGG16 or EfficientNet-lite0.",
        features={
            "vgg16": ("features.npz", "X"),
            "vgg16-max": ("features.npz", "Xmax"),
            "efficientnet": ("features_effnetlite0.npz", "X"),
        },
        class_names=_SCENES,
    ),
    "music": Spec(
        "Genres of songs with 124 audio features; the busy workers are the bad ones.", "crowd", _PLAIN, "ids_train"
    ),
    "leaves": Spec("Species of leaves with 64 features; the hardest set.", "crowd", _PLAIN, "task"),
    "weather_text": Spec(
        "Sentiment of weather tweets; truth only where a second crowd agreed. extra: texts, one for each item.",
        features={"embedding": ("features.npz", "X"), "lsa": ("features.npz", "LSA")},
        rows="task",
        class_names=_WEATHER,
        extra=("texts",),
    ),
    "cifar10s": Spec(
        "Deliberately ambiguous images of CIFAR-10. extra, one for each annotation: what per cent the worker gave "
        "the label (percent), the second choice (label2, -1 for none) and its per cent (percent2); NaN for no number.",
        features=_PLAIN,
        rows="task",
        extra=("soft",),
    ),
    "reports_mozilla": Spec("Bug reports; the truth is a consensus of the same five workers.", "crowd", _PLAIN),
    "snow2008/rte": Spec("Textual entailment, Snow et al. 2008, with 517 text features.", "crowd", _PLAIN, "task"),
    "snow2008/temp": Spec("Order of events, Snow et al. 2008."),
    "snow2008/wsd": Spec("Word senses, Snow et al. 2008."),
    "agg/anesthesia": Spec(
        "Fitness of patients, Dawid and Skene 1979; no truth. Worker 1 rated every patient three times.",
        duplicates="all",
    ),
    "agg/caries": Spec("Tooth surfaces read by five dentists, from counts of answer patterns; no truth.", "patterns"),
    "agg/bluebirds": Spec("Two species of birds, Welinder et al. 2010: every worker labelled every item."),
    "agg/dogs": Spec("Breeds of dogs, Zhou et al. 2012."),
    "agg/web": Spec("Relevance of web pages in five grades, Zhou et al. 2012."),
    "agg/s_rel": Spec("Relevance of web pages in four grades, TREC 2010; truth of about a fifth."),
    "agg/s_face": Spec("Sentiment of faces."),
    "agg/fact_eval": Spec("Judgements of facts; truth of 576 items only."),
    "agg/zencrowd_in": Spec("Links between entities, ZenCrowd, workers from India."),
    "agg/zencrowd_all": Spec("Links between entities, ZenCrowd, all workers."),
    "usps": Spec("Handwritten digits of 16 x 16 pixels, 0 to 255; no annotations.", "items"),
    "gas_drift": Spec(
        "Six gases by 128 features of drifting sensors; no annotations. extra: batch and concentration of each item.",
        "items",
        class_names=_GASES,
        extra=("batch", "concentration"),
    ),
    "neucrowd_hotel": Spec(
        "Hotel reviews as 300 numbers with counts of seven votes; the workers are unknown, so there are no "
        "annotations, and the truth is the majority of the votes. extra: votes_valid, votes_test.",
        "hotel",
    ),
    "neucrowd_syn_valid_only": Spec(
        "The released part of NeuCrowd's simulated set: counts of seven votes, no annotations.", "syn"
    ),
}

_ALIASES = {name.rpartition("/")[2]: name for name in SPECS if "/" in name}


def names() -> list[str]:
    """Return the names that `load` accepts; the part before a slash may be left out.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> "labelme" in names(), "agg/bluebirds" in names()
    (True, True)
    """
    return sorted(SPECS)


def find(name: str) -> str:
    """Return the full name of a data set.

    Parameters
    ----------
    name : str
        Its name, with or without the part before the slash.

    Returns
    -------
    str
        The full name.

    Raises
    ------
    ParameterError
        If there is none of this name.
    """
    if isinstance(name, str) and _ALIASES.get(name, name) in SPECS:
        return _ALIASES.get(name, name)
    raise ParameterError(
        f"There is no data set called {name!r} for MANYHANDS_DATA{nearest(name, [*SPECS, *_ALIASES])}. "
        f"datasets.names() lists them all."
    )


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the most similar names as the end of a sentence.

    Parameters
    ----------
    name : object
        The name that was given.
    known : iterable of str
        Names that exist.

    Returns
    -------
    str
        Such as ``"; the nearest are labelme"``; empty if none is similar.
    """
    close = difflib.get_close_matches(str(name).lower(), sorted(known), n=3, cutoff=0.5)
    return f"; the nearest are {', '.join(close)}" if close else ""
