// Events that a plugin tells: what happens elsewhere, such as a mail that came.
'use strict';

const { EventQueueFull, EventRefused } = require('./errors');

// How many events wait for the host, and how many bytes: some hours of what hosts let a plugin tell by default.
const MAX_EVENTS = 4096;
const MAX_BYTES = 4 << 20;
// What hosts keep of each text.
const MAX_SUMMARY_BYTES = 490;
const MAX_DETAILS_BYTES = 16 << 10;
const MAX_FIELD_BYTES = 512;

// Each event is kept in memory and sent again until the host has it on its disk, so a host that restarts loses none.
class EventSource {
  // By ids, in the order in which they were told.
  #waiting = new Map();
  #next = 0;
  #bytes = 0;
  #subscriber;

  tell({ id, topic, summary, details = '', severity = 'info', fields = {} }) {
    const known = this.#waiting.get(id);
    if (known) return known.settled;
    const event = {
      id,
      topic,
      severity,
      summary: cut(summary, MAX_SUMMARY_BYTES),
      details: cut(details, MAX_DETAILS_BYTES),
      fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, cut(String(value), MAX_FIELD_BYTES)])),
      time_unix_ms: Date.now(),
    };
    const texts = [id, topic, event.summary, event.details, ...Object.entries(event.fields).flat()];
    const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    if (this.#waiting.size >= MAX_EVENTS || this.#bytes + size > MAX_BYTES) {
      throw new EventQueueFull(`${this.#waiting.size} events wait for the host: tell this one again later`);
    }
    const waiting = { place: this.#next++, event, size };
    waiting.settled = new Promise((resolve, reject) => Object.assign(waiting, { resolve, reject }));
    // Nobody has to wait for it.
    waiting.settled.catch(() => {});
    this.#waiting.set(id, waiting);
    this.#bytes += size;
    this.#send();
    return waiting.settled;
  }

  get waiting() {
    return this.#waiting.size;
  }

  // What was not acknowledged goes first, the oldest first. An earlier subscriber ends.
  _subscribe(stream) {
    this._stop();
    const own = { stream, after: -1 };
    this.#subscriber = own;
    const over = () => {
      if (this.#subscriber === own) this._stop();
    };
    stream.on('drain', () => this.#send()).on('cancelled', over);
    this.#send();
  }

  _stop() {
    this.#subscriber?.stream.end();
    this.#subscriber = undefined;
  }

  _acknowledge({ ids, refused }) {
    for (const id of ids) this.#settle(id)?.resolve();
    for (const { id, reason } of refused) this.#settle(id)?.reject(new EventRefused(reason));
  }

  #settle(id) {
    const waiting = this.#waiting.get(id);
    if (this.#waiting.delete(id)) this.#bytes -= waiting.size;
    return waiting;
  }

  // No faster than the host reads.
  #send() {
    const to = this.#subscriber;
    if (!to) return;
    for (const { place, event } of this.#waiting.values()) {
      if (place <= to.after) continue;
      if (to.stream.writableNeedDrain) return;
      to.after = place;
      to.stream.write(event);
    }
  }
}

// In whole characters.
function cut(text, most) {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return bytes.toString();
  let end = most;
  while ((bytes[end] & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

module.exports = { EventSource };
