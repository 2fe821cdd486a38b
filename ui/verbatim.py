"""The one place where text from traces and logs reaches a page: as it is, never as markup.

Streamlit takes most text for Markdown: a span's name could load a picture from anywhere, and
`__name__` would lose its underscores. So labels hold only words of ours and numbers, and all else
goes through here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, LiteralString

import pyarrow as pa
import streamlit as st
from markupsafe import Markup, escape

from teller.ui import phrase


def html(template: LiteralString, **values: object) -> None:
    """Show HTML of ours with values in it that are escaped, whatever they hold."""
    st.html(made(template, **values))


def made(template: LiteralString, **values: object) -> Markup:
    """Give HTML of ours with values in it that are escaped; `Markup` of ours stays as it is."""
    return Markup(template).format(**{name: _escaped(value) for name, value in values.items()})


def joined(parts: Iterable[Markup]) -> Markup:
    """Give pieces of HTML in a row."""
    return Markup("").join(parts)


def heading(text: str, lead: str = "") -> None:
    """Show the heading of a page."""
    html('<h1 class="t-head">{text}</h1><p class="t-lead">{lead}</p>', text=text, lead=lead)


def say(text: str) -> None:
    """Show a paragraph."""
    html('<p class="t-say">{text}</p>', text=text)


def listing(texts: Iterable[str]) -> None:
    """Show a list."""
    items = joined(made("<li>{text}</li>", text=text) for text in texts)
    html('<ul class="t-list">{items}</ul>', items=items)


def pieces(text: str) -> Markup:
    """Give text of several lines: the line breaks stay, each line is as any other text."""
    return Markup("\n").join(_escaped(line) for line in text.splitlines())


def facts(pairs: Iterable[tuple[str, str, str]]) -> Markup:
    """Give facts: what, its value, and a word more below."""
    return made(
        '<dl class="t-facts">{rows}</dl>',
        rows=joined(
            made("<div><dt>{a}</dt><dd>{b}<small>{c}</small></dd></div>", a=a, b=b, c=c)
            for a, b, c in pairs
        ),
    )


def key(items: Iterable[tuple[str, str]]) -> None:
    """Show what colours mean."""
    said = joined(
        made('<span><i style="background:{color}"></i>{text}</span>', color=color, text=text)
        for color, text in items
    )
    html('<div class="t-key">{said}</div>', said=said)


def lines(rows: Iterable[Mapping[str, Any]], zero_ns: int = 0) -> None:
    """Show log lines, each with its time since `zero_ns`, its rank or host, and its level."""
    said = joined(
        made(
            "<span>{when} {who} {level}</span> {text}\n",
            when="?" if row["time_ns"] is None else phrase.duration(row["time_ns"] - zero_ns),
            who=row["host"] or "" if row["rank"] is None else f"rank {row['rank']}",
            level=row["level"] or "", text=row["text"] or "",
        )
        for row in rows
    )  # fmt: skip
    html('<pre class="t-lines">{said}</pre>', said=said)


def table(
    rows: pa.Table | list[dict[str, Any]], config: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """Show rows; text cells are plain text, and control characters in them are spelt out."""
    found = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    plain = pa.table({
        field.name: pa.array([None if v is None else phrase.visible(v) for v in column.to_pylist()],
                             pa.string())
        if pa.types.is_string(field.type) else column
        for field, column in zip(found.schema, found.columns, strict=True)
    })  # fmt: skip
    return st.dataframe(plain, hide_index=True, column_config=dict(config or {}), **options)


def _escaped(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    return escape(phrase.visible(str(value)))
