"""LangChain's ChatOpenAI and OpenAIEmbeddings."""

from importlib.metadata import version

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from clients import BASE_URL, MODEL, TOKEN, look


class City(BaseModel):
    """A city."""

    city: str


for use_responses_api in (False, True):
    model = ChatOpenAI(
        model=MODEL, base_url=BASE_URL, api_key=TOKEN, max_retries=0, use_responses_api=use_responses_api
    )
    said = [SystemMessage("Be brief."), HumanMessage("Count")]
    assert model.invoke(said).text == "One two three."
    assert "".join(piece.text for piece in model.stream(said)) == "One two three."
    form = model.with_structured_output(City, method="json_schema").invoke("Which city?")
    assert form == City(city="Paris"), form
    looks = tool(look)
    with_tools = model.bind_tools([looks])
    messages = [HumanMessage("Look with both")]
    first = with_tools.invoke(messages)
    [call] = first.tool_calls
    assert (call["name"], call["args"]) == ("look", {"at": "home"}), first
    messages += [first, ToolMessage(look(**call["args"]), tool_call_id=call["id"])]
    second = with_tools.invoke(messages)
    assert "It is warm at home." in second.text, second
    again = with_tools.invoke(messages + [second, HumanMessage("Count")])
    assert again.text == "One two three.", again

vectors = OpenAIEmbeddings(
    model="local/vectors", base_url=BASE_URL, api_key=TOKEN, check_embedding_ctx_length=False
)
assert vectors.embed_query("bb")[0] == 2.0
assert len(vectors.embed_documents(["a", "bb"])) == 2
print("langchain-openai", version("langchain-openai"))
