// An API route: greets who asks.
package main

import "talonplugin"

func reply(_ *talonplugin.Call, asked talonplugin.APIRequest) (interface{}, error) {
	headers := map[string]string{"content-type": "text/plain; charset=utf-8"}
	return talonplugin.APIResponse{Status: 200, Headers: headers, Body: "Hello, " + asked.Subject + "!"}, nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Answers requests.")
	talonplugin.Add(made, "reply", "Greets who asks.", reply, talonplugin.ReadOnly, talonplugin.Roles("api_route"))
	return made
}

func main() { plugin().Serve() }
