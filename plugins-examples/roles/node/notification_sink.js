// A notification sink: writes events into its log.
'use strict';

const { Plugin, log, roles } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Delivers events.');

plugin.tool(
  'send',
  'Writes an event into the log.',
  roles.notification_sink,
  ({ event }) => {
    if (!event.summary) return { status: 'refused', reason: 'the event says nothing' };
    // The id is the same in every attempt: a receiver that knows it already drops it.
    log.warn(event.summary, { id: event.id, kind: event.kind });
    return { status: 'delivered' };
  },
  { roles: ['notification_sink'] },
);

module.exports = plugin;
if (require.main === module) plugin.serve();
