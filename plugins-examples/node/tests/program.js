// A program for serve.test.js.
'use strict';

const { EventSource, Plugin, Output, ToolError } = require('../talon-plugin');

const plugin = new Plugin('program', 'Of the tests.');
plugin.init((config) => {
  for (const key of Object.keys(config)) if (key !== 'word') throw new Error('there is one setting: word');
});
plugin.tool('word', 'Says the configured word.', {}, (_, { config }) => config.word ?? 'none');
plugin.tool('slow', 'Takes its time.', { ms: { type: 'integer' } }, async ({ ms }) => {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return 'done';
});
plugin.tool('steps', 'Tells how far it has come.', { count: { type: 'integer' } }, ({ count }, context) => {
  for (let step = 1; step <= count; step++) context.progress(step, count, `step ${step}`);
});
plugin.tool('prints', 'Puts out a text while it runs.', { text: { type: 'string' } }, ({ text }, context) => context.output(text));
const events = new EventSource();
plugin.events(events);
plugin.tool('tell', 'Tells an event, and waits until the host has it.', { id: { type: 'string' } }, ({ id }) =>
  events.tell({ id, topic: 'told', summary: `event ${id}`, severity: 'warning', fields: { from: 'ada' } }).then(
    () => `${events.waiting} wait`,
    (why) => `refused: ${why.message}`,
  ),
);
plugin.tool('fails', 'Has a defect.', {}, () => {
  throw new TypeError('a secret of mine');
});
plugin.tool('says', 'Repeats a text.', { text: { type: 'string' }, times: { type: 'integer', default: 1 } }, ({ text, times }) => {
  console.log('printed');
  if (!text) throw new ToolError('say what?');
  return new Output(text.repeat(times), { times });
});
plugin.tool('hangs', 'Never ends, whatever happens.', {}, () => new Promise(() => {}));
plugin.serve();
