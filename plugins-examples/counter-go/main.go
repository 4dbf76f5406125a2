// Counters kept by the host: a plugin's state in Go.
package main

import (
	"errors"
	"strconv"

	"talonplugin"
)

type which struct {
	Name string `json:"name" help:"Which counter"`
}

func increment(call *talonplugin.Call, args which) (interface{}, error) {
	state, err := call.State()
	if err != nil {
		return nil, err
	}
	// Not Get and Set: another call, or another instance of this plugin, may count in between.
	value, err := state.Update(call, "counter/"+args.Name, func(old []byte) ([]byte, error) {
		count := int64(0)
		if old != nil {
			if count, err = strconv.ParseInt(string(old), 10, 64); err != nil {
				return nil, talonplugin.Refuse("%s does not hold a count", args.Name)
			}
		}
		return strconv.AppendInt(nil, count+1, 10), nil
	})
	if errors.Is(err, talonplugin.ErrUnavailable) {
		return nil, talonplugin.Refuse("the counters are not available for now: try again later")
	}
	return string(value), err
}

func reset(call *talonplugin.Call, args which) (interface{}, error) {
	state, err := call.State()
	if err != nil {
		return nil, err
	}
	return "0", state.Set(call, "counter/"+args.Name, []byte("0"))
}

func main() {
	plugin := talonplugin.New("counter-go", "Counts, and goes on counting after a restart")
	talonplugin.Add(plugin, "increment", "Adds one and gives the count", increment)
	talonplugin.Add(plugin, "reset", "Begins again at zero", reset)
	plugin.Serve()
}
