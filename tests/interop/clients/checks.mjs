// What the clients' programs in JavaScript share: each check ends as one line of JSON.
//   PROGRAM COMMAND ARGS…        the command of `talon mcp`
import { execFile } from "node:child_process";
import { promisify } from "node:util";

export const [COMMAND, ...ARGS] = process.argv.slice(2);
const [SIMPLE, ERROR, PROGRESS] = ["kit__test_simple_text", "kit__test_error_handling", "kit__test_tool_with_progress"];
const [PROMISED, SLOW, IMAGE] = ["kit__promised", "kit__slow", "everything__get-tiny-image"];

/** Reports what a step says: true, or what came instead. An exception is a failure with its text. */
async function attempt(check, step) {
  const report = (ok, note) => console.log(JSON.stringify({ check, ok, note: String(note).slice(0, 600) }));
  try {
    const said = await step();
    report(said === true, said === true ? "" : said);
  } catch (error) {
    report(false, error);
  }
}

/** Whether that many calls of the plugin run before a third of the call's own timeout is over. */
async function untilInFlight(wanted) {
  const end = Date.now() + 10_000;
  while (Date.now() < end) {
    const words = [...ARGS.slice(0, -1), "plugin", "show", "kit", "--output", "json"];
    const { stdout } = await promisify(execFile)(COMMAND, words);
    if (JSON.parse(stdout).plugin.calls_in_flight === wanted) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

/** What a client made of a `CallToolResult`. */
export function answer({ content = [], isError = false, structuredContent }) {
  const texts = content.filter((block) => block.type === "text").map((block) => block.text);
  return { text: texts.join("\n"), error: isError, structured: structuredContent, kinds: content.map((block) => block.type) };
}

/** All checks: `names()` lists the tools, `call(name, signal)` is an answer, `progress(name)` the reports of a call. */
export async function run({ names, call, progress }) {
  await attempt("list", async () => {
    const found = await names();
    return (found.includes(SIMPLE) && found.includes(IMAGE)) || found;
  });
  await attempt("call", async () => {
    const { text } = await call(SIMPLE);
    return text.startsWith("[plugin_output]") || text;
  });
  await attempt("error", async () => {
    try {
      const { error, text } = await call(ERROR);
      return (error && text.includes("intentionally")) || `no error: ${text}`;
    } catch (error) {
      return String(error).includes("intentionally") || `another error: ${error}`;
    }
  });
  await attempt("progress", async () => {
    if (!progress) return "the client has no way to receive it";
    return (await progress(PROGRESS)).length > 0 || "no report";
  });
  await attempt("structured", async () => {
    const { structured } = await call(PROMISED);
    return structured?.sum === 3 || JSON.stringify(structured);
  });
  await attempt("image", async () => {
    const { kinds } = await call(IMAGE);
    return kinds.includes("image") || kinds;
  });
  await attempt("cancel", async () => {
    const giveUp = new AbortController();
    const ended = call(SLOW, giveUp.signal).catch(() => {});
    if (!(await untilInFlight(1))) return "the call never ran";
    giveUp.abort();
    return (await untilInFlight(0)) || "the call runs on: no cancellation was sent";
  });
  process.exit(0);
}
