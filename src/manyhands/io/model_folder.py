"""A trained model as a folder that says of itself whether it is whole: the classifier, its recipe, and checksums.

`manifest.json` has a checksum of every other file, so that a file that is cut off, changed or of another model is
named before anything is made of it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.io.recipe import Recipe
from manyhands.writing import refuse_present, write_files

JSON, TENSORS, FEATURES, MANIFEST = "model.json", "model.safetensors", "features.json", "manifest.json"
FILES = (JSON, TENSORS, FEATURES, MANIFEST)
_SCHEMA = 1


def save_folder(model: Any, recipe: Recipe, folder: Path, *, force: bool = False) -> None:
    """Write a fitted classifier with its recipe; all files are made before the first one is in its place."""
    if not force:
        refuse_present(folder, FILES)
    with TemporaryDirectory() as made:
        model.save(Path(made) / "model")
        files = {name: (Path(made) / "model" / name).read_bytes() for name in (TENSORS, JSON)}
    files[FEATURES] = recipe.to_json()
    manifest = {"schema": _SCHEMA, "files": {name: _checksum(content) for name, content in files.items()}}
    write_files(folder, files | {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}, force=force)


def load_folder(folder: Path) -> tuple[Any, Recipe]:
    """The classifier and its recipe; a sentence names the file that is missing, changed or from another version."""
    sums = _manifest(folder)
    for name in (JSON, TENSORS, FEATURES):
        if name not in sums or not (folder / name).is_file():
            raise ParameterError(f"{folder} is not a whole model: {name} is missing. Train it again.")
        if _checksum((folder / name).read_bytes()) != sums[name]:
            raise ParameterError(f"{folder / name} is cut off or was changed since it was saved. Train it again.")
    recipe = Recipe.from_json((folder / FEATURES).read_bytes(), str(folder / FEATURES))
    return registry.load_module("manyhands.classifiers.saving").load_model(folder), recipe


def _manifest(folder: Path) -> dict[str, str]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ParameterError(f"{folder} is not a model that manyhands train wrote: it has no {MANIFEST}.")
    try:
        said = json.loads(path.read_bytes())
        schema, files = said["schema"], said["files"]
        sums = {str(name): str(value) for name, value in files.items()}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ParameterError(f"{path} cannot be read: it is cut off, or no manifest of manyhands.") from None
    if schema != _SCHEMA:
        raise ParameterError(f"{path} has the schema {schema!r}; this version reads {_SCHEMA}. Train the model again.")
    return sums


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
