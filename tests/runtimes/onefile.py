"""What a program packed into one file leans on: its own libraries, unpacked into TMPDIR, and a few of Python's."""

import ctypes
import hashlib
import json
import os
import socket
import sqlite3
import ssl
import sys
import tempfile
import threading

assert getattr(sys, "frozen", False), "this is not packed"
assert sys._MEIPASS.startswith(os.environ["TMPDIR"]), sys._MEIPASS
print("works: unpacked into TMPDIR", flush=True)

with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "echo.sock")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()

    def echo():
        connection, _ = server.accept()
        connection.sendall(connection.recv(5))
        connection.close()

    thread = threading.Thread(target=echo)
    thread.start()
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(b"hello")
    assert client.recv(5) == b"hello"
    thread.join()
print("works: threads and a unix socket", flush=True)

assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
assert ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)() == 7
assert json.loads(json.dumps([hashlib.sha256(b"x").hexdigest(), ssl.OPENSSL_VERSION]))
print("works: extension modules", flush=True)
print("all of it works", flush=True)
