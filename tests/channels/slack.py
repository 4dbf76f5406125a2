"""An imitation of Slack, written from https://docs.slack.dev (Web API, Events API over Socket Mode, Block Kit), for tests of the plugin `slack`.

slack.py BOT_TOKEN APP_TOKEN: prints its port, and ends with its standard input. As Slack it

- answers most errors with status 200 and a word, wrong tokens with `invalid_auth`, and the other token with `not_allowed_token_type`;
- takes forms alone for methods that read: JSON is not looked at;
- gives a WebSocket's URL for one use, says hello, pings, and sends each event to one connection;
- sends an envelope that is not acknowledged again, with another id and its number: after ACK_TIME, and at once on another connection when its
  connection has ended;
- tells a mention twice, first as `app_mention`, without its files, and then as `message`;
- says with each answer what the token may do, and in `conversations.history` and `conversations.replies` what is later than `oldest`;
- gives a page to log in where a file is asked for without a token.

  POST /control/event {...}         an event happens
  POST /control/press {...}         a payload of `block_actions`
  POST /control/repeat {}           the last envelope comes once more, although it was acknowledged
  POST /control/disconnect {"reason", "after", "event"}    says `disconnect` on the latest connection, and closes it after so many seconds; an
                                    event that is named is still sent there
  POST /control/cut {}              all connections break off
  POST /control/fail [METHOD, STATUS, WORD, RETRY_AFTER, IS_DONE]    the next call of a method fails, after it was done or before
  POST /control/unready {}          the next connection says `disconnect`, with its ticket, in the place of hello
  POST /control/stall {"method"}    the next call of a method is done, and not answered
  POST /control/release {}          it is answered
  POST /control/file {"id", "name", "mimetype", "data", "size", "external"}    adds a file, as base64
  GET  /control/calls               all calls that were done, as [method, arguments, time of the message]
  GET  /control/sockets             how many connections were made and are open, how many envelopes wait, and how many calls of a method came
                                    before Slack wanted to be asked again
"""

import base64
import hashlib
import http.server
import itertools
import json
import re
import struct
import sys
import threading
import time
import urllib.parse

BOT_TOKEN, APP_TOKEN = sys.argv[1:3]
BOT_USER, TEAM = "U0TALON", "T024"
PEOPLE = {"U42": ("alovelace", "Ada"), "U43": ("rjones", "Bob")}
# Slack has 3 s; tests have less patience.
ACK_TIME = 1.0
PING_TIME = 2.0
SCOPES = "channels:history,chat:write,files:read,groups:history,im:history,mpim:history,users:read"

lock = threading.Condition()
numbers = itertools.count(1)
calls, failures, files, tickets, sockets = [], [], {}, set(), []
# When a method may be called again.
pauses = {}
# Envelopes that are not acknowledged, oldest first; how many connections and hasty calls there were; what was acknowledged last; whether the next
# connection does not get ready; which method's next call is not answered, and whether one waits for that.
waiting, state = [], {"made": 0, "hasty": 0, "last": None, "unready": False, "stall": None, "stalled": False}


class Refusal(Exception):
    """An error of the Web API: status, word, seconds to wait."""


class Envelope:
    def __init__(self, kind, payload, first_socket=None):
        self.kind, self.payload = kind, payload
        # Where it is sent at first, if that is not the latest connection.
        self.first_socket = first_socket
        self.id, self.socket, self.sent, self.retries = None, None, 0.0, 0


class Socket:
    """The server's side of a WebSocket (RFC 6455)."""

    def __init__(self, stream):
        self.stream, self.is_open, self.is_new, self.writing = stream, True, True, threading.Lock()

    def send(self, opcode, data):
        head = bytes([0x80 | opcode])
        length = len(data)
        if length < 126:
            head += bytes([length])
        elif length < 65536:
            head += b"\x7e" + struct.pack(">H", length)
        else:
            head += b"\x7f" + struct.pack(">Q", length)
        try:
            with self.writing:
                self.stream.sendall(head + data)
        except OSError:
            self.is_open = False

    def say(self, value):
        self.send(1, json.dumps(value).encode())

    def read(self, file):
        """The next message, as (opcode, data); a client's frames are masked."""
        head = file.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 0x7F
        if length == 126:
            length = struct.unpack(">H", file.read(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", file.read(8))[0]
        if not head[1] & 0x80:
            return None
        mask = file.read(4)
        data = file.read(length)
        return head[0] & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))

    def close(self):
        self.is_open = False
        try:
            self.stream.shutdown(2)
        except OSError:
            pass


def put(kind, payload, first_socket=None):
    with lock:
        waiting.append(Envelope(kind, payload, first_socket))
        lock.notify_all()


