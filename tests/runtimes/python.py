"""What Python programs lean on, each once. Prints one line for what works, and ends with an error at what does not."""

import asyncio
import concurrent.futures
import ctypes
import hashlib
import http.client
import http.server
import multiprocessing
import os
import secrets
import socket
import socketserver
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import greeting


def works(what):
    print(f"works: {what}", flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = greeting.hello("socket").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

    def address_string(self):
        return "unix"


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def ask(path):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


async def tasks():
    reader = await asyncio.create_subprocess_exec("/bin/echo", "child", stdout=asyncio.subprocess.PIPE)
    out, _ = await reader.communicate()
    return out


def square(number):
    return number * number


def main():
    assert greeting.hello("package") == "hello, package"
    assert sys.prefix != sys.base_prefix, "this is no virtual environment"
    works("a package of the virtual environment")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(square, range(100))) == 328350
    works("threads")

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "http.sock")
        with Server(path, Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            assert ask(path) == "hello, socket"
            server.shutdown()
        works("http over a unix socket")

        with sqlite3.connect(os.path.join(directory, "data.db")) as database:
            database.execute("create table t (n)")
            database.executemany("insert into t values (?)", [(n,) for n in range(100)])
            assert database.execute("select sum(n) from t").fetchone() == (4950,)
        works("sqlite in a temporary directory")

    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    works("multiprocessing, with its semaphores in shared memory")

    assert subprocess.run([sys.executable, "-c", "print(1 + 1)"], capture_output=True, check=True).stdout == b"2\n"
    assert asyncio.run(tasks()) == b"child\n"
    works("children, waited for by asyncio too")

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(square)
    assert callback(7) == 49
    works("callbacks from C, for which libffi makes code")

    assert len(hashlib.sha256(secrets.token_bytes(64)).hexdigest()) == 64
    assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 0
    works("randomness, and the certificates of authorities")

    assert time.localtime().tm_year > 2000 and os.cpu_count() and os.path.expanduser("~") == os.environ["HOME"]
    works("clock, processors, home")

    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except OSError as error:
        works(f"nothing of the internet: {error}")
    else:
        raise AssertionError("it reached the internet")


if __name__ == "__main__":
    main()
    print("all of it works", flush=True)
