// A scheduled task: says which run it is.
package main

import "talonplugin"

type task struct {
	Run   talonplugin.Run `json:"run" help:"Which run of which job it is"`
	Count *int            `json:"count" help:"How many things to do"`
}

func run(_ *talonplugin.Call, args task) (interface{}, error) {
	count := 1
	if args.Count != nil {
		count = *args.Count
	}
	return map[string]interface{}{"job": args.Run.Job, "count": count}, nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Runs at planned times.")
	// The job that the plugin would like to have: `talon schedule accept` has it run.
	wanted := talonplugin.ProposedJob{Cron: "30 3 * * *", Timezone: "Europe/Berlin", Arguments: map[string]interface{}{"count": 2}}
	talonplugin.Add(made, "run", "Does what the job is for.", run, talonplugin.Roles("scheduled_task"), talonplugin.Propose(wanted))
	return made
}

func main() { plugin().Serve() }
