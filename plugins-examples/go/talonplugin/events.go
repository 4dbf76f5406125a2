package talonplugin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"talonplugin/noticespb"
)

// How many events wait for the host, and how many bytes: some hours of what hosts let a plugin tell by default.
const (
	maxEvents     = 4096
	maxEventBytes = 4 << 20
)

// What hosts keep of each text.
const (
	maxSummaryBytes = 490
	maxDetailsBytes = 16 << 10
	maxFieldBytes   = 512
)

// A SourceEvent is something that happened elsewhere, such as a mail that came.
type SourceEvent struct {
	// ID is 1 to 128 letters, digits and -_.:/, another one for each event: the host drops one that it has.
	ID string
	// Topic is 1 to 64 of a-z, 0-9 and -_.; the plugin's word for what it is about.
	Topic string
	// Severity is info, warning or critical; empty is info.
	Severity string
	// Summary is one line.
	Summary string
	Details string
	// Fields are at most 16; a name is 1 to 32 of a-z, 0-9 and _.
	Fields map[string]string
}

// An EventSource tells the host events. Each is kept in memory and sent again until the host has it on its disk, so a host that
// restarts loses none. A plugin that must not lose events over its own end keeps them itself, and tells those again with the same
// ID that were not acknowledged. The operator has to let the plugin tell events (`events` in its entry).
type EventSource struct {
	mutex   sync.Mutex
	waiting map[string]*waitingEvent
	order   []*waitingEvent
	next    uint64
	bytes   int
	// Closed when there is something new, and then another one.
	news chan struct{}
	// Counts the subscribers: the latest one gets the events.
	turn uint64
}

type waitingEvent struct {
	place   uint64
	event   *noticespb.PluginEvent
	settled *Settlement
}

// A Settlement is what became of an event.
type Settlement struct {
	done   chan struct{}
	reason string
}

// Wait waits until the host has the event on its disk. A Refusal: the host never takes it.
func (s *Settlement) Wait(ctx context.Context) error {
	select {
	case <-s.done:
		if s.reason != "" {
			return Refuse("the host refuses the event: %s", s.reason)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewEventSource makes a source without events. Give it to Plugin.Events.
func NewEventSource() *EventSource {
	return &EventSource{waiting: map[string]*waitingEvent{}, news: make(chan struct{})}
}

// Events lets the source tell the host what happens elsewhere. It is called before Serve.
func (p *Plugin) Events(source *EventSource) { p.events = source }

// Tell tells an event; it never waits. One whose ID waits already is the same event. An error: the host does not take so many.
func (s *EventSource) Tell(event SourceEvent) (*Settlement, error) {
	told := event.message()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known := s.waiting[event.ID]; known != nil {
		return known.settled, nil
	}
	size := proto.Size(told)
	if len(s.order) >= maxEvents || s.bytes+size > maxEventBytes {
		return nil, Refuse("%d events wait for the host: tell this one again later", len(s.order))
	}
	waiting := &waitingEvent{s.next, told, &Settlement{done: make(chan struct{})}}
	s.next++
	s.bytes += size
	s.waiting[event.ID] = waiting
	s.order = append(s.order, waiting)
	s.wake()
	return waiting.settled, nil
}

// Waiting is how many events the host has not acknowledged.
func (s *EventSource) Waiting() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.order)
}

func (e SourceEvent) message() *noticespb.PluginEvent {
	text := func(text string, most int) string { return cutText(strings.ToValidUTF8(text, "\uFFFD"), most) }
	told := &noticespb.PluginEvent{
		Id: text(e.ID, maxFieldBytes), Topic: text(e.Topic, maxFieldBytes), Severity: text(e.Severity, maxFieldBytes),
		Summary: text(e.Summary, maxSummaryBytes), Details: text(e.Details, maxDetailsBytes),
		Fields: map[string]string{}, TimeUnixMs: time.Now().UnixMilli(),
	}
	for name, value := range e.Fields {
		told.Fields[text(name, maxFieldBytes)] = text(value, maxFieldBytes)
	}
	return told
}

func (s *EventSource) wake() {
	close(s.news)
	s.news = make(chan struct{})
}

func (s *EventSource) subscribe() uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.turn++
	s.wake()
	return s.turn
}

// after is the first event from a place on, or what to wait for; an error when another one subscribed.
func (s *EventSource) after(turn, from uint64) (*waitingEvent, chan struct{}, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.turn != turn {
		return nil, nil, status.Error(codes.Aborted, "another host subscribed")
	}
	for _, waiting := range s.order {
		if waiting.place >= from {
			return waiting, nil, nil
		}
	}
	return nil, s.news, nil
}

func (s *EventSource) acknowledge(request *noticespb.AcknowledgeEventsRequest) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, id := range request.Ids {
		s.settle(id, "")
	}
	for _, refused := range request.Refused {
		reason := refused.Reason
		if reason == "" {
			reason = "it says no why"
		}
		s.settle(refused.Id, reason)
	}
	left := s.order[:0]
	for _, waiting := range s.order {
		if s.waiting[waiting.event.Id] == waiting {
			left = append(left, waiting)
		}
	}
	s.order = left
}

func (s *EventSource) settle(id, reason string) {
	waiting := s.waiting[id]
	if waiting == nil {
		return
	}
	delete(s.waiting, id)
	s.bytes -= proto.Size(waiting.event)
	waiting.settled.reason = reason
	close(waiting.settled.done)
}

// eventServer serves a source.
type eventServer struct {
	noticespb.UnimplementedEventSourceServer
	source *EventSource
}

// Subscribe sends what was not acknowledged, the oldest first, then what is told.
func (s *eventServer) Subscribe(_ *noticespb.SubscribeEventsRequest, stream noticespb.EventSource_SubscribeServer) error {
	turn, from := s.source.subscribe(), uint64(0)
	for {
		waiting, news, err := s.source.after(turn, from)
		if err != nil {
			return err
		}
		if waiting != nil {
			from = waiting.place + 1
			if err := stream.Send(waiting.event); err != nil {
				return fmt.Errorf("the host is gone: %w", err)
			}
			continue
		}
		select {
		case <-news:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// Acknowledge takes events out of the queue.
func (s *eventServer) Acknowledge(_ context.Context, request *noticespb.AcknowledgeEventsRequest) (*noticespb.AcknowledgeEventsResponse, error) {
	s.source.acknowledge(request)
	return &noticespb.AcknowledgeEventsResponse{}, nil
}

// cutText cuts in whole characters.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
