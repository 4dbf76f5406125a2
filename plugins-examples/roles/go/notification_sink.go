// A notification sink: writes events into its log.
package main

import (
	"log"

	"talonplugin"
)

func send(_ *talonplugin.Call, asked talonplugin.Notification) (interface{}, error) {
	event := asked.Event
	if event.Summary == "" {
		return talonplugin.Refused("the event says nothing"), nil
	}
	// The id is the same in every attempt: a receiver that knows it already drops it.
	log.Printf("%s: %s (%s)", event.Kind, event.Summary, event.ID)
	return talonplugin.Delivered(), nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "Delivers events.")
	talonplugin.Add(made, "send", "Writes an event into the log.", send, talonplugin.Roles("notification_sink"))
	return made
}

func main() { plugin().Serve() }
