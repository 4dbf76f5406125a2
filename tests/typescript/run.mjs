// Runs the compiled example. Arguments: the gateway's URL, a token. Prints what was said, a line each.
import assert from "node:assert/strict";

import { GatewayClient } from "./sdk/gateway-ts/client.js";
import { example } from "./sdk/gateway-ts/example.js";

for (const said of await example(process.argv[2], process.argv[3])) console.log(said);

// What types cannot refuse. Nothing of it reaches the gateway.
globalThis.fetch = async () => Response.json({});
const gateway = new GatewayClient(process.argv[2], process.argv[3]);
for (const id of ["", "..", undefined]) {
  await assert.rejects(gateway.call("GET /api/sessions/{id}", { path: { id } }), TypeError);
}
const body = { model: "talon", messages: [] };
await assert.rejects(gateway.events("POST /v1/chat/completions", { body }).next(), /stream: true/);
