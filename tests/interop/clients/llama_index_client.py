"""LlamaIndex: its basic client, and the tools made of it."""

import asyncio

import checks
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main():
    client = BasicMCPClient(checks.COMMAND, args=checks.ARGS, env=checks.ENVIRONMENT)

    async def names():
        return [tool.metadata.name for tool in await McpToolSpec(client=client).to_tool_list_async()]

    async def call(name):
        return checks.Answer.of(await client.call_tool(name, {}))

    await checks.run(names, call, checks.progress_of(client, "progress_callback"))


asyncio.run(main())
