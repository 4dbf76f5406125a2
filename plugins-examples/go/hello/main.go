// The smallest plugin in Go: one tool that greets.
package main

import (
	"strings"

	"talonplugin"
)

type greetArgs struct {
	Name string `json:"name" help:"Whom to greet."`
}

func greet(_ *talonplugin.Call, args greetArgs) (interface{}, error) {
	if strings.TrimSpace(args.Name) == "" {
		return nil, talonplugin.Refuse("greet whom? give a name")
	}
	return "Hello, " + args.Name + "!", nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Greets people.")
	talonplugin.Add(made, "greet", "Greets somebody by name.", greet, talonplugin.ReadOnly)
	return made
}

func main() { plugin().Serve() }
