// Package talonplugin makes tool plugins for Talon out of Go functions, on top of HashiCorp's go-plugin.
//
//	plugin := talonplugin.New("hello", "Greets people.")
//	talonplugin.Add(plugin, "greet", "Greets somebody by name.", greet, talonplugin.ReadOnly)
//	plugin.Serve()
//
// The rest is done: handshake, gRPC, arguments, health, the log, the end. docs/write-a-plugin.md tells the whole of it.
package talonplugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"talonplugin/pluginpb"
)

// How much of data alone is repeated as text for readers who see no data, in bytes of JSON.
const digestBytes = 512

var actionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// A Plugin is a name, a description, and tools.
type Plugin struct {
	name, description string
	tools             map[string]*tool
	order             []string
	init              func(json.RawMessage) error
	state             *State
	model             *Model
	events            *EventSource
}

type tool struct {
	declared *pluginpb.Action
	run      func(*Call) (interface{}, error)
}

// Output is an answer: text, and data beside it that a program can read.
type Output struct {
	Content    string
	Structured interface{}
}

// A Refusal is a tool that says no: an ordinary answer, whose text goes to the caller. The text of every other error is for
// the log alone.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

// Refuse makes a Refusal. Say what would work.
func Refuse(format string, values ...interface{}) error {
	return &Refusal{fmt.Sprintf(format, values...)}
}

// An Option is something more about a tool.
type Option func(*pluginpb.Action)

// ReadOnly says that the tool changes nothing.
func ReadOnly(action *pluginpb.Action) { action.ReadOnly = true }

// UserOnly keeps the tool from models.
func UserOnly(action *pluginpb.Action) { action.UserOnly = true }

// Destructive says that the tool may destroy what is there.
func Destructive(action *pluginpb.Action) { yes := true; action.Destructive = &yes }

// Inject asks for values of the caller's session; the operator decides which come (Call.Injected).
func Inject(names ...string) Option {
	return func(action *pluginpb.Action) { action.InjectContextArgs = names }
}

// Roles names roles that the action would like to play, such as "request_hook"; an operator's entry under extensions makes it
// so. An action with roles is no tool and hidden from models, unless "tool" is one of them.
func Roles(names ...string) Option {
	return func(action *pluginpb.Action) { action.Roles = names }
}

// A ProposedJob is a job that an action would like to have, in the role scheduled_task: Cron or Every says when it runs, and Arguments
// are those beside run. Its id is the plugin's configured name, a dot, and Name, by default the action's.
type ProposedJob struct {
	Name      string
	Cron      string
	Every     string
	Timezone  string
	Arguments map[string]interface{}
}

// Propose proposes jobs that call the action. Nothing runs before the operator accepts one. Arguments that are no JSON panic when
// the program starts.
func Propose(jobs ...ProposedJob) Option {
	return func(action *pluginpb.Action) {
		for _, job := range jobs {
			arguments := ""
			if len(job.Arguments) > 0 {
				encoded, err := json.Marshal(job.Arguments)
				if err != nil {
					panic(fmt.Sprintf("the arguments of a job of %q: %v", action.Name, err))
				}
				arguments = string(encoded)
			}
			action.ProposedJobs = append(action.ProposedJobs, &pluginpb.JobProposal{
				Name: job.Name, Cron: job.Cron, Every: job.Every, Timezone: job.Timezone, ArgumentsJson: arguments,
			})
		}
	}
}

// New makes a plugin without tools.
func New(name, description string) *Plugin {
	return &Plugin{name: name, description: description, tools: map[string]*tool{}}
}

