"""What a trace says of itself beside its events: who, where, with what; nothing else is kept."""

import re
from typing import Final, Self

import msgspec

from teller.ingest.readers.kineto_values import MISSING, number, ranks_of, said, words
from teller.ingest.source import Gpu, Group

Raw = msgspec.Raw
BASE: Final = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d+)')
RANK: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*("?\d+"?)')
PRODUCTS: Final = {
    "schema_version": "schema",
    "cupti": "CUPTI",
    "cuda_runtime": "CUDA runtime",
    "cuda_driver": "CUDA driver",
    "roctracer": "roctracer",
    "hip_runtime": "HIP runtime",
    "hip_driver": "HIP driver",
}


class Header(msgspec.Struct):
    """The top-level keys that are used; others, environments among them, are never looked at."""

    schema_version: Raw = msgspec.field(name="schemaVersion", default=MISSING)
    distributed: Raw = msgspec.field(name="distributedInfo", default=MISSING)
    devices: Raw = msgspec.field(name="deviceProperties", default=MISSING)
    old_devices: Raw = msgspec.field(name="computeProperties", default=MISSING)
    base: Raw = msgspec.field(name="baseTimeNanoseconds", default=MISSING)
    host_name: Raw = MISSING
    cupti: Raw = msgspec.field(name="cupti_version", default=MISSING)
    cuda_runtime: Raw = msgspec.field(name="cuda_runtime_version", default=MISSING)
    cuda_driver: Raw = msgspec.field(name="cuda_driver_version", default=MISSING)
    roctracer: Raw = msgspec.field(name="roctracer_version", default=MISSING)
    hip_runtime: Raw = msgspec.field(name="hip_runtime_version", default=MISSING)
    hip_driver: Raw = msgspec.field(name="hip_driver_version", default=MISSING)

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read an object; raises `msgspec.DecodeError`."""
        header = _decoder.decode(text)
        assert isinstance(header, cls)
        # a Raw is a view that would keep the whole text
        return cls(*(Raw(bytes(value)) for value in msgspec.structs.astuple(header)))

    @classmethod
    def found_in(cls, text: bytes) -> Self:
        """Give what patterns find in a header that does not decode."""
        base, rank = BASE.search(text), RANK.search(text)
        return cls(
            base=Raw(base[1]) if base else MISSING,
            distributed=Raw(b'{"rank":' + rank[1] + b"}") if rank else MISSING,
        )

    def joined(self, other: "Header") -> "Header":
        """Give this header with what only the other has."""
        mine, its = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Header(*(a if bytes(a) else b for a, b in zip(mine, its, strict=True)))

    @property
    def base_ns(self) -> int:
        """Give what is to be added to all times."""
        return number(self.base) or 0

    @property
    def host(self) -> str:
        """Give the host's name, empty where it is not told."""
        return said(self.host_name, str) or ""

    @property
    def rank(self) -> int | None:
        """Give the global rank."""
        return number(self._own.rank)

    @property
    def world_size(self) -> int | None:
        """Give the number of ranks."""
        return number(self._own.world_size)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Give the devices of the machine."""
        listed = said(self.devices, list[_Device]) or said(self.old_devices, list[_Device]) or []
        return tuple(Gpu(number(d.id) or 0, said(d.name, str) or "") for d in listed)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Give the process groups; ranks are empty where the list is cut short."""
        listed = said(self._own.pg_config, list[_PgConfig]) or []
        return tuple(
            Group(
                name=words(g.pg_name),
                ranks=ranks_of(words(g.ranks)),
                desc=words(g.pg_desc),
                size=number(g.pg_size) or len(ranks_of(words(g.ranks))),
            )
            for g in listed
        )

    @property
    def product(self) -> str:
        """Give versions, as people read them."""
        parts = [
            f"{word} {words(getattr(self, key))}"
            for key, word in PRODUCTS.items()
            if words(getattr(self, key))
        ]
        return ", ".join(["Kineto trace", *parts])

    @property
    def _own(self) -> "_Distributed":
        return said(self.distributed, _Distributed) or _Distributed()


class _Distributed(msgspec.Struct):
    rank: Raw = MISSING
    world_size: Raw = MISSING
    pg_config: Raw = MISSING


class _PgConfig(msgspec.Struct):
    pg_name: Raw = MISSING
    pg_desc: Raw = MISSING
    pg_size: Raw = MISSING
    ranks: Raw = MISSING


class _Device(msgspec.Struct):
    id: Raw = MISSING
    name: Raw = MISSING


_decoder = msgspec.json.Decoder(Header)


def document(text: bytes) -> tuple[Header, int] | None:
    """Decode a whole object at the start of a text; give it and its length, or None."""
    try:
        return Header.decode(text), len(text)
    except msgspec.DecodeError as err:
        said = str(err)
    if "trailing characters" not in said:
        return None
    byte = int(said.rsplit("byte ", 1)[1].rstrip(")"))
    length = text.rindex(b"}", 0, byte - 1) + 1
    return Header.decode(text[:length]), length
