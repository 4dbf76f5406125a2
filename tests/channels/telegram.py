"""An imitation of Telegram's Bot API, written from https://core.telegram.org/bots/api, for tests of the plugin `telegram`.

telegram.py TOKEN: prints its port, and ends with its standard input. As Telegram it keeps updates until `getUpdates` comes with a
higher offset, lets one poll wait at a time (409), refuses wrong tokens (401), empty and long texts, and long data of buttons (400).

  POST /control/update {...}    adds an update; its `update_id` is chosen here
  POST /control/fail [CODE, PARAMETERS, DESCRIPTION]    has the next sendMessage fail
  POST /control/file {"id", "path", "data", "size"}    adds a file, as base64; `size` in place of its own
  GET  /control/calls           all calls but polls, as [method, arguments]
  GET  /control/polls           how many polls there were, the last offset, and how many updates wait
"""

import base64
import http.server
import json
import sys
import threading
import time

TOKEN = sys.argv[1]
BOT = {"id": int(TOKEN.split(":")[0]), "is_bot": True, "first_name": "Talon", "username": "TalonTestBot"}

lock = threading.Condition()
updates, calls, failures, files = [], [], [], {}
state = {"update": 900, "message": 1, "poll": 0, "polls": 0, "offset": 0}


class Refusal(Exception):
    """An error of the Bot API: code, description, parameters."""


def units(text):
    return len(text.encode("utf-16-le")) // 2


def get_me(_):
    return BOT


def get_updates(arguments):
    offset, limit = arguments.get("offset", 0), min(max(arguments.get("limit", 100), 1), 100)
    until = time.monotonic() + min(arguments.get("timeout", 0), 50)
    with lock:
        state["polls"] += 1
        state["offset"] = offset
        # "An update is considered confirmed as soon as getUpdates is called with an offset higher than its update_id."
        updates[:] = [update for update in updates if update["update_id"] >= offset]
        # A newer poll ends an older one.
        state["poll"] += 1
        mine = state["poll"]
        lock.notify_all()
        while True:
            if mine != state["poll"]:
                raise Refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
            if updates or time.monotonic() >= until:
                return updates[:limit]
            lock.wait(until - time.monotonic())


def send_message(arguments):
    with lock:
        if failures:
            raise Refusal(*failures.pop(0))
        text = arguments["text"].strip()
        if not text:
            raise Refusal(400, "Bad Request: message text is empty")
        if units(text) > 4096:
            raise Refusal(400, "Bad Request: message is too long")
        for row in arguments.get("reply_markup", {}).get("inline_keyboard", []):
            for button in row:
                if not 1 <= len(button["callback_data"].encode()) <= 64:
                    raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        state["message"] += 1
        return {"message_id": state["message"], "date": int(time.time()), "chat": {"id": arguments["chat_id"]}, "text": text, "from": BOT}


def get_file(arguments):
    """https://core.telegram.org/bots/api#getfile: bots can download files of up to 20 MB."""
    with lock:
        file = files.get(arguments["file_id"])
    if file is None:
        raise Refusal(400, "Bad Request: invalid file_id")
    size = file.get("size", len(file["bytes"]))
    if size > 20_000_000:
        raise Refusal(400, "Bad Request: file is too big")
    return {"file_id": arguments["file_id"], "file_unique_id": "u", "file_size": size, "file_path": file["path"]}


def send_chat_action(arguments):
    if arguments["action"] != "typing":
        raise Refusal(400, "Bad Request: wrong parameter action in request")
    return True


METHODS = {
    "getFile": get_file,
    "sendChatAction": send_chat_action,
    "getMe": get_me,
    "getUpdates": get_updates,
    "sendMessage": send_message,
    "answerCallbackQuery": lambda _: True,
}


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        # https://api.telegram.org/file/bot<token>/<file_path>
        if self.path.startswith(f"/file/bot{TOKEN}/"):
            with lock:
                found = [file["bytes"] for file in files.values() if self.path.endswith("/" + file["path"])]
            return self.send(200, "application/octet-stream", found[0]) if found else self.fail(404, "Not Found")
        with lock:
            polls = {"polls": state["polls"], "offset": state["offset"], "waiting": len(updates)}
            self.answer(200, calls if self.path == "/control/calls" else polls)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        arguments = json.loads(body or b"{}")
        if self.path == "/control/update":
            with lock:
                state["update"] += 1
                updates.append({"update_id": state["update"], **arguments})
                lock.notify_all()
            return self.answer(200, {})
        if self.path == "/control/file":
            with lock:
                files[arguments["id"]] = {**arguments, "bytes": base64.b64decode(arguments["data"])}
            return self.answer(200, {})
        if self.path == "/control/fail":
            with lock:
                code, parameters, description = arguments
                failures.append((code, description, parameters))
            return self.answer(200, {})
        _, bot, method = self.path.split("/", 2)
        if bot != f"bot{TOKEN}":
            return self.fail(401, "Unauthorized")
        if method not in METHODS:
            return self.fail(404, "Not Found")
        try:
            result = METHODS[method](arguments)
        except Refusal as refusal:
            return self.fail(*refusal.args)
        if method != "getUpdates":
            with lock:
                calls.append([method, arguments])
        return self.answer(200, {"ok": True, "result": result})

    def fail(self, code, description, parameters=None):
        answer = {"ok": False, "error_code": code, "description": description}
        if parameters:
            answer["parameters"] = parameters
        return self.answer(code, answer)

    def answer(self, status, value):
        return self.send(status, "application/json", json.dumps(value).encode())

    def send(self, status, kind, body):
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            pass

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
