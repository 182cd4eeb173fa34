"""The links among the slots of an attempt, over which the output of a stage goes from every slot to every slot.

With few slots, each sends to the others directly. With many, one slot is the hub: every other slot sends it one letter,
which contains its small messages, and gets one letter back. Large messages are sent directly, and the letter announces
them. A quiet epoch, in which hardly any slot sends data, then takes two messages per slot instead of two per pair of
slots.
"""

from __future__ import annotations

import pickle
import selectors
import socket
from collections.abc import Mapping, Sequence

from penstock.spark.links.links import Inlet, LinkLost, Outlet, Tag

FEW_SLOTS = 4
"""Greatest number of slots with which every slot sends directly to every other."""
MOST_RIDING = 1 << 12
"""Greatest size, in bytes, of a message that letters contain. Sending a larger one twice would cost too much."""
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
Body = bytes | bytearray
Letter = dict[int, Body | None]
"""Messages by the slot that gets or sent them. None stands for a message that is sent directly."""


def mesh_of(own: int, peers: dict[int, socket.socket], hosts: Sequence[str] = ()) -> Mesh:
    """Return the links of slot `own` to all others. Errors name the hosts of slots if `hosts` has them."""
    if len(peers) < FEW_SLOTS:
        return Mesh(peers, hosts)
    return Hub(peers, hosts) if own == len(peers) else Spoke(peers, hosts)


class Mesh:
    """The links of a slot to the other slots, over which a stage's messages go out and come in at the same time.

    Two slots that send to each other therefore do not block each other. No slot can be more than one message ahead of a
    slow one: at most one stage's output waits on each link. Once everything is sent, messages are awaited one after the
    other, because a slot that waits for all at once would be woken by each.
    """

    def __init__(self, peers: dict[int, socket.socket], hosts: Sequence[str] = ()) -> None:
        self._hosts = hosts
        self._inlets = {peer: Inlet(sock) for peer, sock in sorted(peers.items())}
        self._at = -1
        """Slot that is being sent to or read from."""

    def exchange(self, tag: Tag, outgoing: Sequence[bytes]) -> list[Body]:
        """Send every slot its message of a stage, and return the messages of the others by slot number.

        Raise LinkLost if a slot is gone or sends a message of another stage.
        """
        try:
            return self._exchange(tag, outgoing)
        except LinkLost as error:
            place = f" on {self._hosts[self._at]}" if self._hosts and self._hosts[self._at] else ""
            raise LinkLost(f"the link to slot {self._at}{place}: {error}", error.is_unreachable, self._at) from None

    def _exchange(self, tag: Tag, outgoing: Sequence[bytes]) -> list[Body]:
        self._send(tag, {peer: [outgoing[peer]] for peer in self._inlets})
        return [self._next(peer, tag) for peer in self._inlets]

    def _send(self, tag: Tag, messages: Mapping[int, Sequence[bytes]]) -> None:
        unsent = {}
        for peer, bodies in messages.items():
            self._at = peer
            outlet = Outlet(self._inlets[peer].sock, tag, bodies)
            if not outlet.write():
                unsent[peer] = outlet
        if unsent:
            self._send_and_read(unsent)

    def _send_and_read(self, unsent: dict[int, Outlet]) -> None:
        """Send the rest, and read arriving messages meanwhile, because the other slots may wait for that."""
        with selectors.DefaultSelector() as selector:
            for peer, inlet in self._inlets.items():
                selector.register(inlet.sock, _READ | _WRITE if peer in unsent else _READ, peer)
            while unsent:
                for key, events in selector.select():
                    self._at = peer = key.data
                    inlet = self._inlets[peer]
                    if events & _WRITE and unsent[peer].write():
                        del unsent[peer]
                    # One message from each slot is enough: a slot that waits for this one sends no second one.
                    reads = key.events & _READ and not (events & _READ and inlet.read(socket.MSG_DONTWAIT))
                    _watch(selector, inlet.sock, peer, (_READ if reads else 0) | (_WRITE if peer in unsent else 0))

    def _next(self, peer: int, tag: Tag) -> bytearray:
        """Read the next message of a slot, which must be one of this stage."""
        self._at = peer
        inlet = self._inlets[peer]
        inlet.read()
        found, body = inlet.message()
        if found != tag:
            raise LinkLost(f"it sent {found} instead of {tag}")
        return body

    def close(self) -> None:
        """Close all links."""
        for inlet in self._inlets.values():
            inlet.sock.close()


def _watch(selector: selectors.BaseSelector, sock: socket.socket, peer: int, events: int) -> None:
    """Change the events of a socket that the selector waits for, or stop waiting for the socket if there are none."""
    if events:
        selector.modify(sock, events, peer)
    else:
        selector.unregister(sock)


class _WithHub(Mesh):
    """The links of a slot in a job with many slots.

    The hub is the last slot: it gets the driver's commands last, so most letters have arrived when it looks for them,
    and it has no operators whose parallelism is one.
    """

    def __init__(self, peers: dict[int, socket.socket], hosts: Sequence[str] = ()) -> None:
        super().__init__(peers, hosts)
        self._hub = len(peers)

    def _letter(self, outgoing: Sequence[bytes]) -> Letter:
        """Return the letter with this slot's messages for the others."""
        has = {peer: body for peer in self._inlets if (body := outgoing[peer])}
        return {peer: body if len(body) <= MOST_RIDING else None for peer, body in has.items()}

    def _complete(self, letter: Letter, tag: Tag) -> list[Body]:
        """Return the messages of all others, from a letter and from slots that send directly."""
        given = ((peer, letter.get(peer, b"")) for peer in self._inlets)
        return [self._next(peer, tag) if body is None else body for peer, body in given]


class Spoke(_WithHub):
    """The links of a slot that is not the hub."""

    def _exchange(self, tag: Tag, outgoing: Sequence[bytes]) -> list[Body]:
        letter = self._letter(outgoing)
        messages = {self._hub: [pickle.dumps(letter)]}
        for peer, body in letter.items():
            if body is None:
                messages.setdefault(peer, []).append(outgoing[peer])
        self._send(tag, messages)
        return self._complete(pickle.loads(self._next(self._hub, tag)), tag)


class Hub(_WithHub):
    """The links of the hub.

    It sends nothing before it has the letters of all slots, so it never blocks their sending.
    """

    def _exchange(self, tag: Tag, outgoing: Sequence[bytes]) -> list[Body]:
        letters = self._sort_letters(tag, outgoing)
        messages = {}
        for peer in self._inlets:
            direct = [outgoing[peer]] if letters[peer].get(self._hub, b"") is None else []
            messages[peer] = [pickle.dumps(letters[peer]), *direct]
        self._send(tag, messages)
        return self._complete(letters[self._hub], tag)

    def _sort_letters(self, tag: Tag, outgoing: Sequence[bytes]) -> list[Letter]:
        """Read the letters of all slots, and return the letters to all slots."""
        letters: list[Letter] = [{} for _ in outgoing]
        for peer, body in self._letter(outgoing).items():
            letters[peer][self._hub] = body
        for sender in reversed(self._inlets):
            for peer, body in pickle.loads(self._next(sender, tag)).items():
                letters[peer][sender] = body
        return letters
