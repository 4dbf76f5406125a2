"""Puts an MCP server on standard input and output behind streamable HTTP, for the conformance suite of MCP, which speaks
nothing else. `talon mcp` itself listens nowhere.

    relay.py PREFIX COMMAND ARGS…

Tools that the server calls PREFIX + name are called name, since the suite asks for tools by name. Up to 2025-11-25 each
session has a separate server; from 2026-07-28 on all requests share one. Prints its port, then serves until it is killed.
"""

import itertools
import json
import queue
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX, COMMAND = sys.argv[1], sys.argv[2:]
STATELESS = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
VERSION = "io.modelcontextprotocol/protocolVersion"


class Server:
    """One process, and who waits for what it says."""

    def __init__(self):
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.open = {}  # our number -> (their id, their progress token, queue)
        self.unasked = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message:
                with self.lock:
                    theirs, _, waiting = self.open.pop(message.get("id"), (None, None, self.unasked))
                message["id"] = theirs
                for tool in message.get("result", {}).get("tools", []):
                    tool["name"] = tool["name"].removeprefix(PREFIX)
                meta = message.get("result", {}).get("_meta") or {}
                if SUBSCRIPTION in meta:
                    meta[SUBSCRIPTION] = theirs
                waiting.put(message)
                continue
            params = message.get("params") or {}
            meta = params.get("_meta") or {}
            number = params.get("progressToken", meta.get(SUBSCRIPTION))
            with self.lock:
                theirs, token, waiting = self.open.get(number, (None, None, self.unasked))
            if "progressToken" in params:
                params["progressToken"] = token
            if SUBSCRIPTION in meta:
                meta[SUBSCRIPTION] = theirs
            waiting.put(message)

    def send(self, message):
        line = json.dumps(message).encode() + b"\n"
        with self.lock:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def ask(self, message):
        """Sends a request under a number of ours; what comes of it comes in the queue."""
        waiting = queue.Queue()
        number = next(self.numbers)
        theirs, message = message["id"], dict(message, id=number)
        params = message.get("params")
        token = None
        if isinstance(params, dict):
            meta = params.get("_meta")
            if isinstance(meta, dict) and "progressToken" in meta:
                token, meta["progressToken"] = meta["progressToken"], number
            if message["method"] == "tools/call" and isinstance(params.get("name"), str):
                params["name"] = PREFIX + params["name"]
        with self.lock:
            self.open[number] = (theirs, token, waiting)
        self.send(message)
        return number, waiting

    def end(self):
        self.process.stdin.close()
        self.process.wait()


sessions = {}
shared = []
making = threading.Lock()


def shared_server():
    with making:
        if not shared:
            shared.append(Server())
        return shared[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=None, headers=()):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, waiting, headers=(), until_answer=True):
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            message = waiting.get()
            self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()
            if until_answer and "method" not in message:
                return

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            message = json.loads(body)
        except ValueError:
            return self.answer(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        session = self.headers.get("Mcp-Session-Id")
        headers = ()
        if message.get("method") == "initialize":
            session = uuid.uuid4().hex
            sessions[session] = Server()
            headers = [("Mcp-Session-Id", session)]
        if session is not None:
            server = sessions.get(session)
            if server is None:
                return self.answer(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
        elif isinstance(meta, dict) and VERSION in meta or message.get("method") == "server/discover" or self.headers.get("MCP-Protocol-Version") == STATELESS:
            server = shared_server()
        else:
            return self.answer(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32600, "message": "No session"}})
        if "id" not in message or "method" not in message:
            server.send(message)
            return self.answer(202)
        stated = self.headers.get("MCP-Protocol-Version")
        if session is None and stated != (meta or {}).get(VERSION, stated):
            error = {"code": -32020, "message": "The header and the request name different revisions"}
            return self.answer(400, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        number, waiting = server.ask(message)
        first = waiting.get()
        if "method" in first:
            rest = queue.Queue()
            rest.put(first)
            threading.Thread(target=pump, args=(waiting, rest), daemon=True).start()
            try:
                return self.stream(rest, headers)
            except OSError:
                # Closing the stream is how a client over HTTP cancels.
                server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
                return
        status = 200
        if "error" in first and (session is None or stated == STATELESS):
            status = {-32601: 404}.get(first["error"]["code"], 400)
        self.answer(status, first, headers)

    def do_GET(self):
        server = sessions.get(self.headers.get("Mcp-Session-Id"))
        if server is None:
            return self.answer(405)
        try:
            self.stream(server.unasked, until_answer=False)
        except OSError:
            pass

    def do_DELETE(self):
        server = sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        if server is None:
            return self.answer(404)
        server.end()
        self.answer(200)


def pump(source, to):
    while True:
        to.put(source.get())


listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
listener.daemon_threads = True
print(listener.server_address[1], flush=True)
listener.serve_forever()
