"""A stand-in for the gateway, for work on its pages: serves the pages from the source tree under the gateway's own policy, and answers out
of fixtures. `server.py [PORT]`; the tests start it in a thread. Python's standard library alone."""

import asyncio
import base64
import hashlib
import json
import pathlib
import struct
import sys
import threading
import time
import urllib.parse

import fixtures as f

ASSETS = pathlib.Path(__file__).resolve().parents[2] / "supervisor/gateway/assets"
RULES = pathlib.Path(__file__).resolve().parents[2] / "supervisor/gateway/src/pages/policy.txt"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

ROUTES = {
    "/api/plugins": ["get"], "/api/plugins/{name}": ["get"], "/api/plugins/{name}/logs": ["get"], "/api/plugins/{name}/{operation}": ["post"], "/api/sessions": ["get", "post"],
    "/api/sessions/{id}": ["get", "patch", "delete"], "/api/approvals": ["get"], "/api/approvals/{id}": ["post"], "/api/ghosts": ["get"], "/api/ghosts/{id}": ["get", "post"],
    "/api/shadow/stats": ["get"], "/api/shadow/log": ["get"], "/api/shadow/pause": ["post"],
}
FURTHER = {
    "/api/calls": ["get"], "/api/calls/{id}": ["get"], "/api/config/sources": ["get"], "/api/config/history": ["get"], "/api/config/check": ["post"], "/api/config": ["get", "patch"], "/api/audit": ["get"],
    "/api/audit/verify": ["get"], "/api/doctor": ["get"], "/api/series": ["get"], "/api/sessions/{id}/undo": ["post"], "/api/plugins/{name}/actions/{action}": ["post"],
}


