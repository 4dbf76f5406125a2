"""OpenAI's official client for Python."""

import asyncio

import openai
from pydantic import BaseModel

from clients import BASE_URL, LOOK, MODEL, TOKEN, look

client = openai.OpenAI(base_url=BASE_URL, api_key=TOKEN, max_retries=0)


class City(BaseModel):
    city: str


# Chat completions: whole, streamed, as a form.
said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Count"}]
answer = client.chat.completions.create(model=MODEL, messages=said, temperature=0.2, max_tokens=50, user="u")
assert answer.choices[0].message.content == "One two three.", answer
assert answer.choices[0].finish_reason == "stop" and answer.usage.total_tokens > 0, answer
stream = client.chat.completions.create(
    model=MODEL, messages=said, stream=True, stream_options={"include_usage": True}
)
pieces = list(stream)
text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
assert text == "One two three.", pieces
assert pieces[-1].usage.total_tokens > 0, pieces[-1]
# The provider ignores stops, and the answer ends there all the same.
short = client.chat.completions.create(model=MODEL, messages=said, stop=" three", seed=7)
assert short.choices[0].message.content == "One two" and short.choices[0].finish_reason == "stop", short
stream = client.chat.completions.create(model=MODEL, messages=said, stop=["four", "two"], stream=True)
assert "".join(piece.choices[0].delta.content or "" for piece in stream).strip() == "One"
form = client.chat.completions.parse(
    model=MODEL, messages=[{"role": "user", "content": "Which city?"}], response_format=City
)
assert form.choices[0].message.parsed == City(city="Paris"), form

# Tools of the client, beside one of the server's in the same answer.
tools = [{"type": "function", "function": {**LOOK, "strict": True}}]
messages = [{"role": "user", "content": "Look with both"}]
first = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
assert first.choices[0].finish_reason == "tool_calls", first
[call] = first.choices[0].message.tool_calls
assert call.function.name == "look", call
messages.append(first.choices[0].message)
messages.append({"role": "tool", "tool_call_id": call.id, "content": look("home")})
second = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
assert second.choices[0].message.content == "Seen: It is warm at home.", second
with client.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": "Look"}], tools=tools) as stream:
    stream.until_done()
    final = stream.get_final_completion()
assert final.choices[0].message.tool_calls[0].function.arguments == '{"at":"home"}', final

# An image, models, vectors, errors.
PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
image = [{"type": "text", "text": "Count"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
seen = client.chat.completions.create(model="local/sees", messages=[{"role": "user", "content": image}])
assert seen.choices[0].message.content == "One two three.", seen
names = [model.id for model in client.models.list()]
assert {MODEL, "local/test"} <= set(names), names
assert client.models.retrieve("local/test").id == "local/test"
made = client.embeddings.create(model="local/vectors", input=["a", "bb"])
assert [len(one.embedding) for one in made.data] == [3, 3] and made.data[1].embedding[0] == 2.0, made
plain = client.embeddings.create(model="local/vectors", input="a", encoding_format="float")
assert plain.data[0].embedding == made.data[0].embedding, plain
try:
    client.chat.completions.create(model=MODEL, messages=said, n=2)
    raise SystemExit("there is one answer, so several have to be refused")
except openai.BadRequestError as error:
    assert error.param == "n", error
try:
    client.with_options(api_key="talon_none").models.list()
    raise SystemExit("nobody was let in")
except openai.AuthenticationError:
    pass

# Responses: stored, continued, streamed, with functions, read again, deleted.
one = client.responses.create(model=MODEL, input="Count", instructions="Be brief.")
assert one.output_text == "One two three." and one.status == "completed", one
two = client.responses.create(model=MODEL, input="What did I say?", previous_response_id=one.id)
assert two.output_text == "You said: Count", two
assert client.responses.retrieve(one.id).output_text == one.output_text
noted = client.responses.create(model=MODEL, input="Count", metadata={"topic": "demo"})
assert noted.metadata == client.responses.retrieve(noted.id).metadata == {"topic": "demo"}, noted
with client.responses.stream(model=MODEL, input="Count") as stream:
    kinds = [event.type for event in stream]
    whole = stream.get_final_response()
assert whole.output_text == "One two three." and "response.output_text.delta" in kinds, kinds
functions = [{"type": "function", **LOOK, "strict": True}]
asked = client.responses.create(model=MODEL, input="Look with both", tools=functions)
[call] = [item for item in asked.output if item.type == "function_call"]
result = {"type": "function_call_output", "call_id": call.call_id, "output": look("home")}
seen = client.responses.create(model=MODEL, input=[result], previous_response_id=asked.id, tools=functions)
assert seen.output_text.startswith("Seen:") and "It is warm at home." in seen.output_text, seen
# The conversation itself in the place of an id, as agents of this library send it, stored and not.
for store in (True, False):
    items = [{"role": "user", "content": "Look"}]
    asked = client.responses.create(model=MODEL, input=items, tools=functions, store=store)
    items += [item.model_dump(exclude_none=True) for item in asked.output]
    [call] = [item for item in asked.output if item.type == "function_call"]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": look("home")})
    seen = client.responses.create(model=MODEL, input=items, tools=functions, store=store)
    assert "It is warm at home." in seen.output_text, seen
try:
    client.responses.create(model=MODEL, input="And?", previous_response_id=one.id)
    raise SystemExit("another response followed already")
except openai.BadRequestError as error:
    assert error.code == "previous_response_not_found", error
client.responses.delete(two.id)
try:
    client.responses.retrieve(two.id)
    raise SystemExit("it was deleted")
except openai.NotFoundError:
    pass


async def at_once() -> None:
    """Several at once, over one connection pool."""
    several = openai.AsyncOpenAI(base_url=BASE_URL, api_key=TOKEN, max_retries=0)
    ask = lambda: several.chat.completions.create(model=MODEL, messages=said)
    answers = await asyncio.gather(*(ask() for _ in range(8)))
    assert all(answer.choices[0].message.content == "One two three." for answer in answers)


asyncio.run(at_once())
print("openai for Python", openai.__version__)
