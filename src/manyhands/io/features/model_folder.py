"""A trained model as a folder that says of itself whether it is whole: the classifier, its recipe, and a manifest.

`manifest.json` has a checksum of every other file, so that a file that is cut off, changed or of another run is
named before anything is made of it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from manyhands import registry
from manyhands.io.features.feature_pipeline import FeaturePipeline
from manyhands.writing import verify_folder

JSON, TENSORS, FEATURES = "model.json", "model.safetensors", "features.json"
FILES = (JSON, TENSORS, FEATURES)  # and the manifest, which is written with any set of files


def model_files(model: Any, recipe: FeaturePipeline) -> dict[str, bytes]:
    """The content of each file of a fitted classifier with its recipe."""
    with TemporaryDirectory() as made:
        model.save(Path(made) / "model")
        files = {name: (Path(made) / "model" / name).read_bytes() for name in (TENSORS, JSON)}
    return files | {FEATURES: recipe.to_json()}


def load_folder(folder: Path) -> tuple[Any, FeaturePipeline]:
    """The classifier and its recipe; a sentence names the file that is missing, changed or of another run."""
    verify_folder(folder, FILES)
    recipe = FeaturePipeline.from_json((folder / FEATURES).read_bytes(), str(folder / FEATURES))
    return registry.load_module("manyhands.persistence.models").load_model(folder), recipe
