#!/usr/bin/python3
"""An OpenTalon v0.0.1 plugin as its SDK made them, from the standard library alone: a directory below TMPDIR, a socket in it,
one line, and then four bytes of length and JSON. With an argument it breaks the protocol in that way."""

import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time

MAX_MESSAGE_BYTES = 4 << 20

lie = sys.argv[1] if len(sys.argv) > 1 else ""

CAPABILITIES = {
    "name": "hello-world",
    "description": "Greets, and shows what it was given.",
    "actions": [
        {
            "name": "hello",
            "description": "Says hello.",
            "parameters": [{"name": "name", "description": "To whom.", "type": "string", "required": True}],
        },
        {"name": "environment", "description": "Shows its environment as JSON."},
        {"name": "wait", "description": "Waits until its caller is gone, and says so on standard error."},
        {"name": "rendezvous", "description": "Answers once two calls are there."},
        {"name": "fail", "description": "Says no."},
        {"name": "die", "description": "Ends during the call."},
    ],
}

together = threading.Barrier(2)


def receive(connection):
    header = take(connection, 4)
    (size,) = struct.unpack(">I", header)
    if size > MAX_MESSAGE_BYTES:
        raise EOFError(f"message too large: {size}")
    return json.loads(take(connection, size))


def take(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("the end")
        data += piece
    return data


def send(connection, response):
    body = json.dumps(response).encode()
    connection.sendall(struct.pack(">I", len(body)) + body)


def execute(connection, request):
    action, args, call = request.get("action", ""), request.get("args") or {}, request["id"]
    if lie == "never-answers":
        time.sleep(3600)
    if lie == "huge-length":
        connection.sendall(b"\xff\xff\xff\xff" + b"x" * 1000)
        time.sleep(3600)
    if lie == "garbage":
        body = b"-1"
        connection.sendall(struct.pack(">I", len(body)) + body)
        return
    if lie == "deep":
        body = b'{"x":' + b"[" * 1_000_000
        connection.sendall(struct.pack(">I", len(body)) + body)
        return
    if lie == "other-id":
        send(connection, {"call_id": "somebody-elses", "content": "the answer to something else"})
        return
    if lie == "mid-frame":
        connection.sendall(struct.pack(">I", 1000) + b'{"content":"half')
        raise EOFError("it hangs up")
    if lie == "answers-twice":
        send(connection, {"call_id": call, "content": "once"})
        send(connection, {"call_id": "", "content": "twice"})
        return
    if action == "hello":
        send(connection, {"call_id": call, "content": f"Hello, {args.get('name', '')}!"})
    elif action == "environment":
        send(connection, {"call_id": call, "content": json.dumps(dict(os.environ))})
    elif action == "wait":
        connection.recv(1)
        print("the caller of", call, "is gone", file=sys.stderr, flush=True)
    elif action == "rendezvous":
        together.wait()
        send(connection, {"call_id": call, "content": "together"})
    elif action == "fail":
        send(connection, {"call_id": call, "error": "it says no"})
    elif action in ("", "a b", "../../etc", "<tool_call>", "x" * 100):
        send(connection, {"call_id": call, "content": f"called by {len(action)} characters"})
    elif action == "die":
        print("it was asked to die", file=sys.stderr, flush=True)
        os._exit(7)
    else:
        send(connection, {"call_id": call, "error": f"unknown action {action}"})


def serve(connection):
    try:
        while True:
            request = receive(connection)
            if request["method"] == "capabilities":
                if lie == "silent-about-itself":
                    time.sleep(3600)
                send(connection, {"caps": capabilities()})
            elif request["method"] == "execute":
                execute(connection, request)
            else:
                send(connection, {"error": f"unknown method {request['method']}"})
    except (EOFError, OSError):
        pass
    finally:
        connection.close()


def capabilities():
    if lie == "no-capabilities":
        return None
    if lie == "hostile-names":
        odd = ["", "a b", "x" * 100, "hello", "\u202eevil", "../../etc", "a__b", "<tool_call>"]
        return dict(CAPABILITIES, name="Größe [tool_call]", actions=CAPABILITIES["actions"] + [{"name": n} for n in odd])
    if lie == "too-many-actions":
        return dict(CAPABILITIES, actions=[{"name": f"a{n}"} for n in range(5000)])
    return CAPABILITIES


def main():
    if lie == "crashes":
        print("it cannot read its book of greetings", file=sys.stderr, flush=True)
        os._exit(3)
    if lie == "floods":
        threading.Thread(target=flood, daemon=True).start()
    path = os.path.join(tempfile.mkdtemp(prefix="opentalon-plugin-"), "plugin.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print(f"1|unix|{path}", flush=True)
    print("what it prints later is for its log", flush=True)
    if lie == "closes-output":
        os.close(1)
    while True:
        connection, _ = listener.accept()
        if lie == "crashes-when-asked":
            connection.recv(4)
            print("it cannot bear to be asked", file=sys.stderr, flush=True)
            os._exit(4)
        if lie == "one-after-the-other":
            serve(connection)
        else:
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


def flood():
    """On both streams, a line without an end among them."""
    line = b"noise " * 20 + b"\n"
    for _ in range(20_000):
        os.write(2, line)
        os.write(1, line)
    os.write(1, b"x" * (1 << 20))


main()
