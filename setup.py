"""The one thing pyproject.toml cannot say: extensions that may fail to build.

Without GCC or Clang the package installs and works on the NumPy path, only slower.
"""

from pathlib import Path

from setuptools import Extension, setup

# No contraction into fused multiply-adds: every machine gives the same bits.
# -fno-trapping-math lets the compiler turn selects into vector blends; it does not change values.
gcc_like = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-maybe-uninitialized"]

setup(
    ext_modules=[
        Extension(
            f"manyhands.{name}",
            [f"src/manyhands/{name}.c"],
            depends=sorted(str(path) for path in Path("src/manyhands").glob("_*.h")),
            extra_compile_args=gcc_like,
            py_limited_api=True,
            optional=True,
        )
        for name in ("_fused", "_columns")
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
