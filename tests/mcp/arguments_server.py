"""Servers made with the official Python library, which answer the arguments that they got.

    arguments_server.py typed             functions with Python's types, checked by pydantic
    arguments_server.py schemas FILE      a tool for each schema of FILE, a JSON list, checked by jsonschema
    arguments_server.py verdicts FILE     no server: whether each instance of FILE fits its schema, as a JSON list
"""

import asyncio
import json
import sys
from typing import Any, Literal

import jsonschema
from mcp.server import MCPServer, Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def fits(schema, instance):
    return jsonschema.Draft202012Validator(schema).is_valid(instance)


def typed():
    server = MCPServer("typed")

    @server.tool()
    def types(
        either: int | str | bool,
        anything: Any,
        maybe: int | None = 5,
        text: str = "",
        large: int = 0,
        choice: Literal["a", 1] = "a",
        many: list[int | str] = [],
    ) -> str:
        """Answers each argument with its type."""
        given = {"either": either, "anything": anything, "maybe": maybe, "text": text, "large": large, "choice": choice, "many": many}
        return json.dumps({name: f"{type(value).__name__} {value!r}" for name, value in given.items()})

    @server.tool()
    def rows(count: int) -> dict[str, list[str]]:
        """Answers as many rows, as data."""
        return {"rows": [f"row {n} " + "x" * 40 for n in range(count)]}

    server.run("stdio")


async def schemas(all_schemas):
    async def list_tools(_context, _params):
        tools = [Tool(name=f"t{n}", input_schema=schema) for n, schema in enumerate(all_schemas)]
        return ListToolsResult(tools=tools)

    async def call_tool(_context, params):
        arguments = params.arguments or {}
        valid = fits(all_schemas[int(params.name[1:])], arguments)
        return CallToolResult(content=[TextContent(text=json.dumps(arguments))], is_error=not valid)

    server = Server("schemas", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if sys.argv[1] == "typed":
    typed()
elif sys.argv[1] == "schemas":
    asyncio.run(schemas(read(sys.argv[2])))
else:
    print(json.dumps([fits(schema, instance) for schema, instance in read(sys.argv[2])]))