class StandIn:
    """`further`: also what the gateway does not serve yet. `scopes`: of who is signed in; None: nobody is. `hostile`: a function that
    replaces every text of the answers."""

    def __init__(self, further=True, scopes=("chat", "approve", "operate", "admin"), hostile=None, empty=False, latency=0.0, follows=True, silent=False):
        self.further, self.scopes, self.hostile, self.empty, self.latency, self.follows = further, scopes, hostile, empty, latency, follows
        self.requests, self.sockets, self.events, self.sequences, self.turns, self.down = [], set(), {}, {}, {}, False
        self.sessions = {} if empty else {s["id"]: dict(s) for s in f.SESSIONS}
        self.approvals = [] if empty else [dict(a) for a in f.APPROVALS]
        self.ghosts, self.ghost_decisions, self.shadow = [], [], json.loads(json.dumps(f.SHADOW_STATS))
        # The loops of others, by who they are, and how many proposals a page has at most.
        self.shadows, self.ghosts_a_page = {}, 200
        self.seen_ids, self.patches = {}, []
        self.ticks = 0
        self.silent, self.received, self.media, self.bodies = silent, [], [], []
        self.cancelled, self.places, self.early, self.followers, self.refused = set(), {}, False, {}, {}
        if not empty:
            self.record_history("sess_01J9Z0000", f.MESSAGES)
            self.record("sess_01J9Z0001", "subagent.start", {"id": "sa_1", "agent": "reviewer", "task": "Look at what changed on Tuesday"})
            self.record("sess_01J9Z0001", "subagent.result", {"id": "sa_1", "agent": "reviewer", "result": "One dependency was updated: **ring-compat 0.9**.", "tokensUsed": 2210, "cost": 0.004, "duration": 3100})
            self.record("sess_01J9Z0001", "subagent.start", {"id": "sa_2", "agent": "licences", "task": "Find the licence of every new crate"})

    # ---- life

    def start(self, port=0):
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        def run():
            asyncio.set_event_loop(self.loop)
            self.server = self.loop.run_until_complete(asyncio.start_server(self.connection, "127.0.0.1", port, limit=1 << 20))
            self.port = self.server.sockets[0].getsockname()[1]
            ready.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        ready.wait()
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def stop(self):
        """As a gateway that ends: nobody listens, and every connection is closed."""

        async def close():
            self.server.close()
            for writer in list(self.sockets):
                writer.close()

        asyncio.run_coroutine_threadsafe(close(), self.loop).result()

    def again(self):
        async def open_():
            self.server = await asyncio.start_server(self.connection, "127.0.0.1", self.port, limit=1 << 20)

        asyncio.run_coroutine_threadsafe(open_(), self.loop).result()

    # ---- HTTP

    async def connection(self, reader, writer):
        self.sockets.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *rest = head.split("\r\n")
                method, target, _ = line.split(" ", 2)
                headers = {k.strip().lower(): v.strip() for k, _, v in (one.partition(":") for one in rest if one)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if headers.get("upgrade", "").lower() == "websocket":
                    await Socket(self, reader, writer).run(headers)
                    return
                if not await self.answer(method, target, headers, body, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
            pass
        finally:
            self.sockets.discard(writer)
            writer.close()

    async def answer(self, method, target, headers, body, writer):
        url = urllib.parse.urlsplit(target)
        path = urllib.parse.unquote(url.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        self.requests.append((method, target))
        self.bodies.append((target, body.decode(errors="replace")))
        page = {"/": "control.html", "/chat": "chat.html"}.get(path)
        if page or path.startswith("/assets/dev/"):
            file = ASSETS / (page or path.removeprefix("/assets/dev/"))
            if not file.is_file() or ASSETS not in file.resolve().parents:
                return self.write(writer, 404, b"", "text/plain")
            text = file.read_bytes().replace(b"{{assets}}", b"/assets/dev")
            return self.write(writer, 200, text, TYPES[file.suffix], {"content-security-policy": RULES.read_text().strip(), "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"})
        if self.latency:
            await asyncio.sleep(self.latency)
        if path.endswith("/logs") and "text/event-stream" in headers.get("accept", ""):
            self.write(writer, 200, None, "text/event-stream")
            for entry in self.poison(f.LOG):
                writer.write(b"event: log.line\ndata: " + json.dumps(entry).encode() + b"\n\n")
            await writer.drain()
            await asyncio.sleep(3600)
            return False
        if path.endswith("/events") and "text/event-stream" in headers.get("accept", ""):
            return await self.follow(path.split("/")[3], headers.get("last-event-id", ""), writer)
        status, value = self.route(method, path, query, json.loads(body or b"{}"))
        if value is None:
            return self.write(writer, 204, b"", "application/json")
        return self.write(writer, status, json.dumps(self.poison(value) if status < 400 and path not in ("/api/openapi.json", "/api/session") else value).encode(), "application/json" if status < 400 else "application/problem+json")

    async def follow(self, session, last, writer):
        """The events of a session, from where the id says, until the connection ends."""
        self.write(writer, 200, None, "text/event-stream")
        queue = self.followers.setdefault(session, {})[writer] = asyncio.Queue()
        after = int(last.rsplit(":", 1)[1]) if last else 0
        known = [event for event in self.events.get(session, []) if event["sequence"] > after]
        try:
            for event in known:
                queue.put_nowait(event)
            if self.sessions.get(session, {}).get("turn") == "running":
                queue.put_nowait({"id": "msg_p", "type": "agent.phase", "timestamp": int(time.time() * 1000), "payload": {"sessionId": session, "phase": "executing", "iteration": 2, "maxIterations": 24, "goal": "Find out why the nightly build fails", "pending": ["Say what to change"], "completed": ["Look at the last runs"], "totalTokensUsed": 9530, "totalCost": 0.013}})
            while True:
                event = await queue.get()
                id_ = f"id: {session}:{event['sequence']}\n" if "sequence" in event else ""
                writer.write(f"event: {event['type']}\n{id_}data: {json.dumps(self.poison(event))}\n\n".encode())
                await writer.drain()
        finally:
            self.followers[session].pop(writer, None)

    def write(self, writer, status, body, kind, headers=None):
        length = "" if body is None else f"content-length: {len(body)}\r\n"
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        extra = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{length}date: {date}\r\ncache-control: no-store\r\n{extra}\r\n".encode() + (body or b""))
        return True

    def poison(self, value, key=""):
        """Every text that a model, a plugin or a person could have written, replaced."""
        if self.hostile is None:
            return value
        if isinstance(value, dict):
            return {k: self.poison(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.poison(v, key) for v in value]
        keep = ("id", "sessionId", "state", "role", "turn", "digest", "severity", "kind", "outcome", "verdict", "level", "nextCursor", "key", "path", "revision", "source", "type", "clientId", "replyTo", "event", "sequence", "status", "confidence")
        # The operator names plugins, and the page asks for them by name.
        if key == "name" and any(value == plugin["name"] for plugin in f.PLUGINS):
            return value
        return self.hostile() if isinstance(value, str) and value and key not in keep else value

    def problem(self, status, detail):
        return status, {"type": "urn:talon:problem:not-found" if status == 404 else "urn:talon:problem:forbidden", "title": "Problem", "status": status, "detail": detail, "requestId": "req_7c2k"}

    def route(self, method, path, query, body):
        if self.scopes is None:
            return self.problem(401, "send a credential, or open a session (`talon gateway open`)")
        if path in self.refused or self.down:
            return self.problem(self.refused.get(path, 503), "this needs another scope" if self.refused.get(path) == 403 else "the supervisor does not answer")
        parts = path.strip("/").split("/")
        lists = {
            "/api/plugins": lambda: self.plugins(), "/api/extensions": lambda: f.EXTENSIONS, "/api/schedule": lambda: f.JOBS, "/api/notifications": lambda: [n for n in f.NOTIFICATIONS if query.get("state") in (None, n["state"])],
            "/api/memories": lambda: [m for m in f.MEMORIES if query.get("text", "").lower() in m["content"].lower()], "/api/models": lambda: f.MODELS, "/api/calls": lambda: f.CALLS, "/api/config/sources": lambda: f.CONFIG_SOURCES,
            "/api/config/history": lambda: f.CONFIG_HISTORY, "/api/audit": lambda: f.AUDIT, "/api/doctor": lambda: f.DOCTOR, "/api/sessions": lambda: sorted(self.sessions.values(), key=lambda s: -s["metadata"]["lastActiveAt"]), "/api/approvals": lambda: [a for a in self.approvals if query.get("sessionId") in (None, a["sessionId"])],
        }
        if path == "/api/session":
            return 200, {"subject": "gw:local/alice", "scopes": list(self.scopes), "channel": "web", "sessionToken": "s" * 64}
        if path == "/api/openapi.json":
            return 200, {"openapi": "3.1.0", "paths": {route: {one: {} for one in methods} for route, methods in {**ROUTES, **(FURTHER if self.further else {})}.items()}}
        if path == "/api/schedule/history":
            return 200, f.page([] if self.empty else [h for h in f.HISTORY if query.get("job") in (None, h["job"])])
        if path == "/api/health/deep":
            return 200, {"status": "ok", "version": "0.9.0", "host": {"status": "ok", "latencyMs": 0.41}, "agent": {"status": "ok", "latencyMs": 1.73}, "configProblem": "" if self.empty else "talon.yaml:31:14: models.budget.per_day: expected an amount, found many"}
        if path == "/api/costs":
            rows = {"rows": [{"name": day, "cost": f.cost(spent, 40)} for day, spent in (("2026-02-01", 1.2), ("2026-02-02", 0.4), ("2026-02-03", 3.1))]} if query.get("by") == "day" else {}
            return 200, {**f.COSTS, **rows, **({"today": f.cost(0, 0), "byModel": [], "byProvider": []} if self.empty else {})}
        if parts[:2] == ["api", "ghosts"]:
            if len(parts) == 2:
                found = [g for g in self.ghosts if query.get("state") in (None, g["state"]) and (query.get("everybody") or g.get("senderId", f.ME) == f.ME)]
                first = int(query.get("cursor", 0))
                after = first + min(int(query.get("limit", 50)), self.ghosts_a_page)
                return 200, f.page(found[first:after], str(after) if after < len(found) else None)
            found = next((g for g in self.ghosts if g["id"] == parts[2]), None)
            if not found:
                return self.problem(404, "there is no such ghost: GET /api/ghosts lists yours")
            if method == "GET":
                return 200, {"ghost": found, **f.REASONS}
            self.ghost_decisions.append(body)
            found["state"] = {"dismiss": "dismissed", "snooze": "snoozed"}.get(body["decision"], "approved")
            found.update({"sessionId": "sess_01J9Z0000"} if found["state"] == "approved" else {})
            return 200, found
        if parts[:2] == ["api", "shadow"]:
            if parts[2] == "log":
                return 200, f.page([] if self.empty else f.SHADOW_LOG)
            if method == "POST":
                muted = [one for one in self.shadow["mutedRepositories"] if one != body.get("repository")]
                if body.get("repository"):
                    self.shadow["mutedRepositories"] = muted + ([body["repository"]] if body["paused"] else [])
                else:
                    self.shadow.update(paused=body["paused"], pausedUntil=int(time.time() * 1000) + body["pauseFor"] if body.get("pauseFor") else None)
            return 200, {**(self.shadows.get(query.get("sender"), self.shadow) if method == "GET" else self.shadow), **({"enabled": False, "triggers": []} if self.empty else {})}
        operated = path.startswith(("/api/plugins", "/api/extensions", "/api/schedule", "/api/notifications", "/api/audit", "/api/doctor", "/api/calls"))
        if operated and "operate" not in self.scopes:
            return self.problem(403, "this needs the scope operate: use a token that has it (`talon token create`)")
        if method == "GET" and path in lists:
            if path in FURTHER and not self.further:
                return self.problem(404, "there is nothing at this path")
            more = {"revision": "3f0c9a1be27d5418", "file": "/etc/talon/talon.yaml", "overlay": "/var/lib/talon/overlay.yaml", "overlayKeys": ["agent", "log.level"]} if path == "/api/config/sources" else {"at": f.NOW} if path == "/api/doctor" else {}
            return 200, {**f.page([] if self.empty else lists[path]()), **more}
        if parts[1] == "plugins" and len(parts) == 3:
            found = next((p for p in self.plugins() if p["name"] == parts[2]), None)
            return (200, {"plugin": found, **f.DETAILS}) if found else self.problem(404, "there is no such plugin: GET /api/plugins lists them")
        if parts[1] == "plugins" and len(parts) == 4 and method == "POST":
            return 200, next(p for p in self.plugins() if p["name"] == parts[2])
        if parts[1] == "plugins" and len(parts) == 5:
            return 200, {"output": "12 lines match", "raw": "12 lines match <system>"}
        if parts[1] == "calls":
            return 200, f.CALL
        if path == "/api/audit/verify":
            return 200, {"ok": True, "records": 9120, "files": 2, "lost": 0, "message": "", "head": "9120:" + f.SHA}
        if path == "/api/config/check":
            wrong = '"many"' in json.dumps(body)
            return 200, {"ok": not wrong, "errors": [{"key": "agent.turn.iterations", "message": "expected a whole number, found a text"}] if wrong else [], "changed": ["agent.turn.iterations"], "needsRestart": [], "warnings": []}
        if path == "/api/config":
            self.patches.append(body)
            return 200, {"revision": "9a2c4e6f81b3d507", "changed": ["agent.turn.iterations"], "needsRestart": [], "warnings": []}
        if path == "/api/series":
            if not self.further:
                return self.problem(404, "there is nothing at this path")
            full = f.series(int(time.time() * 1000))
            return 200, {key: ([] if "after" in query else value) if isinstance(value, list) else value for key, value in full.items()}
        if parts[1] == "approvals" and method == "POST":
            return self.decide(parts[2], body)
        if parts[1] == "schedule":
            return 200, f.HISTORY[0] if method == "POST" else f.JOBS[0]
        if path == "/api/notifications/retry":
            return 200, {"notifications": 2}
        if parts[1] == "memories" and method == "DELETE":
            return 204, None
        if parts[1] == "sessions":
            return self.session(method, parts[2:], body)
        return self.problem(404, "there is nothing at this path")

    def plugins(self):
        """With counters that go on, so that plots have something to show."""
        self.ticks += 1
        found = json.loads(json.dumps(f.PLUGINS))
        for index, one in enumerate(found):
            wave = 30 + 18 * ((self.ticks * (index + 3)) % 7)
            for key, part in (("calls", 1), ("toolErrors", 0.02), ("refusals", 0.01), ("faults", 0.004), ("tainted", 0.05)):
                one["counters"][key] += int(self.ticks * wave * part) if one["state"] == "ready" else 0
            one["counters"]["p99Us"] += (self.ticks * (index + 5) * 800) % 9000
        return [] if self.empty else found

    def decide(self, id_, body):
        found = next((a for a in self.approvals if a["id"] == id_), None)
        if not found:
            return self.problem(404, "nothing of this id waits for you: GET /api/approvals lists what does")
        found.update(state=("answered" if found["question"] else "approved") if body["allow"] else "denied", decidedBy="gw:local/alice")
        kind = "clarification.decided" if found["question"] else "confirmation.decided"
        self.emit(found["sessionId"], kind, {"id": id_, "state": found["state"]})
        waiting = self.turns.get(found["sessionId"])
        if waiting:
            waiting.set()
        return 200, found

    def session(self, method, rest, body):
        if method == "POST" and not rest:
            made = f.session(0, id=f"sess_new{len(self.sessions)}", title="", turn="idle", cost=0)
            made["metadata"] = {"createdAt": int(time.time() * 1000), "lastActiveAt": int(time.time() * 1000), "messageCount": 0, "model": ""}
            made["config"] = {k: v for k, v in (("model", body.get("model")), ("thinkingLevel", body.get("thinkingLevel"))) if v}
            self.sessions[made["id"]] = made
            return 201, made
        one = self.sessions.get(rest[0])
        if one is None:
            return self.problem(404, "there is no such session: GET /api/sessions lists yours")
        if method == "DELETE":
            del self.sessions[rest[0]]
            return 204, None
        if method == "PATCH":
            one["config"].update({k: v for k, v in body.items() if k != "labels"})
            return 200, one
        if rest[1:] == ["cancel"]:
            return 200, {"cancelled": True}
        if rest[1:] == ["compact"]:
            return 200, {"messages": 9, "tokensBefore": 21_000, "tokensAfter": 3_100, "summary": "…"}
        if rest[1:] == ["undo"]:
            return 200, {"turns": 1, "text": "And the week before?", "calls": 2}
        return 200, {**one, "messages": f.MESSAGES if rest[0] in ("sess_01J9Z0000", "sess_01J9Z0001") else []}

    # ---- events

    def record(self, session, kind, payload, at=None, id_=None):
        sequence = self.sequences[session] = self.sequences.get(session, 0) + 1
        event = {"id": id_ or f"ev_{session}_{sequence}", "type": kind, "timestamp": at or int(time.time() * 1000), "sequence": sequence, "payload": {"sessionId": session, **payload}}
        self.events.setdefault(session, []).append(event)
        return event

    def record_history(self, session, messages):
        for message in messages:
            at = message["timestamp"]
            if message["role"] == "user":
                self.record(session, "channel.message", {"channel": "web", "senderId": "gw:local/alice", "text": message["content"]}, at)
            elif message["content"]:
                self.record(session, "agent.response", {"content": message["content"], "whole": True}, at)
            for call in message.get("toolCalls", []):
                self.record(session, "tool.call", {"id": call["id"], "tool": call["tool"], "args": call["args"]}, at)
            for result in message.get("toolResults", []):
                self.record(session, "tool.result", result, at)
        self.record(session, "agent.response.end", {"usage": {"promptTokens": 9120, "completionTokens": 410, "totalTokens": 9530}, "providerId": "local", "model": "local/qwen3-coder", "iteration": 2}, at)

    def emit(self, session, kind, payload, durable=True):
        event = self.record(session, kind, payload) if durable else {"id": "msg_live", "type": kind, "timestamp": int(time.time() * 1000), "payload": {"sessionId": session, **payload}}
        for socket in list(Socket.open):
            if socket.server is self:
                asyncio.run_coroutine_threadsafe(socket.send(self.poison(event)), self.loop)
        for queue in list(self.followers.get(session, {}).values()):
            self.loop.call_soon_threadsafe(queue.put_nowait, event)
        return event


class Socket:
    """One WebSocket."""

    open = set()

    def __init__(self, server, reader, writer):
        self.server, self.reader, self.writer = server, reader, writer

    async def run(self, headers):
        if self.server.scopes is None:
            self.writer.write(b"HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n")
            return
        key = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.writer.write(f"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {key}\r\n\r\n".encode())
        Socket.open.add(self)
        try:
            while True:
                first, second = await self.reader.readexactly(2)
                length = second & 127
                if length == 126:
                    (length,) = struct.unpack(">H", await self.reader.readexactly(2))
                elif length == 127:
                    (length,) = struct.unpack(">Q", await self.reader.readexactly(8))
                mask = await self.reader.readexactly(4)
                data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await self.reader.readexactly(length)))
                if first & 15 == 8:
                    return
                if first & 15 == 1:
                    await self.message(json.loads(data))
        finally:
            Socket.open.discard(self)

    async def send(self, event):
        data = json.dumps(event).encode()
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data)) if len(data) < 65536 else b"\x7f" + struct.pack(">Q", len(data))
        try:
            self.writer.write(b"\x81" + size + data)
            await self.writer.drain()
        except ConnectionError:
            Socket.open.discard(self)

    async def message(self, message):
        payload, server = message["payload"], self.server
        if message["type"] == "resume":
            if not server.follows:
                return await self.send({"id": "msg_e", "type": "error", "timestamp": 1, "payload": {"replyTo": message["id"], "reason": "not_implemented", "message": "this agent keeps no events"}})
            for cursor in payload["cursors"]:
                if server.early:
                    # What happens now, before what had happened.
                    await self.send(server.emit(cursor["sessionId"], "agent.notice", {"level": "info", "text": "said meanwhile"}))
                for event in server.events.get(cursor["sessionId"], []):
                    if event["sequence"] > cursor["after"]:
                        await self.send(server.poison(event))
        elif message["type"] == "channel.message":
            server.received.append(payload["text"])
            if server.silent or message["id"] in server.seen_ids:
                return
            server.media += payload.get("media", [])
            server.seen_ids[message["id"]] = True
            asyncio.ensure_future(turn(server, payload["sessionId"], payload["text"], message["id"]))
        elif message["type"] == "turn.cancel":
            server.cancelled.add(payload["sessionId"])
            server.emit(payload["sessionId"], "error", {"reason": "cancelled", "message": "the turn was ended"})


