"""The one thing pyproject.toml cannot say: extensions that may fail to build.

Without a C compiler the package installs and works on the NumPy path, only slower.
"""

import sys

from setuptools import Extension, setup

# No contraction into fused multiply-adds: every machine gives the same bits.
# -fno-trapping-math lets the compiler turn selects into vector blends; it does not change values.
gcc_like = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-maybe-uninitialized"]

setup(
    ext_modules=[
        Extension(
            f"manyhands.{name}",
            [f"src/manyhands/{name}.c"],
            depends=["src/manyhands/_views.h"],
            extra_compile_args=["/O2", "/fp:precise"] if sys.platform == "win32" else gcc_like,
            py_limited_api=True,
            optional=True,
        )
        for name in ("_fused", "_columns")
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
