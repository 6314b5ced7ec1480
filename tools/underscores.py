"""Underscores are never emphasis on the site, since formulas in prose are full of them: a hook of mkdocs."""

from markdown import Extension, Markdown
from markdown.inlinepatterns import SimpleTextInlineProcessor
from mkdocs.config.defaults import MkDocsConfig


class PlainUnderscores(Extension):
    """Takes every underscore for itself before the rule for emphasis sees it; *emphasis* stays."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(SimpleTextInlineProcessor("(_)"), "underscore", 70)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    # Pages and docstrings are rendered apart, but both with these.
    config.markdown_extensions.append(PlainUnderscores())  # type: ignore[arg-type]
    return config
