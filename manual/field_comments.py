"""Extension of Griffe: the comment beside a field is its docstring in the reference.

Fields have their shape and meaning in a comment, as in `rewards: Float64s  # (games,)`.
"""

import re
from typing import Any

from griffe import Attribute, Docstring, Extension, Kind

COMMENT = re.compile(r"  # (?!noqa|type:|fmt:)(.+)$")


class FieldComments(Extension):
    """Documents attributes of classes that have a comment and no docstring."""

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        """Take the comment in the last line of the attribute."""
        is_field = attr.parent is not None and attr.parent.kind is Kind.CLASS
        if attr.docstring or not is_field or not attr.lines:
            return
        if comment := COMMENT.search(attr.lines[-1]):
            text = comment[1][0].upper() + comment[1][1:]
            attr.docstring = Docstring(f"{text}.", lineno=attr.lineno, parent=attr)
