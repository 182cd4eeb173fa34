"""The handshake of a link: both sides prove that they know the secret of the attempt, without revealing it.

The host is the side that listens. It sends a challenge. The guest, which has connected, answers with a challenge of its
own and a proof, and gets a proof back. A proof is an HMAC over both challenges and the role of its sender. All parts
have fixed sizes, so that neither side has to parse data of an unknown peer.
"""

from __future__ import annotations

import hmac
import secrets

CHALLENGE_BYTES = 32
PROOF_BYTES = 32
REPLY_BYTES = CHALLENGE_BYTES + PROOF_BYTES
_HOST, _GUEST = b"penstock host", b"penstock guest"


class Host:
    """The side that listens."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)

    def answer(self, reply: bytes) -> bytes | None:
        """Return the proof for a guest that knows the secret, or None for any other."""
        challenge, proof = reply[:CHALLENGE_BYTES], reply[CHALLENGE_BYTES:]
        expected = _proof(self._secret, _GUEST, self.challenge, challenge)
        if not hmac.compare_digest(proof, expected):
            return None
        return _proof(self._secret, _HOST, self.challenge, challenge)


class Guest:
    """The side that connects."""

    def __init__(self, secret: bytes, challenge: bytes) -> None:
        """Prepare the reply to the challenge that the host has sent."""
        own = secrets.token_bytes(CHALLENGE_BYTES)
        self.reply = own + _proof(secret, _GUEST, challenge, own)
        self._expected = _proof(secret, _HOST, challenge, own)

    def trusts(self, proof: bytes) -> bool:
        """Return True if the proof shows that the host knows the secret."""
        return hmac.compare_digest(proof, self._expected)


def _proof(secret: bytes, role: bytes, hosts: bytes, guests: bytes) -> bytes:
    return hmac.digest(secret, role + hosts + guests, "sha256")
