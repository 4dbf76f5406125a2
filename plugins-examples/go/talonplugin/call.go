package talonplugin

import (
	"context"
	"strings"

	"talonplugin/noticespb"
)

// A Call is one call of a tool. It is a context.Context, too: done when the caller gave up or the deadline is past.
type Call struct {
	context.Context
	// ID is the host's name for this call.
	ID string
	// Injected holds values of the caller's session that the tool asked for and the operator granted.
	Injected map[string]string
	// Credentials are the headers that the operator configured, by name.
	Credentials map[string]Credential

	args   map[string]string
	typed  string
	plugin *Plugin
	tell   func(*noticespb.Notice)
	output func(callID string, lines []string)
}

// A Credential is a header of a request to elsewhere.
type Credential struct{ Header, Value string }

// NewCall makes a call for tests, with its arguments as they travel: texts as they are, everything else as JSON.
func NewCall(args map[string]string) *Call {
	return &Call{Context: context.Background(), ID: "call", args: args}
}

// NewTypedCall makes a call for tests, with its arguments as JSON: how Talon sends them, beside the texts.
func NewTypedCall(arguments string) *Call {
	return &Call{Context: context.Background(), ID: "call", typed: arguments}
}

// Progress reports how far the call has come; a total of 0 means unknown. It never waits and never fails, and is dropped when
// no host listens.
func (c *Call) Progress(progress, total float64, message string) {
	if c.tell == nil {
		return
	}
	news := &noticespb.Progress{CallId: c.ID, Progress: progress, Message: strings.ToValidUTF8(message, "\uFFFD")}
	if total > 0 {
		news.Total = &total
	}
	c.tell(&noticespb.Notice{Kind: &noticespb.Notice_Progress{Progress: news}})
}

// Output shows people lines that the call puts out while it runs; models see its answer alone. It never waits and never fails,
// is dropped when no host listens, and lines are left out when there are more than the host takes.
func (c *Call) Output(text string) {
	if c.output == nil {
		return
	}
	for _, lines := range batches(text) {
		c.output(c.ID, lines)
	}
}

// State is the plugin's own key-values; an error where the host keeps none.
func (c *Call) State() (*State, error) {
	if c.plugin == nil || c.plugin.state == nil {
		return nil, ErrNotServed
	}
	return c.plugin.state, nil
}

// takeInjected sets apart what the host put in: it is no argument of the tool.
func (c *Call) takeInjected(names []string) {
	c.Injected = map[string]string{}
	for _, name := range names {
		if text, given := c.args[name]; given {
			c.Injected[name] = text
			delete(c.args, name)
		}
	}
}
