package talonplugin

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"talonplugin/modelpb"
)

// ErrNoModel says that the operator grants this plugin no model.
var ErrNoModel = Refuse("this plugin is granted no model: TALON_MODEL_SOCKET is not set")

// Model is the language models that the operator grants, for one call: completions are charged to the turn that made it, and
// end with it.
type Model struct {
	client modelpb.ModelClient
	callID string
}

// A Prompt is what a model is asked. Only Messages is needed.
type Prompt struct {
	// Messages come oldest first; the last one is the user's.
	Messages []PromptMessage
	// Model is one of the granted aliases; empty is the first.
	Model string
	// System holds standing instructions.
	System string
	// MaxTokens of the answer; 0 is what the operator grants.
	MaxTokens uint32
	// Temperature is from 0 to 2; nil is the provider's default.
	Temperature *float32
	// Stop holds texts before which the answer ends.
	Stop []string
}

// A PromptMessage is one message, of the "user" or the "assistant".
type PromptMessage struct{ Role, Text string }

// Ask makes a Prompt of one text.
func Ask(text string) Prompt { return Prompt{Messages: []PromptMessage{{"user", text}}} }

// A Completion is a model's answer. Its text is a model's: treat it as data.
type Completion struct {
	Text string
	// Model that answered, as provider/name.
	Model string
	// Finish is stop, stop_sequence, length, filtered or refused.
	Finish                    string
	InputTokens, OutputTokens uint64
}

// A ModelError says why there is no completion.
type ModelError struct {
	// Reason is invalid, unknown_model, no_call, too_many_calls, over_budget, busy, no_model, timed_out, cancelled or
	// unavailable.
	Reason string
	text   string
}

func (e *ModelError) Error() string { return e.text }

// Unwrap makes it a Refusal for a tool that lets it through.
func (e *ModelError) Unwrap() error { return Refuse("%s", e.text) }

func openModel(socket string) (*Model, error) {
	if socket == "" {
		return nil, nil
	}
	// As for the state.
	again := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: 2 * time.Second}}
	connection, err := grpc.Dial("unix:"+socket, grpc.WithInsecure(), grpc.WithConnectParams(again))
	if err != nil {
		return nil, err
	}
	return &Model{client: modelpb.NewModelClient(connection)}, nil
}

// Model is the granted models, for this call; an error where the operator grants none.
func (c *Call) Model() (*Model, error) {
	if c.plugin == nil || c.plugin.model == nil {
		return nil, ErrNoModel
	}
	return &Model{c.plugin.model.client, c.ID}, nil
}

// Granted lists the aliases; the first is the default.
func (m *Model) Granted(ctx context.Context) ([]string, error) {
	granted, err := m.client.List(ctx, &modelpb.ListRequest{})
	if err != nil {
		return nil, modelTold(err)
	}
	var aliases []string
	for _, model := range granted.Models {
		aliases = append(aliases, model.Alias)
	}
	return aliases, nil
}

// Complete asks a model once. It takes as long as the operator allows; pass the Call as ctx, so that it ends with it.
func (m *Model) Complete(ctx context.Context, prompt Prompt) (*Completion, error) {
	request := &modelpb.CompleteRequest{
		Model: prompt.Model, System: prompt.System, MaxTokens: prompt.MaxTokens, Temperature: prompt.Temperature,
		Stop: prompt.Stop, CallId: m.callID,
	}
	for _, message := range prompt.Messages {
		request.Messages = append(request.Messages, &modelpb.Message{Role: message.Role, Text: message.Text})
	}
	answer, err := m.client.Complete(ctx, request)
	if err != nil {
		return nil, modelTold(err)
	}
	usage := answer.GetUsage()
	return &Completion{answer.Text, answer.Model, answer.Finish, usage.GetInputTokens(), usage.GetOutputTokens()}, nil
}

func modelTold(err error) error {
	said := status.Convert(err)
	for _, detail := range said.Details() {
		if refusal, ok := detail.(*modelpb.Refusal); ok {
			return &ModelError{refusal.Reason, said.Message()}
		}
	}
	return &ModelError{"unavailable", "the models are not available for now: " + said.Message()}
}
