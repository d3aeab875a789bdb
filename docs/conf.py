"""Configuration of the site; `make docs` assembles its source first (docs/_ext/assemble.py)."""

import os
import sys
import warnings
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))

import inventories  # noqa: E402

project = "manyhands"
author = "the manyhands developers"
copyright = "the manyhands developers, MIT licence"
version = release = version_of("manyhands")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "site_extension",
]
root_doc = "index"
exclude_patterns = ["gallery/*.ipynb", "gallery/**/*.py"]
templates_path = [str(DOCS / "_templates")]
default_role = "code-or-link"
needs_sphinx = "9.0"

# Every reference must be found. What cannot be found has its reason here.
nitpicky = True
nitpick_ignore: list[tuple[str, str]] = []

# Markdown: what a forge shows too, and the directives that a page of the site needs.
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
myst_dmath_allow_digits = False

# The reference: signatures without types, which the docstrings give.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["pyspark"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = inventories.ALIASES
add_module_names = False
toc_object_entries_show_parents = "hide"
smartquotes = False  # types such as {"a", "b"} are code
python_use_unqualified_type_names = True
viewcode_line_numbers = True

# References into other projects are resolved by the files of `inventories`, never by a network.
intersphinx_mapping = inventories.mapping(DOCS / "inventories", Path(os.environ.get("TMPDIR", "/tmp")))

sphinx_gallery_conf = {
    "examples_dirs": [str(DOCS.parent / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "write_computation_times": False,
    "reference_url": {},
}
warnings.filterwarnings("ignore", message=".*is non-interactive.*")  # examples end in plt.show()

html_theme = "pydata_sphinx_theme"
html_title = f"manyhands {release}"
html_static_path = [str(DOCS / "_static")]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_show_search_summary = False  # excerpts are loaded from pages, which a browser refuses for files
html_copy_source = False
html_theme_options = {
    "logo": {"text": "manyhands"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_depth": 3,
    "collapse_navigation": True,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
