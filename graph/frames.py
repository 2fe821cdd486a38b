"""Bytes over a pipe in frames: a length, then that many bytes. An empty one ends what was sent."""

from typing import BinaryIO

_HEAD = 8


def write_frame(pipe: BinaryIO, data: bytes | memoryview) -> None:
    """Send one frame."""
    pipe.write(len(data).to_bytes(_HEAD, "little"))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> bytes | None:
    """Give the next frame, or None where there is no other."""
    head = pipe.read(_HEAD)
    if len(head) < _HEAD:
        return None
    size = int.from_bytes(head, "little")
    data = pipe.read(size)
    return data if len(data) == size else None
