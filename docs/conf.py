# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the site, which scripts/docs_site.py builds."""
project = "gpumemtrace"
author = "the authors of gpumemtrace"
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "index"
exclude_patterns = ["extra"]
html_theme = "furo"
html_title = "gpumemtrace"
html_extra_path = ["extra"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # it fetches pages, which a browser refuses from a folder
highlight_language = "none"
