"""SQL over CSV files: a Talon plugin without an SDK, in plain Python and grpcio.

What a plugin owes its host is all here: the magic cookie, one handshake line, the PluginService, a health
service and Shutdown. Everything below `class CsvQuery` is the tool itself.
"""

import csv
import json
import os
import pathlib
import signal
import sqlite3
import sys
import tempfile
import threading
from concurrent import futures

import grpc
from google.protobuf import empty_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from opentalon.plugin.v1 import plugin_pb2 as pb
from opentalon.plugin.v1 import plugin_pb2_grpc

# A model reads the answer: more rows than this help nobody. `limit` can lower it.
MAX_ROWS = 200
# A file beyond this would not fit into the plugin's memory several times over. What is larger is refused.
MAX_FILE_BYTES = 64 << 20
# SQLite asks after so many virtual machine steps whether to go on; a few thousand an answer's millisecond.
STEPS_BETWEEN_CHECKS = 10_000


class Refusal(Exception):
    """The tool says no; the text goes to the caller."""


class CsvQuery(plugin_pb2_grpc.PluginServiceServicer):
    def __init__(self):
        self.root = pathlib.Path("data")

    def Init(self, request, context):
        config = json.loads(request.config_json)
        unknown = set(config) - {"root"}
        if unknown:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown settings: {', '.join(sorted(unknown))}")
        self.root = pathlib.Path(config.get("root", "data")).resolve()
        if not self.root.is_dir():
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"root {self.root} is not a directory")
        return empty_pb2.Empty()

    def Capabilities(self, request, context):
        return pb.PluginCapabilities(
            name="csv-query",
            description="Answers SQL questions about CSV files",
            actions=[
                pb.Action(
                    name="list_files",
                    description="Lists the CSV files that can be queried, with their columns",
                    read_only=True,
                ),
                pb.Action(
                    name="query",
                    description="Runs one SQL SELECT (SQLite's dialect) over CSV files; "
                    "each file is a table named after it",
                    read_only=True,
                    parameters=[
                        pb.Parameter(name="sql", description="One SELECT statement", type="string", required=True),
                        pb.Parameter(
                            name="limit",
                            description=f"Rows at most, {MAX_ROWS} if left out",
                            type="integer",
                            schema=json.dumps({"type": "integer", "minimum": 1, "maximum": MAX_ROWS}),
                        ),
                    ],
                ),
            ],
        )

    def Execute(self, request, context):
        result = pb.ToolResultResponse(call_id=request.id)
        try:
            if request.action == "list_files":
                answer = {path.stem: columns(path) for path in self.files()}
                result.content = "\n".join(f"{name}: {', '.join(names)}" for name, names in answer.items())
                result.structured_content = json.dumps(answer)
            elif request.action == "query":
                limit = min(int(request.args.get("limit", MAX_ROWS)), MAX_ROWS)
                names, rows, more = self.query(request.args["sql"], limit, context)
                result.content = table(names, rows) + (f"\n(cut after {limit} rows)" if more else "")
                result.structured_content = json.dumps([dict(zip(names, row)) for row in rows])
            else:
                result.error = f"no action {request.action!r}"
        except (Refusal, sqlite3.Error, ValueError, KeyError) as error:
            result.error = str(error)
        return result

    def files(self):
        return sorted(path for path in self.root.glob("*.csv") if path.is_file() and not path.is_symlink())

    def query(self, sql, limit, context):
        """Loads every file into a database in memory that can do nothing but be read, and asks it."""
        database = sqlite3.connect(":memory:")
        try:
            for path in self.files():
                load(database, path)
            # A call that was cancelled or is past its deadline stops in the middle of its query.
            database.set_progress_handler(lambda: 0 if context.is_active() else 1, STEPS_BETWEEN_CHECKS)
            database.set_authorizer(only_reads)
            cursor = database.execute(sql)
            if cursor.description is None:
                raise Refusal("that statement answers nothing; send one SELECT")
            rows = cursor.fetchmany(limit + 1)
            return [column[0] for column in cursor.description], rows[:limit], len(rows) > limit
        finally:
            database.close()


def only_reads(action, *_):
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def columns(path):
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return next(csv.reader(file), [])


def load(database, path):
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Refusal(f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB")
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file)
        names = next(reader, [])
        if not names:
            return
        database.execute(f"CREATE TABLE {quoted(path.stem)} ({', '.join(f'{quoted(n)} NUMERIC' for n in names)})")
        places = ", ".join("?" * len(names))
        database.executemany(
            f"INSERT INTO {quoted(path.stem)} VALUES ({places})",
            ((row + [None] * len(names))[: len(names)] for row in reader),
        )


def table(names, rows):
    cells = [[str(value) if value is not None else "" for value in row] for row in [names, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def shutdown_handler(stop):
    """go-plugin's GRPCController, as far as a host uses it: an empty message in, an empty one out."""

    def shutdown(request, context):
        stop.set()
        return b""

    handler = grpc.unary_unary_rpc_method_handler(shutdown)
    return grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": handler})


def main():
    if os.environ.get("TALON_PLUGIN_MAGIC_COOKIE") != "d3a7c1f0-talon-plugin":
        sys.exit("This is a Talon plugin; a host starts it. Try: talon exec <its directory> list_files")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp()
    address = os.path.join(directory, "csv-query.sock")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    plugin_pb2_grpc.add_PluginServiceServicer_to_server(CsvQuery(), server)
    checker = health.HealthServicer()
    checker.set("plugin", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checker, server)
    server.add_generic_rpc_handlers((shutdown_handler(stop),))
    server.add_insecure_port(f"unix:{address}")
    server.start()
    print(f"1|1|unix|{address}|grpc", flush=True)
    stop.wait()
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
