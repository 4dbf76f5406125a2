"""Holds the gateway's WebSocket against RFC 6455, with wsproto as the client: the handshake is wsproto's, what it would never send is
written as bytes, and wsproto judges every frame that comes back. Each case opens a connection of its own. Prints a line a case; ends
with status 1 if one failed. Arguments: ADDRESS:PORT, token."""

import json
import os
import socket
import struct
import sys
import traceback

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.extensions import PerMessageDeflate

# Only a limit for hangs.
WAIT = 30
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


def frame(opcode, payload=b"", fin=True, rsv=0, masked=True, length=None):
    """A frame as section 5.2 draws it. `length`: one that is stated instead of the payload's own."""
    head = bytes([(0x80 if fin else 0) | (rsv << 4) | opcode])
    size = len(payload) if length is None else length
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack("!H", size)
    else:
        head += bytes([bit | 127]) + struct.pack("!Q", size)
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


class Client:
    def __init__(self, **request):
        self.socket = socket.create_connection(ADDRESS, timeout=WAIT)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.waiting = []
        headers = [("Authorization", f"Bearer {TOKEN}")]
        target = request.pop("target", "/ws")
        asked = Request(host="%s:%d" % ADDRESS, target=target, extra_headers=headers, **request)
        self.socket.sendall(self.protocol.send(asked))
        self.accepted = self.next()
        assert isinstance(self.accepted, AcceptConnection), self.accepted

    def write(self, *frames):
        try:
            self.socket.sendall(b"".join(frames))
        except (BrokenPipeError, ConnectionResetError):
            # What the server closed before it read all of it: its close frame says why.
            pass

    def next(self):
        """The next event; `None` at the end of the connection."""
        while not self.waiting:
            try:
                received = self.socket.recv(1 << 16)
            except ConnectionResetError:
                received = b""
            if not received:
                return None
            self.protocol.receive_data(received)
            self.waiting.extend(self.protocol.events())
        return self.waiting.pop(0)

    def expect(self, kind):
        """The next event of this kind. The server's own pings and events of sessions come in between."""
        while True:
            event = self.next()
            assert event is not None, f"the connection ended before {kind.__name__}"
            if isinstance(event, kind):
                return event

    def closed_with(self, *codes):
        event = self.expect(CloseConnection)
        assert event.code in codes, f"closed with {event.code} {event.reason!r} instead of {codes}"
        self.ended()

    def ended(self):
        while True:
            event = self.next()
            if event is None:
                return
            assert not isinstance(event, TextMessage), f"after the close frame came {event}"

    def text(self):
        text = ""
        while True:
            event = self.expect(TextMessage)
            text += event.data
            if event.message_finished:
                return text

    def still_open(self):
        self.write(frame(PING, b"open?"))
        while self.expect(Pong).payload != b"open?":
            pass
        self.socket.close()

    def refuses(self):
        """The next message is an error of ours, so it was read as a message."""
        event = json.loads(self.text())
        assert event["type"] == "error", event
        return event["payload"]


def unknown(text="x"):
    return json.dumps({"id": "m", "type": text, "timestamp": 1, "payload": {}}).encode()


# The opening handshake, section 4.


def both_addresses_accept():
    Client(target="/ws").still_open()
    Client(target="/").still_open()


def an_unknown_subprotocol_is_not_agreed_to():
    client = Client(subprotocols=["soap", "graphql-ws"])
    assert client.accepted.subprotocol is None
    client.still_open()


def compression_is_offered_and_not_forced():
    client = Client(extensions=[PerMessageDeflate()])
    client.write(frame(TEXT, unknown()))
    client.refuses()
    client.still_open()


