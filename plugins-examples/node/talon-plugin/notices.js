// What waits for hosts that listen: notices, and how many lines of output were left out.
'use strict';

// Notices that wait to be read by the host; what comes while they are full is dropped. Lines of output that are dropped are
// counted, of as many calls.
const MAX_NOTICES = 64;

// The stream of one host.
class Listener {
  #stream;
  // Lines by their call that were left out since its last notice.
  #leftOut = new Map();

  constructor(stream) {
    this.#stream = stream;
    // The call may put out nothing more, or have ended: its count waits for no further line.
    stream.on('drain', () => this.#tellLeftOut());
  }

  #isFull() {
    return this.#stream.writableLength >= MAX_NOTICES;
  }

  // Drops it while the stream is full.
  tell(notice) {
    if (!this.#isFull()) this.#stream.write(notice);
  }

  // Counts the lines while the stream is full. The next notice of the call has the count.
  output(callId, lines) {
    const count = this.#leftOut.get(callId) ?? 0;
    if (!this.#isFull()) {
      this.#leftOut.delete(callId);
      this.#stream.write({ output: { call_id: callId, lines, left_out_lines: count } });
    } else if (count > 0 || this.#leftOut.size < MAX_NOTICES) {
      this.#leftOut.set(callId, count + lines.length);
    }
  }

  #tellLeftOut() {
    for (const [callId, count] of this.#leftOut) this.#stream.write({ output: { call_id: callId, lines: [], left_out_lines: count } });
    this.#leftOut.clear();
  }

  // What waits is still written.
  end() {
    this.#tellLeftOut();
    this.#stream.end();
  }
}

module.exports = { Listener, MAX_NOTICES };
