// What the types of sdk/gateway-ts have to refuse: the compiler fails if one of these lines compiles.

import { GatewayClient } from "../../sdk/gateway-ts/client.js";
import type { BusEnvelope, CompletionEvent, ResponseStreamEvent } from "../../sdk/gateway-ts/types.js";

const gateway = new GatewayClient("http://127.0.0.1:19789");

// @ts-expect-error There is no such route.
void gateway.call("GET /v1/nothing");
// @ts-expect-error Its path has an id.
void gateway.call("GET /api/sessions/{id}");
// @ts-expect-error Its path has no name.
void gateway.call("GET /api/sessions/{id}", { path: { name: "s" } });
// @ts-expect-error Its path has nothing to fill in.
void gateway.call("GET /api/sessions", { path: { id: "s" } });
// @ts-expect-error The body is missing.
void gateway.call("POST /v1/embeddings");
// @ts-expect-error It takes no body.
void gateway.call("GET /v1/models", { body: {} });
// @ts-expect-error A word that thinkingLevel has not.
void gateway.call("PATCH /api/sessions/{id}", { path: { id: "s" }, body: { thinkingLevel: "endless" } });
// @ts-expect-error The messages are missing.
void gateway.call("POST /v1/chat/completions", { body: { model: "talon" } });
// @ts-expect-error A field that is not honoured.
void gateway.call("POST /v1/embeddings", { body: { model: "talon", input: "a", truncate: true } });
// @ts-expect-error It has no events.
void gateway.events("GET /v1/models");

export function read(chunk: CompletionEvent, event: ResponseStreamEvent, bus: BusEnvelope): unknown[] {
  // @ts-expect-error An event may be an error.
  const content: unknown = chunk.choices;
  // @ts-expect-error Not every event has a delta.
  const delta: unknown = event.delta;
  // @ts-expect-error There is no such event.
  const isStarted = bus.type === "message.started";
  return [content, delta, isStarted];
}