def raw_request(*lines):
    """What is answered to a request with these header lines."""
    with socket.create_connection(ADDRESS, timeout=WAIT) as connection:
        head = [f"Host: {ADDRESS[0]}:{ADDRESS[1]}", f"Authorization: Bearer {TOKEN}", *lines]
        first = head.pop() if head[-1].endswith("HTTP/1.1") or head[-1].endswith("HTTP/1.0") else "GET /ws HTTP/1.1"
        connection.sendall("\r\n".join([first, *head, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            received = connection.recv(1 << 16)
            if not received:
                break
            answer += received
        return int(answer.split(b" ", 2)[1]), answer.lower()


UPGRADE = ("Connection: Upgrade", "Upgrade: websocket")
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
VERSION = "Sec-WebSocket-Version: 13"


def the_example_of_the_rfc_gets_its_accept_key():
    status, answer = raw_request(*UPGRADE, KEY, VERSION)
    assert status == 101 and b"s3pplmbitxaq9kygzzhzrbk+xoo=" in answer, answer


def names_and_values_of_the_upgrade_have_no_case():
    status, _ = raw_request("connection: keep-alive, UPGRADE", "UPGRADE: WebSocket", KEY, VERSION)
    assert status == 101, status


def a_handshake_without_a_part_is_refused():
    whole = [*UPGRADE, KEY, VERSION]
    for missing in whole:
        status, answer = raw_request(*[line for line in whole if line != missing])
        assert 400 <= status < 500, (missing, answer)


def another_version_is_refused():
    for version in ("0", "8", "12", "14", "x"):
        status, answer = raw_request(*UPGRADE, KEY, f"Sec-WebSocket-Version: {version}")
        assert 400 <= status < 500, (version, answer)


def only_get_of_http_1_1_is_upgraded():
    for first in ("POST /ws HTTP/1.1", "GET /ws HTTP/1.0"):
        status, answer = raw_request(*UPGRADE, KEY, VERSION, "Content-Length: 0", first)
        assert 400 <= status < 600, (first, answer)


# Frames, section 5.


def a_frame_without_a_mask_ends_the_connection():
    client = Client()
    client.write(frame(TEXT, unknown(), masked=False))
    client.closed_with(1002)


def a_reserved_bit_ends_the_connection():
    for bit in (1, 2, 4):
        client = Client()
        client.write(frame(TEXT, unknown(), rsv=bit))
        client.closed_with(1002)


def a_reserved_opcode_ends_the_connection():
    for opcode in (0x3, 0x7, 0xB, 0xF):
        client = Client()
        client.write(frame(opcode, b"x"))
        client.closed_with(1002)


def a_long_control_frame_ends_the_connection():
    for opcode in (PING, PONG, CLOSE):
        client = Client()
        client.write(frame(opcode, b"\x03\xe8" + b"x" * 124))
        client.closed_with(1002)


def a_fragmented_control_frame_ends_the_connection():
    client = Client()
    client.write(frame(PING, b"a", fin=False), frame(CONTINUATION, b"b"))
    client.closed_with(1002)


def a_continuation_of_nothing_ends_the_connection():
    client = Client()
    client.write(frame(CONTINUATION, b"x"))
    client.closed_with(1002)


def a_message_within_another_ends_the_connection():
    client = Client()
    client.write(frame(TEXT, b"{", fin=False), frame(TEXT, b"{}"))
    client.closed_with(1002)


def a_message_may_come_in_any_number_of_pieces():
    message = unknown("später")
    for size in (1, 2, 7):
        client = Client()
        parts = [message[at : at + size] for at in range(0, len(message), size)]
        for at, part in enumerate(parts):
            opcode = TEXT if at == 0 else CONTINUATION
            client.write(frame(opcode, part, fin=at == len(parts) - 1))
        assert client.refuses()["replyTo"] == "m"
        client.still_open()


def a_message_may_have_empty_pieces():
    client = Client()
    client.write(
        frame(TEXT, b"", fin=False), frame(CONTINUATION, unknown(), fin=False), frame(CONTINUATION, b"")
    )
    client.refuses()
    client.still_open()


def bytes_may_come_one_by_one():
    client = Client()
    for byte in frame(TEXT, unknown()):
        client.write(bytes([byte]))
    client.refuses()
    client.still_open()


def lengths_may_be_written_long():
    """Section 5.2 wants the shortest form; a longer one is either read or refused, and nothing else."""
    client = Client()
    payload = unknown()
    key = b"\0\0\0\0"
    client.write(bytes([0x81, 0x80 | 127]) + struct.pack("!Q", len(payload)) + key + payload)
    event = client.next()
    while isinstance(event, Ping):
        event = client.next()
    assert isinstance(event, TextMessage) or (isinstance(event, CloseConnection) and event.code == 1002), event


def a_length_beyond_the_limit_ends_the_connection_before_it_comes():
    for length in (1 << 30, 1 << 62):
        client = Client()
        client.write(frame(TEXT, b"{", length=length))
        client.closed_with(1009)


def pieces_beyond_the_limit_end_the_connection():
    client = Client()
    client.write(frame(TEXT, b"", fin=False))
    for _ in range(64):
        client.write(frame(CONTINUATION, b"x" * (1 << 20), fin=False))
    client.closed_with(1009)


# Text and binary, section 5.6 and 8.1.


def text_that_is_no_utf_8_ends_the_connection():
    for payload in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"{\"id\": \"\xe4\"}"):
        client = Client()
        client.write(frame(TEXT, payload))
        client.closed_with(1007)


def utf_8_is_judged_over_pieces():
    client = Client()
    client.write(frame(TEXT, b"\xce", fin=False), frame(CONTINUATION, b"\xff"))
    client.closed_with(1007)


def binary_is_told_apart():
    client = Client()
    client.write(frame(BINARY, unknown()))
    assert "text" in client.refuses()["message"]
    client.still_open()


# Control frames, section 5.5.


def a_ping_is_answered_with_its_payload():
    for payload in (b"", b"x", bytes(range(125))):
        client = Client()
        client.write(frame(PING, payload))
        assert client.expect(Pong).payload == payload
        client.socket.close()


def a_ping_between_pieces_is_answered_at_once():
    client = Client()
    message = unknown()
    client.write(frame(TEXT, message[:5], fin=False), frame(PING, b"now"))
    assert client.expect(Pong).payload == b"now"
    client.write(frame(CONTINUATION, message[5:]))
    client.refuses()
    client.still_open()


def a_pong_that_nobody_asked_for_is_nothing():
    client = Client()
    client.write(frame(PONG, b"unasked"))
    client.still_open()


# Closing, section 7.


def a_close_is_answered_with_its_code():
    for code in (1000, 1001, 1003, 1007, 1011, 3000, 4999):
        client = Client()
        client.write(frame(CLOSE, struct.pack("!H", code) + "bye ☂".encode()))
        client.closed_with(code)


def a_close_without_a_code_is_answered():
    client = Client()
    client.write(frame(CLOSE))
    client.closed_with(1000, 1005)


def a_close_of_one_byte_ends_the_connection():
    client = Client()
    client.write(frame(CLOSE, b"\x03"))
    client.closed_with(1002)


def a_code_that_never_stands_in_a_frame_ends_the_connection():
    for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535):
        client = Client()
        client.write(frame(CLOSE, struct.pack("!H", code)))
        client.closed_with(1002)


def a_reason_that_is_no_utf_8_ends_the_connection():
    client = Client()
    client.write(frame(CLOSE, struct.pack("!H", 1000) + b"\xce\xff"))
    client.closed_with(1002, 1007)


def nothing_is_read_after_a_close():
    client = Client()
    client.write(frame(CLOSE, struct.pack("!H", 1000)), frame(TEXT, unknown()))
    client.closed_with(1000)


def who_is_gone_without_a_word_harms_nobody():
    other = Client()
    for end in (b"", frame(TEXT, b"{", fin=False), frame(TEXT, b"x" * 10, length=1000)):
        client = Client()
        client.write(end)
        client.socket.close()
    other.still_open()


CASES = [
    case
    for name, case in list(globals().items())
    if callable(case) and getattr(case, "__module__", "") == "__main__" and not isinstance(case, type)
    and name not in ("frame", "unknown", "raw_request")
]


def main():
    failed = 0
    for case in CASES:
        try:
            case()
            print("ok    ", case.__name__, flush=True)
        except Exception:  # Each case is told, whatever came of those before.
            failed += 1
            print("FAILED", case.__name__, flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{len(CASES)} cases, {failed} failed")
    return 1 if failed else 0


host, _, port = sys.argv[1].rpartition(":")
ADDRESS, TOKEN = (host, int(port)), sys.argv[2]
sys.exit(main())
