// LangChain's adapters for JavaScript.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ARGS, COMMAND, run } from "./checks.mjs";

const received = [];
const client = new MultiServerMCPClient({
  mcpServers: { talon: { transport: "stdio", command: COMMAND, args: ARGS, env: process.env } },
  onProgress: (report) => received.push(report),
});
const tools = new Map((await client.getTools()).map((tool) => [tool.name, tool]));
const call = async (name, signal) => {
  const message = await tools.get(name).invoke({ type: "tool_call", id: "1", name, args: {} }, { signal });
  const blocks = [message.content].flat().flatMap((part) => {
    // A single block that has `_meta` arrives as the block's JSON.
    const text = typeof part === "string" ? part : undefined;
    return text?.startsWith('{"type":') ? JSON.parse(text) : (text === undefined ? part : { type: "text", text });
  });
  const texts = blocks.filter((block) => block.type === "text").map((block) => block.text);
  const kinds = blocks.map((block) => (block.type === "image_url" ? "image" : block.type));
  const structured = message.artifact?.structuredContent ?? message.artifact?.find?.((part) => part.type === "mcp_structured_content")?.data;
  return { text: texts.join("\n"), error: message.status === "error", structured, kinds };
};

await run({
  names: async () => [...tools.keys()],
  call,
  progress: async (name) => {
    await call(name);
    return received;
  },
});
