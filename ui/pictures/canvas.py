"""The paper for all pictures: colours that the page decides, plain labels, tool tips."""

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from teller.ui.phrase import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

# Drawn in colours that no picture uses otherwise, and exchanged for the page's variables.
INK: Final = "#010203"
MUTED: Final = "#020304"
LINE: Final = "#030405"
PAPER: Final = "#040506"
ALARM: Final = "#050607"
_VARIABLES: Final = {
    INK: "var(--ink)", MUTED: "var(--muted)", LINE: "var(--line)", PAPER: "var(--paper)",
    ALARM: "var(--alarm)",
}  # fmt: skip

# From hardly there to glaring, on white and on black alike.
HEAT: Final = LinearSegmentedColormap.from_list(
    "teller", [(0.5, 0.55, 0.62, 0.13), (0.96, 0.70, 0.25, 0.85), (0.84, 0.15, 0.16, 1.0),
               (0.62, 0.0, 0.17, 1.0)],
)  # fmt: skip

# The same for thin lines, which must be seen even where all is well.
FLOW: Final = LinearSegmentedColormap.from_list(
    "teller_flow", [(0.58, 0.63, 0.70), (0.93, 0.66, 0.24), (0.84, 0.15, 0.16), (0.66, 0.0, 0.19)]
)

_STYLE: Final[Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 9, "text.color": INK,
    "axes.edgecolor": LINE, "axes.labelcolor": MUTED, "axes.linewidth": 0.8,
    "xtick.color": LINE, "ytick.color": LINE, "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 9, "axes.titlelocation": "left", "axes.titlecolor": MUTED,
}  # fmt: skip


@contextmanager
def drawing(width: float, height: float) -> "Iterator[Figure]":
    """Give an empty figure of that size in inches, with all settings in force."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # a browser has the letters that the measuring font lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure


def svg(figure: Figure, name: str, says: str, tips: Mapping[str, str] | None = None) -> str:
    """Give the SVG element; `says` is its text for who cannot see it, `tips` go by group id."""
    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.id": name}):
        figure.savefig(text, format="svg", transparent=True, metadata=_NOTHING)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    for colour, variable in _VARIABLES.items():
        drawn = drawn.replace(colour, variable)
    used = {name, *re.findall(r'(?:url\(|href=")#([^)"]+)', drawn)}
    for gid, tip in (tips or {}).items():
        mark = f'<g id="{gid}">'
        drawn = drawn.replace(mark, f"{mark}<title>{escape(visible(tip))}</title>", 1)
    drawn = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", drawn)
    label = escape(visible(says))
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


_NOTHING: Final = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def time_unit(most_ns: float) -> tuple[float, str]:
    """Give the unit that suits the longest time: ns in it, and its name."""
    for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if most_ns >= size:
            return size, name
    return 1.0, "ns"


def shortened(text: str, letters: int) -> str:
    """Give text that fits in so many letters; what tells names apart is mostly at the end."""
    text = visible(text)
    if len(text) <= letters:
        return text
    if letters < 7:
        return ""
    head = (letters - 1) // 3
    return f"{text[:head]}…{text[-(letters - 1 - head) :]}"


def every(labels: Sequence[int], most: int) -> list[int]:
    """Give places in `labels`, on round numbers where those suffice, at most `most` of them."""
    best: list[int] = []
    for stride in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 1000, 2000):
        places = [place for place, label in enumerate(labels) if label % stride == 0]
        if len(best) < len(places) <= most:
            best = places
    return best or list(range(0, len(labels), -(-len(labels) // most)))
