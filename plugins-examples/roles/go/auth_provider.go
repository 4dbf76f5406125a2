// An auth provider: says whose a token is.
package main

import "talonplugin"

// subjectOf says whose token it is. Look it up here; nobody is let in before.
func subjectOf(token string) (string, bool) { return "", false }

func authenticate(_ *talonplugin.Call, asked talonplugin.AuthRequest) (interface{}, error) {
	subject, known := subjectOf(asked.Credential)
	if !known {
		return talonplugin.Rejected("no such token"), nil
	}
	return talonplugin.Accepted(subject, "user"), nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Says whose tokens are.")
	talonplugin.Add(made, "authenticate", "Says whose a bearer token is.", authenticate, talonplugin.ReadOnly, talonplugin.Roles("auth_provider"))
	return made
}

func main() { plugin().Serve() }
