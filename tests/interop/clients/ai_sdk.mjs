// The client of Vercel's AI SDK: tools for a model.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Transport } from "@ai-sdk/mcp/mcp-stdio";
import { ARGS, COMMAND, answer, run } from "./checks.mjs";

const client = await createMCPClient({ transport: new Transport({ command: COMMAND, args: ARGS, env: process.env }) });
const tools = await client.tools();

await run({
  names: async () => Object.keys(tools),
  call: async (name, abortSignal) => answer(await tools[name].execute({}, { abortSignal, messages: [], toolCallId: "1" })),
});
