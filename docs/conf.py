"""Settings of the site, which `make docs` builds."""

import os
import re

from cgnlearn import __version__

os.environ.setdefault("MPLBACKEND", "agg")

project = "cgnlearn"
author = "The cgnlearn developers"
copyright = "The cgnlearn developers"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
if os.environ.get("READTHEDOCS"):  # links to pages of other projects need the network
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
exclude_patterns = ["_build", "examples", "reproduction"]
root_doc = "index"
templates_path = ["_templates"]
nitpicky = False  # parameter types are prose ("array (samples,)"), as in scikit-learn

html_theme = "pydata_sphinx_theme"
html_title = "cgnlearn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"start": [], "api": [], "model": []}
html_show_sourcelink = False
html_copy_source = False


myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc lists them in the parameter section
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # _templates/autosummary/class.rst lists them

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r".*\.py",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 10_000,
    "within_subsection_order": "FileNameSortKey",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
linkcheck_ignore = [r"https?://.*"]  # no network in the build; broken links inside the site are errors
suppress_warnings = [
    "config.cache",
    "ref.ref",  # labels of scikit-learn's own guide, in docstrings that are inherited from it
]


def without_last_line(_app, _page, source):
    """Remove the empty line that ends a doctest example."""
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def setup(app):
    """Register `without_last_line`."""
    app.connect("source-read", without_last_line)