def deliver():
    """Sends envelopes, again and again until they are acknowledged."""
    with lock:
        while True:
            now = time.monotonic()
            # The latest connection that was not told to end.
            open_sockets = [socket for socket in sockets if socket.is_open and socket.is_new]
            for envelope in waiting:
                is_lost = envelope.socket is not None and (not envelope.socket.is_open or now - envelope.sent >= ACK_TIME)
                if envelope.socket is not None and not is_lost:
                    continue
                first, envelope.first_socket = envelope.first_socket, None
                if first is None and not open_sockets:
                    continue
                envelope.retries += envelope.socket is not None
                envelope.id, envelope.socket, envelope.sent = f"envelope-{next(numbers)}", first or open_sockets[-1], now
                message = {"envelope_id": envelope.id, "type": envelope.kind, "payload": envelope.payload, "accepts_response_payload": False}
                if envelope.kind == "events_api":
                    message |= {"retry_attempt": envelope.retries, "retry_reason": "timeout" if envelope.retries else ""}
                envelope.socket.say(message)
            lock.wait(0.1)


def acknowledge(envelope_id, socket):
    """Counts on the connection alone on which the envelope was sent."""
    with lock:
        found = [envelope for envelope in waiting if envelope.id == envelope_id and envelope.socket is socket]
        for envelope in found:
            state["last"] = envelope
            waiting.remove(envelope)


def serve_socket(stream, file):
    socket = Socket(stream)
    with lock:
        sockets.append(socket)
        state["made"] += 1
        socket.say({
            "type": "hello", "connection_info": {"app_id": "A1234"}, "num_connections": sum(other.is_open for other in sockets),
            "debug_info": {"host": "applink-1", "started": "2020-10-11 12:12:12.120", "build_number": 54, "approximate_connection_time": 18060},
        })
        lock.notify_all()
    threading.Thread(target=ping, args=(socket,), daemon=True).start()
    try:
        while (message := socket.read(file)) is not None:
            opcode, data = message
            if opcode == 8:
                socket.send(8, data[:2])
                break
            if opcode == 9:
                socket.send(10, data)
            if opcode == 1:
                acknowledge(json.loads(data).get("envelope_id"), socket)
    except (OSError, struct.error):
        pass
    socket.close()


def ping(socket):
    while socket.is_open:
        time.sleep(PING_TIME)
        socket.send(9, b"Ping from applink-1")


def units(text):
    return len(text.encode("utf-16-le")) // 2


def new_ts():
    return f"{int(time.time())}.{next(numbers):06}"


def auth_test(_):
    return {"url": "https://example.slack.com/", "team": "Example", "user": "talon", "team_id": TEAM, "user_id": BOT_USER, "bot_id": "B0TALON"}


def connections_open(_):
    ticket = f"ticket-{next(numbers)}"
    tickets.add(ticket)
    return {"url": f"ws://127.0.0.1:{server.server_address[1]}/link/?ticket={ticket}&app_id=A1234"}


def plain_text(item, most):
    if item["type"] != "plain_text" or not 1 <= units(item["text"]) <= most:
        raise Refusal(200, "invalid_blocks")


def post_message(arguments):
    if not arguments.get("text", "").strip():
        raise Refusal(200, "no_text")
    if len(arguments["text"]) > 40000:
        raise Refusal(200, "msg_too_long")
    seen = set()
    for block in json.loads(arguments.get("blocks", "[]")):
        if block["type"] == "section":
            plain_text(block["text"], 3000)
        for button in block.get("elements", []):
            plain_text(button["text"], 75)
            if button["action_id"] in seen or len(button["value"]) > 2000 or len(block["elements"]) > 25:
                raise Refusal(200, "invalid_blocks")
            seen.add(button["action_id"])
    return {"channel": arguments["channel"], "ts": new_ts(), "message": {"type": "message", "user": BOT_USER, "text": arguments["text"]}}


def history(arguments):
    """Of the messages of a channel, or of a thread in it, those that the app sent itself."""
    found = []
    for method, sent, ts in calls:
        is_there = method == "chat.postMessage" and sent["channel"] == arguments["channel"] and sent.get("thread_ts") == arguments.get("ts")
        if is_there and float(ts) > float(arguments.get("oldest", "0")):
            message = {"type": "message", "user": BOT_USER, "text": sent["text"], "ts": ts}
            if arguments.get("include_all_metadata") == "true" and "metadata" in sent:
                message["metadata"] = json.loads(sent["metadata"])
            found.append(message)
    return {"messages": found[-int(arguments.get("limit", "100")) :], "has_more": False}


def users_info(arguments):
    if arguments.get("user") not in PEOPLE:
        raise Refusal(200, "user_not_found")
    name, shown = PEOPLE[arguments["user"]]
    return {"user": {"id": arguments["user"], "name": name, "real_name": shown + " Long", "profile": {"display_name": shown, "real_name": shown + " Long"}}}


def files_info(arguments):
    if arguments.get("file") not in files:
        raise Refusal(200, "file_not_found")
    file = files[arguments["file"]]
    url = f"http://127.0.0.1:{server.server_address[1]}/files/{file['id']}/{file['name']}"
    return {
        "file": {
            "id": file["id"], "name": file["name"], "mimetype": file["mimetype"], "size": file.get("size", len(file["bytes"])),
            "is_external": file.get("external", False), "url_private": url, "url_private_download": url,
        }
    }


