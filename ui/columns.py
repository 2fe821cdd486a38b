"""Columns of tables: what their head says, and how numbers in them read."""

from typing import Any

import streamlit as st

from teller.graph.finding import SEVERITIES

_COLORS = ("red", "orange", "yellow", "blue", "gray")


def ms(label: str, sign: str = "") -> Any:
    """Give a column of milliseconds."""
    return st.column_config.NumberColumn(label, format=f"%{sign}.3f")


def number(label: str, digits: int = 0) -> Any:
    """Give a column of numbers with that many digits behind the point."""
    return st.column_config.NumberColumn(label, format=f"%.{digits}f")


def wide(label: str) -> Any:
    """Give a column of long text."""
    return st.column_config.TextColumn(label, width="large")


def moment(label: str) -> Any:
    """Give a column of UTC times to the minute."""
    return st.column_config.DatetimeColumn(label, format="YYYY-MM-DD HH:mm")


def severity() -> Any:
    """Give the column that shows severities as coloured labels."""
    return st.column_config.MultiselectColumn(
        "Severity", options=list(SEVERITIES[::-1]), color=list(_COLORS), width="small"
    )
