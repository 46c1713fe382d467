"""How Sphinx builds these pages."""

from numpyro_rankings import __version__

project = "numpyro_rankings"
author = copyright = "The numpyro_rankings developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"numpyro_rankings {__version__}"
html_copy_source = False

# docstrings say what an argument may be; what a subclass does not describe is NumPyro's
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
add_module_names = False

# a link to a name of this package that is not documented is an error; those of other packages are
# not looked up, so that no build needs a network
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(numpyro|jax|numpy|pandas|arviz|xarray|matplotlib)\..*")]
