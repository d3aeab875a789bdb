"""Count the exported names whose types are known to every type checker: `python .ci/exported_types.py pyright.json`.

pyright's own score (`--verifytypes manyhands`) also counts modules that only the package itself uses. Exported is what
`__all__` of `manyhands` and of its packages lists, with the members of these classes.
"""

import json
import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import manyhands


def exported():
    """Full names of all that is exported: where it is defined, which is how pyright calls it."""
    packages = ["manyhands", *(f"manyhands.{found.name}" for found in pkgutil.iter_modules(manyhands.__path__))]
    names = set()
    for package in packages:
        try:
            module = import_module(package)
        except ImportError:  # Spark is not installed
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                continue
            home = getattr(value, "__module__", package)
            names.add(f"{home}.{getattr(value, '__qualname__', name)}")
    return names


def main(path):
    """Print every exported symbol with a type that is not known, and the count; return whether there are any."""
    symbols = json.loads(Path(path).read_text(encoding="utf-8"))["typeCompleteness"]["symbols"]
    wanted = exported()
    mine = []
    for symbol in symbols:
        parts = symbol["name"].split(".")
        owners = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        if owners & wanted and not any(part.startswith("_") for part in parts):  # a private member is no interface
            mine.append(symbol)
    unknown = [symbol for symbol in mine if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]
    for symbol in unknown:
        print(symbol["name"], "; ".join(found["message"].splitlines()[0] for found in symbol["diagnostics"][:2]))
    print(f"{len(mine) - len(unknown)} of {len(mine)} exported symbols of {len(wanted)} names have known types.")
    return bool(unknown) or not mine


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
