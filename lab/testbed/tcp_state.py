"""What the kernel knows of TCP connections, read inside a network namespace (inet_diag)."""

import ctypes
import os
import socket
import struct
from typing import Final

from teller.errors import BadUsage

_NEW_NET: Final = 0x40000000  # CLONE_NEWNET
_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_INFO: Final = 2  # INET_DIAG_INFO
_ESTABLISHED: Final = 1 << 1
_DONE, _ERROR = 3, 2


class TcpState:
    """Asks for the connections of one namespace from outside of it."""

    def __init__(self, namespace: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        other = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        try:
            if libc.setns(other, _NEW_NET):
                raise BadUsage(f"{namespace}: {os.strerror(ctypes.get_errno())}")
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
            libc.setns(home, _NEW_NET)
        finally:
            os.close(home)
            os.close(other)

    def by_peer(self) -> dict[str, dict[str, int]]:
        """Give, by the peer's address, what all connections to it sum up to."""
        peers: dict[str, dict[str, int]] = {}
        for address, info in self._connections():
            rtt, cwnd = struct.unpack_from("I", info, 68)[0], struct.unpack_from("I", info, 80)[0]
            retrans = struct.unpack_from("I", info, 100)[0]
            sent, received = struct.unpack_from("QQ", info, 120)
            one = peers.setdefault(
                address, {"n": 0, "rtt_us": 0, "retrans": 0, "tx": 0, "rx": 0, "cwnd": 0}
            )
            one["n"] += 1
            one["rtt_us"] = max(one["rtt_us"], rtt)
            one["cwnd"] = max(one["cwnd"], cwnd)
            for key, value in (("retrans", retrans), ("tx", sent), ("rx", received)):
                one[key] += value
        return peers

    def _connections(self) -> list[tuple[str, bytes]]:
        ask = struct.pack(
            "BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED
        ) + bytes(48)
        self._socket.send(struct.pack("IHHII", 16 + len(ask), _BY_FAMILY, _DUMP, 1, 0) + ask)
        found: list[tuple[str, bytes]] = []
        while True:
            data = self._socket.recv(1 << 17)
            while data:
                size, kind = struct.unpack_from("IH", data)
                if kind in (_DONE, _ERROR):
                    return found
                found += _told(data[16:size])
                data = data[(size + 3) & ~3 :]


def _told(message: bytes) -> list[tuple[str, bytes]]:
    """Give the peer of one connection and its tcp_info, if it is there."""
    address = socket.inet_ntoa(message[24:28])
    rest = message[72:]
    while len(rest) >= 4:
        size, kind = struct.unpack_from("HH", rest)
        if kind == _INFO and size >= 140:
            return [(address, rest[4:size])]
        rest = rest[(size + 3) & ~3 :] if size else b""
    return []
