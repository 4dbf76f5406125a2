"""A server made with FastMCP 2, whose tool asks the client's model by `ctx.sample`."""

from fastmcp import Context, FastMCP

server = FastMCP("fast")


@server.tool
async def summarize(text: str, ctx: Context) -> str:
    """Summarizes a text."""
    answer = await ctx.sample(f"P:{text}", system_prompt="Be brief.", max_tokens=50, model_preferences=["the-priced-one"])
    return f"FastMCP got {answer.text}"


server.run(show_banner=False)
