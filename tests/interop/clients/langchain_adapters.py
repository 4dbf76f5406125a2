"""LangChain's adapters: tools of a session."""

import asyncio

import checks
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main():
    received = []

    async def receive(done, total, message, context):
        received.append(done)

    connection = {"transport": "stdio", "command": checks.COMMAND, "args": checks.ARGS, "env": checks.ENVIRONMENT}
    callbacks = Callbacks(on_progress=receive)
    client = MultiServerMCPClient({"talon": connection}, callbacks=callbacks)
    async with client.session("talon") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session, callbacks=callbacks, server_name="talon")}

        async def names():
            return list(tools)

        async def call(name):
            message = await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": {}})
            blocks = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
            artifact = message.artifact or {}
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            kinds = [block["type"] for block in blocks]
            return checks.Answer(texts, message.status == "error", artifact.get("structured_content"), kinds)

        async def progress(name):
            await call(name)
            return received

        await checks.run(names, call, progress)


asyncio.run(main())
