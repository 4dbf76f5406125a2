// Runs the compiled example. Arguments: the gateway's URL, a token. Prints what was said, a line each.
import { example } from "./sdk/gateway-ts/example.js";

for (const said of await example(process.argv[2], process.argv[3])) console.log(said);