# Each with its token.
METHODS = {
    "auth.test": (auth_test, BOT_TOKEN),
    "apps.connections.open": (connections_open, APP_TOKEN),
    "chat.postMessage": (post_message, BOT_TOKEN),
    "conversations.history": (history, BOT_TOKEN),
    "conversations.replies": (history, BOT_TOKEN),
    "users.info": (users_info, BOT_TOKEN),
    "files.info": (files_info, BOT_TOKEN),
}


def happen(asked, first_socket=None):
    event = {"event_ts": asked.get("ts"), **asked}
    wrapped = {"team_id": TEAM, "api_app_id": "A1234", "type": "event_callback", "authorizations": [], "event_context": "4-ev"}
    is_channel = not event.get("channel", "").startswith("D")
    if is_channel and event.get("type") == "message" and re.search(f"<@{BOT_USER}>", event.get("text", "")):
        left_out = ("channel_type", "subtype", "files")
        mention = {name: value for name, value in event.items() if name not in left_out} | {"type": "app_mention"}
        put("events_api", {**wrapped, "event": mention, "event_id": f"Ev{next(numbers)}", "event_time": int(time.time())}, first_socket)
    put("events_api", {**wrapped, "event": event, "event_id": f"Ev{next(numbers)}", "event_time": int(time.time())}, first_socket)


def control(name, asked):
    if name == "event":
        happen(asked)
    elif name == "press":
        put("interactive", asked)
    elif name == "repeat":
        with lock:
            again = Envelope(state["last"].kind, state["last"].payload)
            again.retries = 1
            waiting.append(again)
            lock.notify_all()
    elif name == "disconnect":
        with lock:
            old = [socket for socket in sockets if socket.is_open][-1]
            old.is_new = False
        old.say({"type": "disconnect", "reason": asked["reason"], "debug_info": {"host": "applink-1"}})
        if asked.get("event"):
            happen(asked["event"], old)
        threading.Timer(asked["after"], old.close).start()
    elif name == "cut":
        for socket in list(sockets):
            socket.close()
    elif name == "unready":
        state["unready"] = True
    elif name == "stall":
        state["stall"] = asked["method"]
    elif name == "release":
        with lock:
            state["stalled"] = False
            lock.notify_all()
    elif name == "fail":
        with lock:
            failures.append(asked)
    elif name == "file":
        files[asked["id"]] = {**asked, "bytes": base64.b64decode(asked["data"])}


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path)
        if path.path == "/link/":
            return self.upgrade(urllib.parse.parse_qs(path.query).get("ticket", [""])[0])
        if path.path.startswith("/files/"):
            if self.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
                return self.send(200, "text/html; charset=utf-8", b"<html>Sign in to Slack</html>")
            file = files[path.path.split("/")[2]]
            return self.send(200, file["mimetype"], file["bytes"])
        with lock:
            if path.path == "/control/calls":
                return self.answer(200, calls)
            open_now = sum(socket.is_open for socket in sockets)
            self.answer(200, {"made": state["made"], "open": open_now, "waiting": len(waiting), "hasty": state["hasty"]})

    def upgrade(self, ticket):
        with lock:
            known = ticket in tickets
            tickets.discard(ticket)
        if not known:
            return self.send(403, "text/plain", b"")
        accept = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept.decode())
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        with lock:
            is_unready, state["unready"] = state["unready"], False
        if is_unready:
            reason = f"{ticket} of {self.path} is not known"
            return Socket(self.connection).say({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})
        serve_socket(self.connection, self.rfile)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/control/"):
            control(self.path.removeprefix("/control/"), json.loads(body or b"{}"))
            return self.answer(200, {})
        method = self.path.removeprefix("/api/")
        is_form = self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded")
        arguments = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)) if is_form else {}
        try:
            self.answer(200, {"ok": True, **self.call(method, arguments)}, {"X-OAuth-Scopes": SCOPES})
        except Refusal as refusal:
            status, word, after = (*refusal.args, None)[:3]
            headers = {} if after is None else {"Retry-After": str(after)}
            self.answer(status, {"ok": False, "error": word}, headers)

    def call(self, method, arguments):
        if method not in METHODS:
            raise Refusal(200, "unknown_method")
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        perform, wanted = METHODS[method]
        if token != wanted:
            raise Refusal(200, "not_allowed_token_type" if token in (BOT_TOKEN, APP_TOKEN) else "invalid_auth")
        with lock:
            now = time.monotonic()
            state["hasty"] += now < pauses.get(method, now)
            failure = next((failure for failure in failures if failure[0] == method), None)
            if failure:
                failures.remove(failure)
                _, status, word, after, is_done = failure
                pauses[method] = now + (after or 0)
                if not is_done:
                    raise Refusal(status, word, after)
            result = perform(arguments)
            calls.append([method, arguments, result.get("ts")])
            if state["stall"] == method:
                state["stall"], state["stalled"] = None, True
                lock.wait_for(lambda: not state["stalled"])
            if failure:
                raise Refusal(status, word, after)
            return result

    def answer(self, status, value, headers=None):
        return self.send(status, "application/json; charset=utf-8", json.dumps(value).encode(), headers)

    def send(self, status, kind, body, headers=None):
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            pass

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
threading.Thread(target=deliver, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
