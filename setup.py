"""What pyproject.toml cannot say: C modules that may fail to build, wheels without them, and an SBOM in each wheel.

MANYHANDS_BUILD decides what a build makes: "compiled" fails where the C modules cannot be compiled (release wheels),
"pure" leaves them out (the wheel py3-none-any), and without the variable a compiler is used where there is one. Without
the C modules the package works on the NumPy path, only slower, with the same results to the bit.
"""

import json
import os
import platform
import re
import shutil
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# No contraction into fused multiply-adds: every machine gives the same bits.
# -fno-trapping-math lets the compiler turn selects into vector blends; it does not change values.
# -g0: debug information would name the folder of the build, so that no two builds had the same bytes.
gcc_like = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-maybe-uninitialized", "-g0"]

wanted = os.environ.get("MANYHANDS_BUILD", "")
if wanted not in ("", "compiled", "pure"):
    raise SystemExit(f'MANYHANDS_BUILD is {wanted!r}. Set it to "compiled" or "pure", or leave it out.')
# The stable interface of CPython is not that of PyPy, nor that of CPython without a global lock.
has_stable_abi = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
is_compiled = wanted == "compiled" or (wanted == "" and has_stable_abi)


class BuildExt(build_ext):
    """On Windows clang-cl compiles: Microsoft's compiler has no vector types."""

    def build_extensions(self) -> None:
        """Replace the compiler and write its options in its way."""
        clang = shutil.which("clang-cl")
        if self.compiler.compiler_type == "msvc" and clang:
            self.compiler.initialize()
            self.compiler.cc = clang
            for extension in self.extensions:
                extension.extra_compile_args = [f"/clang:{option}" for option in gcc_like]
        super().build_extensions()


class BdistWheel(bdist_wheel):
    """A wheel with a bill of materials (PEP 770) in its metadata."""

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        """Add the bill of materials to the metadata of the wheel."""
        super().egg2dist(egginfo_path, distinfo_path)
        folder = Path(distinfo_path) / "sboms"
        folder.mkdir()
        text = json.dumps(bill_of_materials(self.distribution), indent=2) + "\n"
        (folder / "manyhands.cdx.json").write_text(text, encoding="utf-8", newline="\n")


def bill_of_materials(distribution) -> dict:
    """Describe the wheel as CycloneDX 1.7: the package, which contains nothing of others, and what it requires."""
    name, version = distribution.get_name(), distribution.get_version()
    required = []
    for requirement in sorted(distribution.install_requires):
        of, floor = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement).groups()
        required.append(
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{of}",
                "name": of,
                "versionRange": f"vers:pypi/>={floor}",
                "isExternal": True,  # installed beside the wheel, not in it
                "scope": "required",
                "purl": f"pkg:pypi/{of}",
            }
        )
    itself = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": "MIT", "acknowledgement": "declared"}}],
        "purl": f"pkg:pypi/{name}@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "version": 1,
        "metadata": {"component": itself},
        "components": required,
        "dependencies": [
            {"ref": itself["bom-ref"], "dependsOn": [part["bom-ref"] for part in required]},
            *({"ref": part["bom-ref"]} for part in required),
        ],
    }


setup(
    cmdclass={"bdist_wheel": BdistWheel, "build_ext": BuildExt},
    ext_modules=[
        Extension(
            f"manyhands.{name}",
            [f"src/manyhands/{name}.c"],
            depends=sorted(str(path) for path in Path("src/manyhands").glob("_*.h")),
            extra_compile_args=gcc_like,
            py_limited_api=True,
            optional=wanted != "compiled",
        )
        for name in ("_fused", "_columns")
        if is_compiled
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if is_compiled else {},
)
