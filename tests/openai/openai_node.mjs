// OpenAI's official client for Node.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const model = "talon";
const parameters = {
  type: "object",
  properties: { at: { type: "string" } },
  required: ["at"],
  additionalProperties: false,
};
const look = ({ at }) => `It is warm at ${at}.`;

const messages = [{ role: "user", content: "Count" }];
const answer = await client.chat.completions.create({ model, messages });
assert.equal(answer.choices[0].message.content, "One two three.");
let text = "";
for await (const piece of await client.chat.completions.create({ model, messages, stream: true })) {
  text += piece.choices[0]?.delta?.content ?? "";
}
assert.equal(text, "One two three.");

// The library's own loop over tools.
const runner = client.chat.completions.runTools({
  model,
  messages: [{ role: "user", content: "Look with both" }],
  tools: [{ type: "function", function: { name: "look", description: "Looks.", parameters, function: look, parse: JSON.parse } }],
});
assert.equal(await runner.finalContent(), "Seen: It is warm at home.");

const one = await client.responses.create({ model, input: "Count" });
assert.equal(one.output_text, "One two three.");
const two = await client.responses.create({ model, input: "What did I say?", previous_response_id: one.id });
assert.equal(two.output_text, "You said: Count");
const tools = [{ type: "function", name: "look", description: "Looks.", parameters, strict: true }];
const asked = await client.responses.create({ model, input: "Look", tools });
const call = asked.output.find((item) => item.type === "function_call");
const output = look(JSON.parse(call.arguments));
const seen = await client.responses
  .stream({
    model,
    tools,
    previous_response_id: asked.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output }],
  })
  .finalResponse();
assert.match(seen.output_text, /It is warm at home\./);

const made = await client.embeddings.create({ model: "local/vectors", input: ["a", "bb"] });
assert.equal(made.data[1].embedding[0], 2);
assert.equal((await client.models.retrieve("talon")).id, "talon");
await assert.rejects(client.chat.completions.create({ model, messages, n: 2 }), { status: 400, param: "n" });
console.log("openai for Node");
