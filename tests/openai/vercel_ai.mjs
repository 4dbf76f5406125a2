// Vercel's AI SDK, over chat completions and over responses.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [baseURL, apiKey] = process.argv.slice(2);
const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({ name: "talon", baseURL, apiKey, supportsStructuredOutputs: true });
const tools = {
  look: tool({
    description: "Looks how it is somewhere.",
    inputSchema: z.object({ at: z.string() }),
    execute: async ({ at }) => `It is warm at ${at}.`,
  }),
};

for (const model of [openai.chat("talon"), openai.responses("talon"), compatible("talon")]) {
  const { text } = await generateText({ model, system: "Be brief.", prompt: "Count", maxRetries: 0 });
  assert.equal(text, "One two three.");
  const streamed = streamText({ model, prompt: "Count", maxRetries: 0 });
  let pieces = "";
  for await (const piece of streamed.textStream) pieces += piece;
  assert.equal(pieces, "One two three.");
  for (const prompt of ["Look", "Look with both"]) {
    const seen = await generateText({ model, tools, prompt, stopWhen: stepCountIs(4), maxRetries: 0 });
    assert.match(seen.text, /It is warm at home\./);
  }
  const output = Output.object({ schema: z.object({ city: z.string() }) });
  const form = await generateText({ model, output, prompt: "Which city?", maxRetries: 0 });
  assert.deepEqual(form.output ?? form.experimental_output, { city: "Paris" });
}
const { embedding } = await embed({ model: openai.embedding("local/vectors"), value: "bb", maxRetries: 0 });
assert.equal(embedding[0], 2);
console.log("Vercel AI SDK");