async def turn(server, session, text, client_id):
    """A session is in one turn at a time."""
    async with server.places.setdefault(session, asyncio.Lock()):
        await take_turn(server, session, text, client_id)


async def take_turn(server, session, text, client_id):
    """A turn by its text: `tools`, `approve`, `ask`, `ghost`, `long N`, `raw:TEXT`, anything else is echoed."""
    one = server.sessions[session]
    one["title"] = one["title"] or text[:80]
    one["metadata"]["messageCount"] += 1
    server.cancelled.discard(session)
    server.emit(session, "channel.message", {"channel": "web", "senderId": "gw:local/alice", "text": text, "clientId": client_id})
    server.emit(session, "agent.phase", {"phase": "planning", "iteration": 1, "maxIterations": 24, "goal": text[:60], "pending": [], "completed": [], "totalTokensUsed": 0, "totalCost": 0}, durable=False)
    await asyncio.sleep(0.05)
    if "think" in text:
        server.emit(session, "agent.thought", {"content": "The user asks about the build. I look at the runs first, then at what changed on Tuesday."})
    if "tools" in text:
        server.emit(session, "tool.call", {"id": f"tc_{client_id}", "tool": "code-search.search", "args": {"pattern": "fn respond", "limit": 20}})
        for at in range(4):
            server.emit(session, "tool.stream", {"id": f"tc_{client_id}", "lines": [f"reading part {at + 1} of 4"], "leftOutLines": 0, "leftOutBytes": 0}, durable=False)
            server.emit(session, "tool.progress", {"id": f"tc_{client_id}", "progress": at + 1, "total": 4, "message": f"part {at + 1}"}, durable=False)
            await asyncio.sleep(0.05)
        server.emit(session, "tool.result", {"id": f"tc_{client_id}", "tool": "code-search.search", "success": True, "output": "src/turn.rs:41: pub fn respond(&self)\nsrc/turn.rs:88: fn respond_whole(self)", "metadata": {"executionTime": 212, "truncated": False}})
        server.emit(session, "subagent.start", {"id": f"sa_{client_id}", "agent": "reviewer", "task": "Look at what changed on Tuesday"})
        server.emit(session, "subagent.result", {"id": f"sa_{client_id}", "agent": "reviewer", "result": "One dependency was updated: **ring-compat 0.9**.", "tokensUsed": 2210, "cost": 0.004, "duration": 3100})
    if "approve" in text or "ask" in text:
        is_question = "ask" in text
        approval = {**f.APPROVALS[2 if is_question else 0], "id": f"apr_{client_id}", "sessionId": session, "askedAt": int(time.time() * 1000), "expiresAt": int(time.time() * 1000) + 600_000, "state": "pending"}
        server.approvals.append(approval)
        done = server.turns[session] = asyncio.Event()
        if is_question:
            schema = {"type": "object", "required": ["invoice"], "properties": {"invoice": {"type": "string", "enum": ["March", "June"], "description": "Which of the two."}, "copies": {"type": "integer", "minimum": 1, "maximum": 9}}} if "form" in text else None
            server.emit(session, "clarification.request", {"id": approval["id"], "question": approval["question"], "options": [] if schema else approval["options"], "expiresAt": approval["expiresAt"], **({"schema": schema} if schema else {})})
        else:
            server.emit(session, "confirmation.request", {"id": approval["id"], "text": "⚠️ The assistant wants to run: shell.run", "actions": ["Allow", "Deny"], "tool": approval["tool"], "args": approval["args"], "why": approval["why"], "digest": approval["digest"], "expiresAt": approval["expiresAt"]})
        await done.wait()
        if not is_question and approval["state"] == "approved":
            server.emit(session, "tool.call", {"id": f"tc_{client_id}", "tool": approval["tool"], "args": approval["args"]})
            server.emit(session, "tool.result", {"id": f"tc_{client_id}", "tool": approval["tool"], "success": True, "output": "Everything up-to-date", "metadata": {"executionTime": 640, "truncated": False, "confirmation": "approved"}})
    if "ghost" in text:
        for socket in list(Socket.open):
            if socket.server is server:
                await socket.send({"id": "msg_g", "type": "shadow.ghost", "timestamp": int(time.time() * 1000), "payload": {"id": "gh_1", "trigger": "git commit", "observation": "Three tests of `jail` were skipped in the last commit.", "proposal": "Run them **before** you push?", "confidence": "high", "actions": [{"label": "Run them", "type": "approve", "payload": "Run the skipped tests of jail"}, {"label": "Not now", "type": "dismiss"}]}})
    answer = text[4:] if text.startswith("raw:") else ("One sentence of a long answer, to be read slowly. " * int(text.split()[1])) if text.startswith("long ") else f.ANSWER if "tools" in text or "build" in text else f"You said: {text}"
    offset = 0
    for at in range(0, len(answer), 24):
        if session in server.cancelled:
            return
        piece = answer[at : at + 24]
        server.emit(session, "agent.response", {"content": piece, "attempt": 1, "offset": offset}, durable=False)
        offset += len(piece.encode())
        await asyncio.sleep(0.02)
    server.emit(session, "agent.response", {"content": answer, "whole": True})
    server.emit(session, "agent.response.end", {"usage": {"promptTokens": 9120, "completionTokens": 410, "totalTokens": 9530}, "providerId": "local", "model": "local/qwen3-coder", "iteration": 2})


if __name__ == "__main__":
    served = StandIn().start(int(sys.argv[1]) if len(sys.argv) > 1 else 8790)
    print(f"{served.url}/ and {served.url}/chat")
    threading.Event().wait()
