"""One self-contained HTML page: its pictures and downloads are inside it, and nothing is fetched."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from rewardfree.data import files

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #222 }
h1, h2, h3 { line-height: 1.2 } code { background: #f2f2f2; padding: .1em .3em; border-radius: .2em }
code { overflow-wrap: anywhere } img { max-width: 100% } ul { margin: .3em 0 } figure { margin: 1em 0 }
figcaption, .note { color: #555; font-size: .9em } section, figure { break-inside: avoid }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: .5em 0; font-size: .9em }
th, td { padding: .25em .6em; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } tr:last-child td { border-bottom: 2px solid #888 }
thead th { border-bottom: 2px solid #888; vertical-align: bottom } td.best { font-weight: 700 }
pre { background: #f7f7f7; padding: .6em; overflow-x: auto; font-size: .8em }
.verdict { display: inline-block; padding: .1em .6em; border-radius: 1em; color: white; font-weight: 600 }
.likely { background: #2a7d4f } .doubtful { background: #a86b00 } .no-support { background: #a3262a }
@media print { body { max-width: none; margin: 0; font-size: 11px } a { color: inherit } }
"""


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write the page; its parts are HTML."""
    page = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )
    files.write_bytes(path, page.encode())


def section(title: str, *parts: str, level: int = 2) -> str:
    """A titled part that paper keeps together."""
    return f"<section><h{level}>{html.escape(title)}</h{level}>{''.join(parts)}</section>"


def note(text: str) -> str:
    """What to know of the thing above."""
    return f"<p class='note'>{html.escape(text)}</p>"


def captioned(image: str, caption: str) -> str:
    """A picture and what it shows."""
    return f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>"


def bullets(text: Sequence[str]) -> str:
    """Lines of text as a list."""
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in text)}</ul>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], best: Iterable[tuple[int, int]] = ()) -> str:
    """A table of text; `best` are the (row, column) to print bold."""
    bold = set(best)
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=best' if (i, j) in bold else ''}>{html.escape(cell)}</td>"
            for j, cell in enumerate(row)
        )
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def picture(figure: Figure, description: str) -> str:
    """A figure as a drawing, which is as sharp on paper as on a screen."""
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "rewardfree"}):  # the same figure gives the same bytes
        figure.savefig(content, format="svg", metadata={"Date": None})
    return _image("image/svg+xml", content, description)


def pixels(figure: Figure, description: str) -> str:
    """A figure with too many marks for a drawing."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return _image("image/png", content, description)


def _image(kind: str, content: io.BytesIO, description: str) -> str:
    data = base64.b64encode(content.getvalue()).decode()
    return f"<img alt='{html.escape(description)}' src='data:{kind};base64,{data}'>"


def download(name: str, content: str) -> str:
    """A link that saves a file which is inside the page."""
    data = base64.b64encode(content.encode()).decode()
    return f"<a download='{html.escape(name)}' href='data:text/csv;base64,{data}'>{html.escape(name)}</a>"
