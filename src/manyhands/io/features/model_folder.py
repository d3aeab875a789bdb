"""The folder of a trained model: the classifier, its feature pipeline, and a manifest.

``manifest.json`` has a checksum of every other file, so that a file which is incomplete, changed or of another run is
named before anything is loaded.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from manyhands import registry
from manyhands.io.features.feature_pipeline import FeaturePipeline
from manyhands.writing import verify_folder

JSON, TENSORS, FEATURES = "model.json", "model.safetensors", "features.json"
FILES = (JSON, TENSORS, FEATURES)  # the manifest is written with any set of files


def model_files(model: Any, pipeline: FeaturePipeline) -> dict[str, bytes]:
    """Return the files of a fitted classifier with its feature pipeline.

    Parameters
    ----------
    model : CrowdClassifier
        The fitted classifier.
    pipeline : FeaturePipeline
        How its features are computed.

    Returns
    -------
    dict of str to bytes
        Name of each file -> content.
    """
    with TemporaryDirectory() as made:
        model.save(Path(made) / "model")
        files = {name: (Path(made) / "model" / name).read_bytes() for name in (TENSORS, JSON)}
    return files | {FEATURES: pipeline.to_json()}


def load_folder(folder: Path, device: str | None = None) -> tuple[Any, FeaturePipeline]:
    """Load a classifier and its feature pipeline.

    Parameters
    ----------
    folder : Path
        The folder.
    device : str or None, default=None
        Device of torch on which a network predicts; None is the CPU.

    Returns
    -------
    model : CrowdClassifier
        The fitted classifier.
    pipeline : FeaturePipeline
        How its features are computed.

    Raises
    ------
    ParameterError
        If a file is missing, changed or of another run, or the device cannot be used.
    """
    verify_folder(folder, FILES)
    pipeline = FeaturePipeline.from_json((folder / FEATURES).read_bytes(), str(folder / FEATURES))
    return registry.load_module("manyhands.persistence.models").load_model(folder, device=device), pipeline
