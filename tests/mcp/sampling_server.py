"""A server whose tools ask the client's model, made with the official Python library.

It asks by separate requests before 2026-07-28, and by results from then on.
"""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp_types import CreateMessageResult, ModelHint, ModelPreferences, SamplingMessage, TextContent

server = MCPServer("sampling")


def said(text: str) -> list[SamplingMessage]:
    return [SamplingMessage(role="user", content=TextContent(type="text", text=text))]


async def summary_of(text: str) -> Sample:
    hints = ModelPreferences(hints=[ModelHint(name="some-unknown"), ModelHint(name="the-priced-one")])
    return Sample(said(f"P:{text}"), max_tokens=50, system_prompt="Be brief.", model_preferences=hints)


async def with_context(text: str) -> Sample:
    return Sample(said(f"P:{text}"), max_tokens=50, include_context="allServers")


def shown(result: CreateMessageResult) -> str:
    return f"{result.content.text} by {result.model}, {result.stop_reason}"


@server.tool()
async def summarize(text: str, summary: Annotated[CreateMessageResult, Resolve(summary_of)]) -> str:
    """Summarizes a text."""
    return shown(summary)


@server.tool()
async def peek(text: str, summary: Annotated[CreateMessageResult, Resolve(with_context)]) -> str:
    """Wants the context of the client."""
    return shown(summary)


server.run()