// Add makes a tool of a function. The fields of A become its parameters: `json` names one, `help` describes it, `enum`
// lists its choices, `schema` adds keywords of JSON Schema; a pointer, or `omitempty`, may be left out. A field of type
// interface{} or json.RawMessage takes a value of any type: where the host sends types, "7" is a string there and 7 a
// json.Number. A mistake in the
// declaration panics when the program starts.
func Add[A any](p *Plugin, name, description string, run func(*Call, A) (interface{}, error), options ...Option) {
	if !actionName.MatchString(name) {
		panic(fmt.Sprintf("%q is no name of an action: use 1 to 64 of a-z, A-Z, 0-9, _ and -", name))
	}
	if p.tools[name] != nil {
		panic(fmt.Sprintf("there are two tools of the name %q", name))
	}
	fields := parameters(reflect.TypeOf((*A)(nil)).Elem(), name)
	action := &pluginpb.Action{Name: name, Description: description}
	for _, field := range fields {
		action.Parameters = append(action.Parameters, field.declared)
	}
	for _, option := range options {
		option(action)
	}
	// Jobs call it in this role.
	if len(action.ProposedJobs) > 0 && !contains(action.Roles, "scheduled_task") {
		action.Roles = append(action.Roles, "scheduled_task")
	}
	p.order = append(p.order, name)
	p.tools[name] = &tool{declared: action, run: func(call *Call) (interface{}, error) {
		var args A
		typed, err := typedArguments(call.typed)
		if err != nil {
			return nil, err
		}
		into := reflect.ValueOf(&args).Elem()
		if typed == nil {
			err = read(fields, name, call.args, into)
		} else {
			for _, injected := range action.InjectContextArgs {
				delete(typed, injected)
			}
			err = readTyped(fields, name, typed, into)
		}
		if err != nil {
			return nil, err
		}
		return run(call, args)
	}}
}

// Settings makes a function the reader of the settings. An error of it refuses them, and the operator reads its text.
// Without one, a plugin takes no settings.
func Settings[C any](p *Plugin, take func(C) error) {
	p.init = func(text json.RawMessage) error {
		var config C
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&config); err != nil {
			return fmt.Errorf("config: %w", err)
		}
		return take(config)
	}
}

// Configure gives the plugin its settings, a JSON object.
func (p *Plugin) Configure(config string) error {
	if config == "" {
		config = "{}"
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(config), &keys); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if p.init != nil {
		return p.init(json.RawMessage(config))
	}
	if len(keys) > 0 {
		names := make([]string, 0, len(keys))
		for name := range keys {
			names = append(names, name)
		}
		sort.Strings(names)
		return fmt.Errorf("this plugin takes no config; remove %s", strings.Join(names, ", "))
	}
	return nil
}

// Capabilities returns the declaration for hosts.
func (p *Plugin) Capabilities() *pluginpb.PluginCapabilities {
	told := &pluginpb.PluginCapabilities{Name: p.name, Description: p.description}
	for _, name := range p.order {
		told.Actions = append(told.Actions, p.tools[name].declared)
	}
	return told
}

// Call calls a tool as a host does, and gives the answer that goes over the wire. Tests use it without a host.
func (p *Plugin) Call(call *Call, action string) *pluginpb.ToolResultResponse {
	called := p.tools[action]
	if called == nil {
		return refusal(call, Refuse("no action %q; there are %s", cut(action, shownBytes), strings.Join(p.order, ", ")), action)
	}
	call.takeInjected(called.declared.InjectContextArgs)
	result, err := run(called, call)
	if err != nil {
		return refusal(call, err, action)
	}
	answer := &pluginpb.ToolResultResponse{CallId: call.ID}
	switch result := result.(type) {
	case nil:
	case string:
		answer.Content = result
	case Output:
		answer.Content = result.Content
		if result.Structured != nil {
			answer.StructuredContent, err = toJSON(result.Structured)
		}
	default:
		answer.StructuredContent, err = toJSON(result)
		answer.Content = digest(answer.StructuredContent)
	}
	if err != nil {
		return refusal(call, err, action)
	}
	answer.Content = strings.ToValidUTF8(answer.Content, "\uFFFD")
	return answer
}

// run ends a panic with its call, not with the plugin.
func run(called *tool, call *Call) (result interface{}, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	return called.run(call)
}

func refusal(call *Call, err error, action string) *pluginpb.ToolResultResponse {
	var refused *Refusal
	text := action + " failed; the plugin's log says why"
	if errors.As(err, &refused) {
		text = refused.text
	} else {
		Log.Error("a tool failed", "action", action, "error", err)
	}
	return &pluginpb.ToolResultResponse{CallId: call.ID, Error: strings.ToValidUTF8(text, "\uFFFD")}
}

// toJSON is encoding/json without its escapes for HTML, which a model would have to read.
func toJSON(value interface{}) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func digest(text string) string {
	if len(text) <= digestBytes {
		return text
	}
	return fmt.Sprintf("data, %d bytes of JSON in the structured content", len(text))
}
