// Fetches a URL with a library, as its documentation begins.   client.mjs LIBRARY MODULES URL
import { createRequire } from "node:module";
import http from "node:http";
import https from "node:https";

const [library, modules, url] = process.argv.slice(2);
const require = createRequire(modules + "/");

if (library === "fetch") {
  console.log(await (await fetch(url)).text());
} else if (library === "node:https") {
  const { get } = url.startsWith("https:") ? https : http;
  get(url, (response) => response.pipe(process.stdout)).on("error", (error) => {
    console.error(error);
    process.exitCode = 1;
  });
} else if (library === "undici") {
  const { request } = require("undici");
  console.log(await (await request(url)).body.text());
} else if (library === "undici-env") {
  const { request, EnvHttpProxyAgent } = require("undici");
  console.log(await (await request(url, { dispatcher: new EnvHttpProxyAgent() })).body.text());
} else {
  const axios = require("axios");
  console.log((await axios.get(url)).data);
}
