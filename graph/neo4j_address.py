"""Where a Neo4j server is, and who asks: from a URI and the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from teller.errors import BadUsage

SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
URI: Final = "TELLER_NEO4J_URI"
USER: Final = "TELLER_NEO4J_USER"
PASSWORD: Final = "TELLER_NEO4J_PASSWORD"
DATABASE: Final = "TELLER_NEO4J_DATABASE"
DEFAULT_USER: Final = "neo4j"
DEFAULT_DATABASE: Final = "neo4j"  # the only one that the Community edition has


@dataclass(frozen=True, slots=True)
class Address:
    """A server and its database; `uri` holds no password and may be shown."""

    uri: str
    user: str = DEFAULT_USER
    password: str = field(default="", repr=False)
    database: str = DEFAULT_DATABASE


def is_address(text: str) -> bool:
    """Tell whether it is the URI of a Neo4j server."""
    return text.partition("://")[0].lower() in SCHEMES


def address(text: str, environ: Mapping[str, str] = os.environ) -> Address:
    """Give the address: SCHEME://HOST[:PORT][/DATABASE]; the rest is in `TELLER_NEO4J_…`."""
    if not is_address(text):
        scheme = text.partition("://")[0] if "://" in text else "none"
        raise BadUsage(f"a store's address begins with {', '.join(SCHEMES)}; here: {scheme}")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as err:
        raise BadUsage(f"the store's address cannot be read: {err}") from err
    if not host:
        raise BadUsage(f"the store's address names no host: {parts.scheme}://HOST:7687")
    place = f"[{host}]" if ":" in host else host
    return Address(
        uri=f"{parts.scheme}://{place}:{port or 7687}",
        user=unquote(parts.username or "") or environ.get(USER) or DEFAULT_USER,
        password=unquote(parts.password or "") or environ.get(PASSWORD, ""),
        database=parts.path.strip("/") or environ.get(DATABASE) or DEFAULT_DATABASE,
    )
