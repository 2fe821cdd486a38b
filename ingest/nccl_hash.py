"""The id that NCCL gives a communicator split from another: a hash that logs do not print."""

from typing import Final

UNSIGNED: Final = (1 << 64) - 1
ID_BYTES: Final = 128
HASHED: Final = (2, 26)  # the release from which numbers are hashed, not their text


def split_id(parent: str, count: int | None, color: int, version: tuple[int, int]) -> str:
    """Give the id, as hex, of the communicator that a split of `parent` makes for a colour.

    `count` says which split of that parent it is, from 1; releases before 2.24 do not use it.
    """
    number = int(parent, 16)
    if count is not None and version >= HASHED:
        parts = [(number, 8), (count & 0xFFFFFFFF, 4), (color & 0xFFFFFFFF, 4)]
        return f"{_hash([n.to_bytes(size, 'little') for n, size in parts]):x}"
    text = f"{number:016x}-{color}" if count is None else f"{number:016x}-{count}-{color}"
    return f"{_hash([text.encode().ljust(ID_BYTES, bytes(1))]):x}"


def _hash(parts: list[bytes]) -> int:
    first = second = 1
    for part in parts:
        first ^= len(part)
        for at in range(0, len(part), 8):
            first = (first + second) & UNSIGNED
            second ^= first
            first = ((first ^ first >> 31) * 0x9DE62BBC8CEF3CE3) & UNSIGNED
            second = ((second ^ second >> 32) * 0x485CD6311B599E79) & UNSIGNED
            first = (first + int.from_bytes(part[at : at + 8], "little")) & UNSIGNED
    mixed = ((first ^ first >> 31) * 0xBAC3BD562846DE6B) & UNSIGNED
    mixed = (mixed + second) & UNSIGNED
    return ((mixed ^ mixed >> 32) * 0x995A187A14E7B445) & UNSIGNED
