// A plugin that asks a model in its call, by the helper for Go.
package main

import (
	"errors"
	"fmt"
	"strings"

	"talonplugin"
)

type question struct {
	Text  string `json:"text" help:"What to ask"`
	Model string `json:"model,omitempty" help:"Which model"`
}

func ask(call *talonplugin.Call, asked question) (interface{}, error) {
	model, err := call.Model()
	if err != nil {
		return nil, err
	}
	granted, err := model.Granted(call)
	if err != nil {
		return nil, err
	}
	prompt := talonplugin.Ask(asked.Text)
	prompt.System, prompt.MaxTokens, prompt.Model = "Be brief.", 50, asked.Model
	answer, err := model.Complete(call, prompt)
	var refused *talonplugin.ModelError
	if errors.As(err, &refused) {
		return fmt.Sprintf("refused %s: %s", refused.Reason, refused.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("of %s: said %s by %s, %s, %d+%d", strings.Join(granted, " "), answer.Text, answer.Model, answer.Finish,
		answer.InputTokens, answer.OutputTokens), nil
}

func main() {
	made := talonplugin.New("asks", "Asks models.")
	talonplugin.Add(made, "ask", "Asks a model.", ask)
	made.Serve()
}
