"""The one thing pyproject.toml cannot say: an extension that may fail to build.

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
            "manyhands._fused",
            ["src/manyhands/_fused.c"],
            extra_compile_args=["/O2", "/fp:precise"] if sys.platform == "win32" else gcc_like,
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
