"""Markdown shows what the traces say, to the letter, and nothing more."""

from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from teller.graph.finding import Diagnosis
from teller.ui import markdown, phrase

PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def _shown(source: str) -> _Words:
    words = _Words()
    words.feed(PARSER.render(source))
    return words


# no other kinds of blanks: what HTML does with those is not up to Markdown
@given(st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp"], include_characters=" ")))
@example("1. a")
@example("12) a")
@example("- a *b* _c_ __d__ a_b `x` ~~y~~ &amp; <b>z</b> [k](http://l) ![m](n) # o")
@example("    code")
@example("=== x")
@example("@someone, see #12 and :tada: a\\")
@example("a | b")
def test_any_text_is_shown_to_the_letter(text: str) -> None:
    in_list = _shown(f"- {markdown.escape(text)}")
    assert in_list.words.strip("\n") == phrase.visible(text)
    assert in_list.tags == ["ul", "li"]


def test_a_table_keeps_its_cells_whatever_they_hold() -> None:
    rows = [["a|b", "`c`", "<td>"], ["d\ne", "@f", "|"]]
    shown = _shown("\n".join(markdown.table(["x", "y", "z"], rows)))
    assert shown.tags.count("td") == 6
    assert "".join(shown.words.split()) == "xyz" + "a|b`c`<td>" + "d\\ne@f|"


def test_a_diagnosis_names_who_when_and_what_next(diagnosis: Diagnosis) -> None:
    words = unescape(_shown(markdown.render(diagnosis)).words)
    for said in (
        "Fault found",
        "layers.3.mlp.gate_up takes 2.9 times as long on rank 5 as on its peers",
        "operator layers.3.mlp.gate_up · rank 5 · host node-b",
        "steps 40–77, from 2025-11-29 14:03:24.523 UTC",
        "460 ms, 17 % of the time, 3.68 s of GPU time",
        "Span 9007199254740995",
        "gate_up <b>$x^2$</b> | `rm` *a* [red]\\x1b[31m{{7*7}} 漢字",
        "byte 4670564",
    ):
        assert said in words


@pytest.mark.parametrize("many", [101, 1_024])
def test_a_long_table_says_how_much_it_leaves_out(many: int) -> None:
    lines = list(markdown.table(["n"], [[str(n)] for n in range(many)]))
    assert len(lines) == 2 + 100 + 2
    assert f"{many - 100:,} more" in lines[-1]
