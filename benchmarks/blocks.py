"""Generated blocks of documents, `<!-- KIND: NAME -->` … `<!-- end -->`, and tables for them."""

import re
from collections.abc import Callable, Sequence


def fill_blocks(text: str, kind: str, content_of: Callable[[str], str]) -> str:
    """Replace the content of every block of a kind by that of its name."""

    def fill(block: re.Match[str]) -> str:
        return f"{block[1]}\n{content_of(block[2]).rstrip()}\n{block[3]}"

    pattern = rf"(<!-- {kind}: ([\w., -]+) -->)\n.*?(<!-- end -->)"
    return re.sub(pattern, fill, text, flags=re.DOTALL)


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, aligns_numbers: bool = False
) -> str:
    """A table in Markdown; with `aligns_numbers`, all columns but the first are to the right."""
    rule = "---:" if aligns_numbers else "---"
    lines = [header, ["---", *(rule for _ in header[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
