"""SQL over CSV files: a plugin with settings, data beside its text, and a long call that ends when it is cancelled."""

import csv
import pathlib
import sqlite3
from typing import Annotated

from talon_plugin import Context, Output, Plugin, ToolError

# A model reads the answer: more rows than this are no help. `limit` can lower it.
MAX_ROWS = 200
# A file beyond this would not fit into the plugin's memory several times over. What is larger is refused.
MAX_FILE_BYTES = 64 << 20
# SQLite asks after so many virtual machine steps whether to go on; a few thousand an answer's millisecond.
STEPS_BETWEEN_CHECKS = 10_000

plugin = Plugin("csv-query", "Answers SQL questions about CSV files")
root = pathlib.Path("data")


@plugin.init
def init(config):
    global root
    unknown = set(config) - {"root"}
    if unknown:
        raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
    root = pathlib.Path(config.get("root", "data")).resolve()
    if not root.is_dir():
        raise ValueError(f"root {root} is not a directory")


@plugin.tool(read_only=True)
def list_files() -> Output:
    """Lists the CSV files that can be queried, with their columns"""
    found = {path.stem: columns(path) for path in files()}
    return Output("\n".join(f"{name}: {', '.join(names)}" for name, names in found.items()), found)


@plugin.tool(read_only=True)
def query(
    ctx: Context,
    sql: Annotated[str, "One SELECT statement"],
    limit: Annotated[int, f"Rows at most, {MAX_ROWS} if left out", {"minimum": 1, "maximum": MAX_ROWS}] = MAX_ROWS,
) -> Output:
    """Runs one SQL SELECT (SQLite's dialect) over CSV files; each file is a table named after it"""
    try:
        names, rows, more = ask(sql, limit, ctx)
    except (sqlite3.Error, ValueError) as error:
        raise ToolError(str(error)) from error
    text = table(names, rows) + (f"\n(cut after {limit} rows)" if more else "")
    return Output(text, [dict(zip(names, row)) for row in rows])


def ask(sql, limit, ctx):
    """Loads every file into a database in memory that can do nothing but be read, and asks it."""
    database = sqlite3.connect(":memory:")
    try:
        for path in files():
            load(database, path)
        # A call that was cancelled or is past its deadline stops in the middle of its query.
        database.set_progress_handler(ctx.is_cancelled, STEPS_BETWEEN_CHECKS)
        database.set_authorizer(only_reads)
        cursor = database.execute(sql)
        if cursor.description is None:
            raise ToolError("that statement answers nothing; send one SELECT")
        rows = cursor.fetchmany(limit + 1)
        return [column[0] for column in cursor.description], rows[:limit], len(rows) > limit
    finally:
        database.close()


def files():
    return sorted(path for path in root.glob("*.csv") if path.is_file() and not path.is_symlink())


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
        raise ToolError(f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB")
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


if __name__ == "__main__":
    plugin.serve()
