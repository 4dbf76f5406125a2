'use strict';

// The tool says no: an ordinary answer, whose text goes to the caller. Say what would work.
class ToolError extends Error {}

// The state cannot be used. A tool that lets one of these through answers with its text.
class StateError extends ToolError {}

class NotServed extends StateError {}

// Not available now, or out of space. Whether a change was made is unknown: check first.
class Unavailable extends StateError {}

// A key or value that cannot be.
class Invalid extends StateError {}

// Others were faster too often in a row. Spread the value over several keys.
class Contended extends StateError {}

// The plugin's quota is used up. Reading, deleting and shrinking still work.
class QuotaExceeded extends StateError {
  constructor({ resource, used, limit, wanted }) {
    super(`there is no room for more: ${wanted} ${resource} would be kept, ${limit} may be`);
    Object.assign(this, { resource, used: Number(used), limit: Number(limit), wanted: Number(wanted) });
  }
}

// Too many events wait for the host. Tell this one again later.
class EventQueueFull extends ToolError {}

// The host never takes the event; the text is its reason.
class EventRefused extends ToolError {}

// There is no completion. `reason` is not_granted, invalid, unknown_model, no_call, too_many_calls, over_budget, busy, no_model,
// timed_out, cancelled or unavailable.
class ModelError extends ToolError {
  constructor(reason, text) {
    super(text);
    this.reason = reason;
  }
}

module.exports = { ToolError, ModelError, StateError, NotServed, Unavailable, Invalid, Contended, QuotaExceeded, EventQueueFull, EventRefused };
