// A hook: notes what is urgent.
package main

import (
	"strings"

	"talonplugin"
)

func look(_ *talonplugin.Call, asked talonplugin.HookRequest) (interface{}, error) {
	if strings.Contains(strings.ToLower(asked.Message), "urgent") {
		return map[string]interface{}{"verdict": "annotate", "metadata": map[string]string{"priority": "high"}}, nil
	}
	return map[string]string{"verdict": "pass"}, nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Looks at messages.")
	talonplugin.Add(made, "look", "Notes that a message is urgent.", look, talonplugin.ReadOnly, talonplugin.Roles("request_hook"))
	return made
}

func main() { plugin().Serve() }
