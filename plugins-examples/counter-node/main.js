// Counters kept by the host: a plugin's state in Node.
'use strict';

const { Plugin, ToolError, Unavailable } = require('./talon-plugin');

const plugin = new Plugin('counter-node', 'Counts, and goes on counting after a restart');
const parameters = { name: { type: 'string', description: 'Which counter' } };

plugin.tool('increment', 'Adds one and gives the count', parameters, async ({ name }, { state }) => {
  // Not get and set: another call, or another instance of this plugin, may count in between.
  const change = (old) => {
    const count = Number(old ?? 0) + 1;
    if (!Number.isSafeInteger(count)) throw new ToolError(`${name} does not hold a count`);
    return String(count);
  };
  try {
    return String(await state.update(`counter/${name}`, change));
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    throw new ToolError('the counters are not available for now: try again later');
  }
});

plugin.tool('reset', 'Begins again at zero', parameters, async ({ name }, { state }) => {
  await state.set(`counter/${name}`, '0');
  return '0';
});

plugin.serve();
