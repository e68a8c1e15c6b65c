"""Configuration of the site (Sphinx). `make site` stages its source with `pages.py` and builds it into build/site."""

from pathlib import Path

import mergefall

HERE = Path(__file__).parent

project, author, copyright = "mergefall", "The mergefall authors", "The mergefall authors"
version = release = mergefall.__version__
extensions = [
    "myst_nb",
    *(f"sphinx.ext.{name}" for name in ("autodoc", "intersphinx", "napoleon", "viewcode")),
]
nb_execution_mode = "off"  # notebooks are stored with their outputs, which the tests compare
nb_merge_streams = True
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
smartquotes = False
default_role = "py:obj"  # `name` in a docstring links to what it names, or is code
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
viewcode_follow_imported_members = False  # else names that a package hands on lead back to anchors that are not there
python_maximum_signature_line_length = 88
napoleon_use_param = napoleon_use_rtype = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Lists of the names that our pages use, in place of the projects' inventories: the build needs no network.
intersphinx_mapping = {
    "gymnasium": ("https://gymnasium.farama.org", (str(HERE / "inventories" / "gymnasium.txt"),)),
    "numpy": ("https://numpy.org/doc/stable", (str(HERE / "inventories" / "numpy.txt"),)),
    "sb3": ("https://stable-baselines3.readthedocs.io/en/master", (str(HERE / "inventories" / "sb3.txt"),)),
}

html_theme = "furo"
html_title = "mergefall"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # a page from a file may not read others


def setup(app):
    app.connect("autodoc-process-docstring", shown_elsewhere)
    app.connect("autodoc-process-docstring", without_type, priority=400)  # before napoleon


def without_type(app, what, name, thing, options, lines):
    """Napoleon would take the words before a colon in an attribute's first line for its type: begin with a comment."""
    if what in ("property", "attribute", "data"):
        lines[:0] = ["..", ""]


def shown_elsewhere(app, what, name, thing, options, lines):
    """The docstrings of environments are Markdown, as Gymnasium's are; each has a page."""
    if any(line.startswith("## ") for line in lines):
        title = name.rpartition(".")[2].removesuffix("Env").removesuffix("Vector")
        lines[:] = [f"See :doc:`{title} </environments/{title}-v0>`."]
