// A channel: each file in a directory is a message, named after its sender (`ada.1`), and answers go into its log.
//
// Its entry has `config: { dir: /var/lib/chat }`, `sandbox: { fs: { write: [/var/lib/chat] } }` and `events: { per_minute: 600 }`. Write a
// message elsewhere, and move it there: then it is whole.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { EventQueueFull, EventSource, Plugin, log, roles } = require('./talon-plugin');

// How often the directory is looked at, in milliseconds.
const INTERVAL = 1000;

const events = new EventSource();
const plugin = new Plugin('hello-node', 'People talk to the agent by files.').events(events);
// What was told, and is still in the directory.
const told = new Set();

plugin.init(({ dir }) => {
  // Asks the agent to open the channel.
  events.tell({ id: `closed/${process.hrtime.bigint()}-${Date.now()}`, topic: 'channel.closed', summary: "The channel's plugin has started" });
  // It keeps no program running.
  if (dir) setInterval(() => listen(dir), INTERVAL).unref();
});

// Tells of a message. Its id is the same whenever it is told, so that a message is one turn; of another message it is another one.
function tell(file) {
  const name = path.basename(file);
  const [sender] = name.split('.');
  const receipt = events.tell({
    id: `${name.replace(/[^A-Za-z0-9.]/g, '').slice(0, 80)}/${Math.trunc(fs.statSync(file).mtimeMs)}`,
    topic: 'channel.message',
    summary: `A message of ${sender}`,
    details: fs.readFileSync(file, 'utf8'),
    // An answer goes to the conversation. In a group there is a field `group_id`, too.
    fields: { conversation: sender, sender_id: sender, sender_name: sender },
  });
  told.add(file);
  settle(file, receipt)
    .catch((error) => log.warn(error.message, { file }))
    .finally(() => told.delete(file));
}

// Removes a message once the host has it on its disk; one that the host refuses is put aside as `.NAME`.
async function settle(file, receipt) {
  try {
    await receipt;
  } catch (refusal) {
    log.warn(refusal.message, { file });
    fs.renameSync(file, path.join(path.dirname(file), `.${path.basename(file)}`));
    return;
  }
  fs.rmSync(file, { force: true });
}

// The messages in the directory, by their names. What begins with a dot is none.
function messages(dir) {
  try {
    return fs.readdirSync(dir).filter((name) => !name.startsWith('.')).sort();
  } catch (error) {
    log.warn(error.message, { dir });
    return [];
  }
}

// Tells of each message until the host has it on its disk.
function listen(dir) {
  for (const name of messages(dir)) {
    const file = path.join(dir, name);
    try {
      if (!told.has(file) && fs.statSync(file).isFile()) tell(file);
    } catch (error) {
      log.warn(error.message, { file });
      // The others wait in the directory. With any other error they are told all the same.
      if (error instanceof EventQueueFull) return;
    }
  }
}

plugin.tool(
  'talk',
  'Writes an answer into the log.',
  roles.channel,
  ({ op, id, conversation, text }) => {
    if (op === 'fetch') return { status: 'refused', reason: 'messages have no files' };
    // A service that wants a credential gets it with the op "open": it comes with each call.
    // The id is the same in every attempt: a service that knows it already drops it.
    if (op === 'send') log.warn(text, { id, to: conversation });
    return { status: 'delivered' };
  },
  { roles: ['channel'] },
);

module.exports = plugin;
if (require.main === module) plugin.serve();
