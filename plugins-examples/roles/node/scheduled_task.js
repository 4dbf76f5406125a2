// A scheduled task: says which run it is.
'use strict';

const { Plugin, roles } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Runs at planned times.');

plugin.tool(
  'run',
  'Does what the job is for.',
  { ...roles.scheduled_task, count: { type: 'integer', description: 'How many things to do.', default: 1 } },
  ({ run, count }) => ({ job: run.job, count }),
  {
    roles: ['scheduled_task'],
    // The job that the plugin would like to have: `talon schedule accept` has it run.
    proposedJobs: [{ cron: '30 3 * * *', timezone: 'Europe/Berlin', arguments: { count: 2 } }],
  },
);

module.exports = plugin;
if (require.main === module) plugin.serve();
