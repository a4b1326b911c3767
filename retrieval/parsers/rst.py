"""reStructuredText by docutils; where it meets directives that it does not know, the source as it stands.

Files may not include others or pass raw markup through. docutils' transforms are left out: nested substitutions
would let a small file grow without end.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers import rst
from docutils.utils import new_document

from retrieval.parsers.encodings import decode
from retrieval.parsers.parsed import Mark, Parsed, moved
from retrieval.parsers.plain import underlined


def parse_rst(data: bytes) -> Parsed:
    """The words without marks and comments, or the source."""
    source = decode(data)
    tree = _parse(source)
    if tree is None or any(message["level"] > 2 for message in tree.findall(nodes.system_message)):
        return Parsed(source, marks=tuple(underlined(source)))
    for reference in list(tree.findall(nodes.substitution_reference)):
        definition = tree.substitution_defs.get(reference.get("refname", ""))
        if definition is not None and not next(iter(definition.findall(nodes.substitution_reference)), None):
            reference.replace_self(nodes.Text(definition.astext()))
    for hidden in list(tree.findall(lambda node: isinstance(node, nodes.Invisible | nodes.system_message))):
        if hidden.parent is not None:
            hidden.parent.remove(hidden)
    text = tree.astext()
    blank = len(text) - len(text.lstrip())
    return Parsed(text.strip(), marks=tuple(moved(_titles(tree, 0, 0), -blank)))


def _parse(source: str) -> nodes.document | None:
    """The document, or None if it is nested too deeply."""
    settings = get_default_settings(rst.Parser)
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = io.StringIO()
    tree = new_document("", settings)
    try:
        rst.Parser().parse(source, tree)
    except RecursionError:
        return None
    return tree


def _titles(node: nodes.Element, level: int, start: int) -> Iterator[Mark]:
    """The titles of sections in a node whose text starts at `start`: its children's, with separators between."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from _titles(child, level + 1, start)
        elif isinstance(child, nodes.title):
            yield Mark(level, start, start + len(child.astext()))
        start += len(child.astext()) + len(node.child_text_separator)
