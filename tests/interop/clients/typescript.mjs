// The official TypeScript SDK, version 1.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ARGS, COMMAND, answer, run } from "./checks.mjs";

const client = new Client({ name: "interop", version: "1" });
await client.connect(new StdioClientTransport({ command: COMMAND, args: ARGS, env: process.env }));
const call = (name, options) => client.callTool({ name, arguments: {} }, undefined, options);

await run({
  names: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: async (name, signal) => answer(await call(name, { signal })),
  progress: async (name) => {
    const received = [];
    await call(name, { onprogress: (report) => received.push(report) });
    return received;
  },
});
