// A channel: each file in a directory is a message, named after its sender (`ada.1`), and answers go into its log.
//
// Its entry has `config: { dir: /var/lib/chat }`, `sandbox: { fs: { write: [/var/lib/chat] } }` and `events: { per_minute: 600 }`. Write a
// message elsewhere, and move it there: then it is whole.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"talonplugin"
)

// How often the directory is looked at.
const interval = time.Second

type settings struct {
	Dir string `json:"dir"`
}

var (
	events = talonplugin.NewEventSource()
	// What ids of events do not have.
	odd = regexp.MustCompile(`[^A-Za-z0-9.]`)
)

// message is the event of a message. Its id is the same whenever it is told, so that a message is one turn; of another message it is
// another one.
func message(path string) (talonplugin.SourceEvent, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return talonplugin.SourceEvent{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return talonplugin.SourceEvent{}, err
	}
	sender, _, _ := strings.Cut(info.Name(), ".")
	name := odd.ReplaceAllString(info.Name(), "")
	if len(name) > 80 {
		name = name[:80]
	}
	return talonplugin.SourceEvent{
		ID:      fmt.Sprintf("%s/%d", name, info.ModTime().UnixNano()),
		Topic:   "channel.message",
		Summary: "A message of " + sender,
		Details: string(text),
		// An answer goes to the conversation. In a group there is a field `group_id`, too.
		Fields: map[string]string{"conversation": sender, "sender_id": sender, "sender_name": sender},
	}, nil
}

// settle removes a message once the host has it on its disk; one that the host refuses is put aside as `.NAME`.
func settle(path string, told *talonplugin.Settlement) {
	err := told.Wait(context.Background())
	if err == nil {
		err = os.Remove(path)
	} else {
		log.Printf("%s: %v", path, err)
		err = os.Rename(path, filepath.Join(filepath.Dir(path), "."+filepath.Base(path)))
	}
	if err != nil {
		log.Printf("%v", err)
	}
}

// listen tells of each message until the host has it on its disk.
func listen(dir string) {
	// What was told, and is still in the directory.
	told, settled := map[string]bool{}, make(chan string)
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			log.Printf("%s: %v", dir, err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if told[path] || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
				continue
			}
			var receipt *talonplugin.Settlement
			event, err := message(path)
			if err == nil {
				receipt, err = events.Tell(event)
			}
			if err != nil {
				// It waits in the directory; the others are told all the same.
				log.Printf("%s: %v", path, err)
				continue
			}
			told[path] = true
			go func() {
				settle(path, receipt)
				settled <- path
			}()
		}
		for next, isOver := time.After(interval), false; !isOver; {
			select {
			case path := <-settled:
				delete(told, path)
			case <-next:
				isOver = true
			}
		}
	}
}

func talk(_ *talonplugin.Call, asked talonplugin.ChannelRequest) (interface{}, error) {
	switch asked.Op {
	case "fetch":
		return talonplugin.ChannelReply{Delivery: talonplugin.Refused("messages have no files")}, nil
	case "send":
		// The id is the same in every attempt: a service that knows it already drops it.
		log.Printf("to %s: %s (%s)", asked.Conversation, asked.Text, asked.ID)
	}
	// A service that wants a credential gets it with the op "open": it comes with each call.
	return talonplugin.ChannelReply{Delivery: talonplugin.Delivered()}, nil
}

func plugin() *talonplugin.Plugin {
	made := talonplugin.New("hello-go", "People talk to the agent by files.")
	made.Events(events)
	talonplugin.Settings(made, func(config settings) error {
		// Asks the agent to open the channel.
		id := fmt.Sprintf("closed/%d", time.Now().UnixNano())
		_, err := events.Tell(talonplugin.SourceEvent{ID: id, Topic: "channel.closed", Summary: "The channel's plugin has started"})
		if config.Dir != "" {
			go listen(config.Dir)
		}
		return err
	})
	talonplugin.Add(made, "talk", "Writes an answer into the log.", talk, talonplugin.Roles("channel"))
	return made
}

func main() { plugin().Serve() }
