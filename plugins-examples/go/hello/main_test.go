package main

import (
	"testing"

	"talonplugin"
	"talonplugin/plugintest"
)

// Started by a host, the test's program is the plugin.
func TestMain(m *testing.M) { plugintest.Main(m, main) }

func TestItAsksForAName(t *testing.T) {
	answer := plugin().Call(talonplugin.NewCall(map[string]string{"name": " "}), "greet")
	if answer.Error != "greet whom? give a name" {
		t.Fatal(answer)
	}
}

func TestTheProgramAnswersAndEnds(t *testing.T) {
	host := plugintest.Start(t, "{}")
	if answer := host.Call("greet", map[string]string{"name": "Ada"}); answer.Content != "Hello, Ada!" {
		t.Fatal(answer)
	}
	if answer := host.Call("greet", nil); answer.Error != `argument "name" is missing` {
		t.Fatal(answer)
	}
	host.Stop()
}
