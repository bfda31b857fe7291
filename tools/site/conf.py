"""Sphinx settings of the reference site. pages.py writes its pages."""

import sys

project = "Kiln"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6
suppress_warnings = ["myst.header"]  # a page may begin below its first level

html_theme = "furo"
html_title = "Kiln"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_show_search_summary = False  # summaries read other pages, which browsers refuse for pages opened from disk
highlight_language = "text"
smartquotes = False


def setup(app):
    """Excludes parameters of functions from the search, and caches the name of each C++ declaration."""
    for name in ("c", "cpp"):
        domain = app.registry.domains[name]
        domain.get_objects = lambda self, every=domain.get_objects: (
            found for found in every(self) if found[2] not in ("functionParam", "templateParam"))

    declaration = sys.modules[app.registry.domains["cpp"].__module__].ASTDeclaration
    newest = declaration.get_newest_id

    def kept(self):
        if "kept_id" not in self.__dict__:
            self.kept_id = newest(self)
        return self.kept_id
    declaration.get_newest_id = kept
