// What the typed client does, in one function; a test compiles it strictly and runs it against a gateway.

import { GatewayClient, ProblemError } from "./client.js";

/** Asks in several ways, and gives what was said. */
export async function example(url: string, token: string): Promise<string[]> {
  const gateway = new GatewayClient(url, token);
  const said: string[] = [];

  // OpenAI's dialect: whole, and piece by piece.
  const { data: models } = await gateway.call("GET /v1/models");
  const model = await gateway.call("GET /v1/models/{model}", { path: { model: models[models.length - 1].id } });
  const messages = [{ role: "user", content: "Hello" }];
  const whole = await gateway.call("POST /v1/chat/completions", { body: { model: model.id, messages } });
  said.push(whole.choices[0].message.content ?? "");
  let streamed = "";
  for await (const event of gateway.events("POST /v1/chat/completions", { body: { model: "talon", messages, stream: true } })) {
    if ("error" in event) throw new Error(event.error.message);
    streamed += event.choices[0]?.delta.content ?? "";
  }
  said.push(streamed);

  // A stored response, and one that goes on from it.
  const body = { model: "talon", input: "Hello", reasoning: { effort: "low" as const }, metadata: { topic: "demo" } };
  const first = await gateway.call("POST /v1/responses", { body });
  for await (const event of gateway.events("POST /v1/responses", { body: { model: "talon", input: "And?", stream: true, previous_response_id: first.id } })) {
    if (event.type === "response.output_text.done") said.push(event.text);
  }
  for (const item of (await gateway.call("GET /v1/responses/{id}", { path: { id: first.id } })).output) {
    if (item.type === "message") said.push(item.content.map((part) => part.text).join(""));
  }
  await gateway.call("DELETE /v1/responses/{id}", { path: { id: first.id } });

  // A session of the gateway's own.
  const session = await gateway.call("POST /api/sessions", { body: { thinkingLevel: "low" } });
  await gateway.call("PATCH /api/sessions/{id}", { path: { id: session.id }, body: { thinkingLevel: "configured", verboseLevel: true } });
  for await (const event of gateway.events("POST /api/sessions/{id}/send", { path: { id: session.id }, body: { text: "Hello" } })) {
    if (event.type === "agent.response.end") said.push(`${event.payload.usage.totalTokens} tokens`);
  }

  try {
    await gateway.call("GET /api/sessions/{id}", { path: { id: "sess_none" } });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    said.push(`${error.problem.status} ${error.problem.type}`);
  }
  return said;
}

/** Calls of tools that took longer than this, as they happen. */
export async function* slowCalls(gateway: GatewayClient, milliseconds: number, signal: AbortSignal): AsyncGenerator<string> {
  for await (const event of gateway.bus(["tool.complete"], { signal })) {
    if (event.type === "missed") yield `${event.payload.count} events are missing`;
    else if (event.type === "tool.complete" && event.payload.durationMs > milliseconds) yield event.payload.tool;
  }
}
