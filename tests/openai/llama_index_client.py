"""LlamaIndex's OpenAILike, for models and for vectors."""

import asyncio
from importlib.metadata import version

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

from clients import BASE_URL, MODEL, TOKEN, look

model = OpenAILike(
    model=MODEL,
    api_base=BASE_URL,
    api_key=TOKEN,
    is_chat_model=True,
    is_function_calling_model=True,
    max_retries=0,
)
said = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Count")]
assert model.chat(said).message.content == "One two three."
assert "".join(piece.delta or "" for piece in model.stream_chat(said)) == "One two three."
assert model.complete("Count").text == "One two three."


async def agent() -> None:
    """Its own loop, with a tool."""
    looks = FunctionTool.from_defaults(fn=look)
    answer = await FunctionAgent(tools=[looks], llm=model, streaming=False).run("Look")
    assert "It is warm at home." in str(answer), answer


asyncio.run(agent())
vectors = OpenAILikeEmbedding(model_name="local/vectors", api_base=BASE_URL, api_key=TOKEN)
assert vectors.get_text_embedding("bb")[0] == 2.0
print("llama-index", version("llama-index-core"))
