package talonplugin

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"talonplugin/noticespb"
)

func TestWhatWasNotAcknowledgedIsSentAgainInOrder(t *testing.T) {
	source := NewEventSource()
	for _, id := range []string{"1", "2", "2", "3"} {
		if _, err := source.Tell(SourceEvent{ID: id, Topic: "t", Summary: strings.Repeat("ä", 400)}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(turn, from uint64) string {
		waiting, _, err := source.after(turn, from)
		if err != nil || waiting == nil {
			return ""
		}
		return waiting.event.Id
	}
	first := source.subscribe()
	if next(first, 0) != "1" || next(first, 1) != "2" {
		t.Fatal("the first ones come first")
	}
	second := source.subscribe()
	if next(first, 2) != "" {
		t.Error("another one subscribed")
	}
	known, _ := source.Tell(SourceEvent{ID: "3"})
	refused := []*noticespb.RefusedEvent{{Id: "3", Reason: "bad"}}
	source.acknowledge(&noticespb.AcknowledgeEventsRequest{Ids: []string{"1", "of nothing"}, Refused: refused})
	if next(second, 0) != "2" || next(second, 2) != "" || source.Waiting() != 1 {
		t.Error(next(second, 0), source.Waiting())
	}
	if err := known.Wait(context.Background()); err == nil || !strings.Contains(err.Error(), "bad") {
		t.Error(err)
	}
	if waiting, _, _ := source.after(second, 0); waiting.event.Summary != strings.Repeat("ä", 245) {
		t.Error(waiting.event.Summary)
	}
}

func TestAHostThatTakesNothingFillsABoundedQueue(t *testing.T) {
	few, large := NewEventSource(), NewEventSource()
	for number := 0; number < maxEvents; number++ {
		if _, err := few.Tell(SourceEvent{ID: strconv.Itoa(number)}); err != nil {
			t.Fatal(number, err)
		}
	}
	if _, err := few.Tell(SourceEvent{ID: "one more"}); err == nil {
		t.Error("there is no bound of events")
	}
	told := 0
	for ; told < maxEvents; told++ {
		if _, err := large.Tell(SourceEvent{ID: strconv.Itoa(told), Details: strings.Repeat("x", maxDetailsBytes)}); err != nil {
			break
		}
	}
	if told > maxEventBytes/maxDetailsBytes {
		t.Error(told, "large ones wait")
	}
}
