#!/usr/bin/python3
"""The program that the MCP project's conformance suite tests as a client: Talon, with the suite's server as a plugin.

    conformance_client.py TALON URL

It starts a supervisor whose plugin is the server at URL, logs in where the server wants that, calls every tool once,
and ends. What the suite judges is what arrived at its server.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

# Only limits for hangs.
START_SECONDS = 40
CALL_SECONDS = 40
# An address for the server and one for its authorization server, a login, and one with more rights.
MAX_STEPS = 6

TALON, URL = sys.argv[1], sys.argv[2]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
HOME = Path(tempfile.mkdtemp(prefix="talon-conformance-"))
# Plugins have uids of their own, and pass through it.
HOME.chmod(0o755)
# Their tools ask the user behind a call.
ASKING = ("elicitation-sep1034-client-defaults", "sep-2322-client-request-state")
VALUES = {"string": "text", "integer": 5, "number": 5, "boolean": True, "array": [], "object": {}}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def where_to(url):
    """The address that a browser is sent to."""
    try:
        urllib.request.build_opener(NoRedirect).open(url, timeout=CALL_SECONDS)
    except urllib.error.HTTPError as answer:
        return answer.headers.get("Location")
    return None


def configuration(allow):
    entry = {
        "url": URL,
        "max_restarts": 0,
        "start_timeout": "15s",
        "config": {"protocol": os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")},
        "sandbox": {"allow": allow},
    }
    return {
        "runtime_dir": str(HOME / "run"),
        "state": {"data_dir": str(HOME / "data")},
        "plugins": {"tools": {"plugins": {"server": entry}}},
    }


def configure(allow):
    (HOME / "talon.yaml").write_text(json.dumps(configuration(allow)))


def talon(*args, **options):
    command = [TALON, "--config", str(HOME / "talon.yaml"), *args]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=CALL_SECONDS, **options)
    print("talon", *args, "->", done.returncode, done.stdout[:2000], done.stderr[:2000], flush=True)
    return done


def state():
    """The plugin, once it is ready or given up."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        shown = subprocess.run([TALON, "--config", str(HOME / "talon.yaml"), "plugin", "show", "server", "--output", "json"],
                               capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if shown.returncode == 0:
            shown = json.loads(shown.stdout)
            if shown["plugin"]["state"] in ("ready", "failed", "refused"):
                return shown
        time.sleep(0.1)
    return {}


def log_in(more):
    """As a person does, who opens the printed address in a browser and confirms."""
    args = ["mcp", "login", "server", *more]
    environment = dict(os.environ)
    if "client_id" in CONTEXT:
        args += ["--client-id", CONTEXT["client_id"]]
        if "client_secret" in CONTEXT:
            environment["TALON_MCP_CLIENT_SECRET"] = CONTEXT["client_secret"]
    command = [TALON, "--config", str(HOME / "talon.yaml"), *args]
    login = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=environment)
    said = ""
    for line in login.stdout:
        said += line
        print("login:", line, end="", flush=True)
        found = re.search(r"https?://\S+", line)
        if found and "client_id=" in found[0]:
            back = where_to(found[0])
            print("back to", back, flush=True)
            if back:
                where_to(back)
    login.wait(timeout=CALL_SECONDS)
    return said


def calls(actions):
    """What is called: as the scenario says, and otherwise every tool with what it requires."""
    if "toolCalls" in CONTEXT:
        return [(wanted["name"], wanted["arguments"]) for wanted in CONTEXT["toolCalls"]]
    return [(action["name"], {parameter["name"]: VALUES.get(parameter["type"], "text") for parameter in action.get("parameters", [])
                              if parameter.get("required")}) for action in actions]


def call(name, arguments):
    return talon("call", f"server.{name}", "--arguments", json.dumps(arguments))


def accepted(question):
    """A form as its user leaves it who only presses the button."""
    fields = question["requestedSchema"]["properties"]
    content = {name: field.get("default", VALUES.get(field["type"], "text")) for name, field in fields.items()}
    return {"action": "accept", "content": content}


def call_with_answers(wanted):
    """Calls as an editor does whose user accepts each question."""
    command = [TALON, "--config", str(HOME / "talon.yaml"), "mcp"]
    mcp = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(**message):
        mcp.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        mcp.stdin.flush()

    def ask(id, method, params):
        send(id=id, method=method, params=params)
        for line in mcp.stdout:
            print("mcp:", line[:2000], end="", flush=True)
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                send(id=message["id"], result=accepted(message["params"]))
            elif message.get("id") == id and "method" not in message:
                return

    about = {"name": "conformance", "version": "1"}
    ask(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": about})
    send(method="notifications/initialized")
    for id, (name, arguments) in enumerate(wanted, 1):
        ask(id, "tools/call", {"name": f"server__{name}", "arguments": arguments})
    mcp.stdin.close()
    mcp.wait(timeout=CALL_SECONDS)


def hinted(text):
    """The list of addresses that a refusal prints, for whom it is meant."""
    found = re.search(r'sandbox\.allow: (\[[^\]]*\])', text)
    return json.loads(found[1]) if found else []


def wanted_login(text):
    """The arguments of the login that a message asks for."""
    found = re.search(r'`talon mcp login server(?: --scope "([^"]*)")?`', text)
    return None if not found else ["--scope", found[1]] if found[1] else []


def settle(allow):
    """Does what the plugin's reason asks for, until it asks for nothing new: allows an address, or logs in."""
    done = []
    for _ in range(MAX_STEPS):
        shown = state()
        plugin = shown.get("plugin") or {}
        print("the plugin is", plugin.get("state"), plugin.get("reason"), flush=True)
        if plugin.get("state") == "ready":
            return shown
        more = [address for address in hinted(plugin.get("reason", "")) if address not in allow]
        wanted = wanted_login(plugin.get("reason", ""))
        if more:
            allow += more
            configure(allow)
            talon("reload")
        # A second time where a login is over; what fails even so stays failed.
        elif wanted is not None and done.count(wanted) < 2:
            done.append(wanted)
            said = log_in(wanted)
            more = [address for address in hinted(said) if address not in allow]
            if more:
                allow += more
                configure(allow)
                talon("reload")
        else:
            break
    return {}


def main():
    allow = [urlsplit(URL).netloc]
    configure(allow)
    log = open(HOME / "log", "w")
    serve = subprocess.Popen([TALON, "--config", str(HOME / "talon.yaml"), "serve"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        shown = settle(allow)
        wanted_calls = calls((shown.get("capabilities") or {}).get("actions", []))
        if os.environ.get("MCP_CONFORMANCE_SCENARIO") in ASKING:
            call_with_answers(wanted_calls)
            wanted_calls = []
        for name, arguments in wanted_calls:
            answer = call(name, arguments)
            wanted = wanted_login(answer.stdout + answer.stderr)
            # As an operator does once; what is refused even so stays refused.
            if wanted is not None:
                log_in(wanted)
                state()
                call(name, arguments)
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.wait()
        print((HOME / "log").read_text()[-3000:])
        shutil.rmtree(HOME)


main()
