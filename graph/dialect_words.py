"""What the embedded engine has in the place of Cypher's words, as sentences for people."""

from collections.abc import Mapping
from typing import Final

# functions that it has, and that give something else
OTHERWISE: Final[Mapping[str, str]] = {
    "labels": "labels(n) is text here and a list on a server: name the label in the pattern, or "
    "write label(n), which only this engine knows",
    "substring": "substring() counts from 1 here and from 0 on a server: left(text, n) and "
    "right(text, n) are the same on both",
    "log": "log() is to the base of 10 here and natural on a server: log10(x) is the same on both; "
    "ln(x) is the natural one here",
}

# what it refuses by itself: a construct or a function's name -> what to write
UNKNOWN: Final[Mapping[str, str]] = {
    "call {": "CALL { … } is not known here: write the MATCH itself, and group by WITH",
    "call": "what there is is told here by CALL show_tables() RETURN *, and CALL "
    "table_info('Span') RETURN *",
    "count {": "COUNT { … } and COLLECT { … } are not known here: write OPTIONAL MATCH and count() "
    "or collect()",
    "with order": "WITH … ORDER BY needs a LIMIT here: add LIMIT 1000000000",
    "((": "a pattern that repeats is written (a)-[:TYPE*1..12]->(b) here",
    "{.": "s {.id, .name} is written {id: s.id, name: s.name} here",
    "[(": "[(a)-->(b) | …] is not known here: write OPTIONAL MATCH and collect()",
    ":!": "(n:!A) is written WHERE label(n) <> 'A' here",
    "<<": "a < b < c is written a < b AND b < c here",
    "shortestpath": "shortestPath() is written (a)-[:TYPE* SHORTEST 1..20]->(b) here",
    "allshortestpaths": "allShortestPaths() is written (a)-[:TYPE* ALL SHORTEST 1..20]->(b) here",
    "reduce": "reduce() is not known here: UNWIND the list and sum(), or list_sum(list)",
    "type": "type(r) is written label(r) here",
    "elementid": "elementId(n) is written id(n) here; n.id is the same on both",
    "tointeger": "toInteger(x) is written CAST(x AS INT64) here",
    "tofloat": "toFloat(x) is written CAST(x AS DOUBLE) here; 1.0 * x is the same on both",
    "tostring": "toString(x) is written CAST(x AS STRING) here",
    "toboolean": "toBoolean(x) is written CAST(x AS BOOL) here",
    "head": "head(l) is written list_extract(l, 1) here; l[0..1] is the same on both",
    "last": "last(l) is written list_extract(l, -1) here",
    "tail": "tail(l) is written list_slice(l, 2, size(l)) here",
    "split": "split(text, sign) is written string_split(text, sign) here",
    "round": "round(x) is written round(x, 0) here, which is the same on both",
    "stdev": "stDev(x) is not known here: sqrt(avg(x * x) - avg(x) * avg(x)) of 1.0 * x is near it",
    "stdevp": "stDevP(x) is written sqrt(avg(x * x) - avg(x) * avg(x)) of 1.0 * x",
    "exp": "exp(x) is written 2.718281828459045 ^ x",
    "e": "e() is written 2.718281828459045",
    "isempty": "isEmpty(x) is written size(x) = 0, which is the same on both",
    "exists": "exists(n.name) is written n.name IS NOT NULL, which is the same on both",
    "isnan": "isNaN(x) is written x <> x",
    "startnode": "startNode(r) is not known here: name the node in the pattern",
    "endnode": "endNode(r) is not known here: name the node in the pattern",
    "datetime": "dates are not the same on both: send numbers as parameters, as times here are ns",
    "localdatetime": "dates are not the same on both: send numbers, as times here are ns",
    "duration": "durations are not the same on both: send numbers, as times here are ns",
    "timestamp": "the time of asking is not known here: send it as a parameter",
    "rand": "rand() is not known here: random numbers come as parameters",
    "randomuuid": "randomUUID() is not known here: it comes as a parameter",
}
