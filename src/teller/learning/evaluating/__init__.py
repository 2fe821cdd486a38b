"""The tables that judge a model: rows that are kept, figures with intervals, one page."""
