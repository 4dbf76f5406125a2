// What Node programs lean on, each once. Prints one line for what works, and ends with an error at what does not.
"use strict";

const assert = require("node:assert");
const { execFile, execFileSync } = require("node:child_process");
const crypto = require("node:crypto");
const dns = require("node:dns/promises");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const { promisify } = require("node:util");
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");
const zlib = require("node:zlib");

const works = (what) => console.log(`works: ${what}`);

if (!isMainThread) {
  parentPort.postMessage(workerData * workerData);
} else {
  main().then(
    () => console.log("all of it works"),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

function inWorker(number) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: number });
    worker.on("message", resolve);
    worker.on("error", reject);
  });
}

function ask(socketPath) {
  return new Promise((resolve, reject) => {
    const request = http.get({ socketPath, path: "/" }, (response) => {
      let body = "";
      response.on("data", (part) => (body += part));
      response.on("end", () => resolve(body));
    });
    request.on("error", reject);
  });
}

async function main() {
  assert.deepStrictEqual(await Promise.all([1, 2, 3, 4].map(inWorker)), [1, 4, 9, 16]);
  works("worker threads");

  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "node-"));
  const socketPath = path.join(directory, "http.sock");
  const server = http.createServer((_, response) => response.end("hello, socket"));
  await new Promise((resolve) => server.listen(socketPath, resolve));
  assert.strictEqual(await ask(socketPath), "hello, socket");
  server.close();
  works("http over a unix socket");

  const file = path.join(directory, "file");
  await fs.promises.writeFile(file, zlib.gzipSync("x".repeat(100000)));
  assert.strictEqual(zlib.gunzipSync(await fs.promises.readFile(file)).length, 100000);
  works("files, through the thread pool");

  const key = await promisify(crypto.scrypt)("secret", crypto.randomBytes(16), 32);
  assert.strictEqual(key.length, 32);
  crypto.generateKeyPairSync("ed25519");
  works("randomness and keys");

  assert.strictEqual(execFileSync(process.execPath, ["-p", "1 + 1"], { encoding: "utf8" }), "2\n");
  assert.strictEqual((await promisify(execFile)("/bin/echo", ["child"])).stdout, "child\n");
  works("children");

  // (module (func (export "f") (result i32) i32.const 42))
  const wasm = Buffer.from("0061736d010000000105016000017f03020100070501016600000a06010400412a0b", "hex");
  const { instance } = await WebAssembly.instantiate(wasm);
  assert.strictEqual(instance.exports.f(), 42);
  let sum = 0;
  for (let n = 0; n < 5e6; n++) sum = (sum + n * n) % 1000003;
  assert.ok(sum >= 0);
  works("the compilers of JavaScript and WebAssembly");

  assert.ok(os.cpus().length > 0 && os.totalmem() > 0 && new Date().getFullYear() > 2000);
  works("clock, processors, memory");

  await assert.rejects(dns.lookup("example.org"));
  works("nothing of the internet: no name is found, and nothing breaks");
}
