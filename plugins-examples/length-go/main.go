// A filter in Go: drops messages that are too long.
package main

import (
	"fmt"
	"unicode/utf8"

	"talonplugin"
)

type settings struct {
	MaxCharacters int `json:"max_characters"`
}

func main() {
	most := 2000
	plugin := talonplugin.New("length-go", "Drops messages that are too long")
	talonplugin.Settings(plugin, func(config settings) error {
		if config.MaxCharacters < 0 {
			return fmt.Errorf("max_characters is %d: give a number of at least 1", config.MaxCharacters)
		}
		if config.MaxCharacters > 0 {
			most = config.MaxCharacters
		}
		return nil
	})
	talonplugin.Add(plugin, "limit", "Drops messages that are too long", func(_ *talonplugin.Call, args talonplugin.HookRequest) (interface{}, error) {
		if length := utf8.RuneCountInString(args.Message); length > most {
			reason := fmt.Sprintf("it has %d characters, and %d are the most", length, most)
			return map[string]string{"verdict": "drop", "reason": reason}, nil
		}
		return map[string]string{"verdict": "pass"}, nil
	}, talonplugin.ReadOnly, talonplugin.Roles("filter"))
	plugin.Serve()
}
