package talonplugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"

	"talonplugin/pluginpb"
)

// How much of an argument that does not fit is shown to the caller.
const shownBytes = 60

// A field is one argument of a tool: how it is declared, and where it goes.
type field struct {
	index    int
	declared *pluginpb.Parameter
	choices  []string
}

// parameters reads what a struct declares.
func parameters(args reflect.Type, tool string) []field {
	if args.Kind() != reflect.Struct {
		panic(fmt.Sprintf("%s: its arguments are a %s; take a struct", tool, args))
	}
	var fields []field
	for i := 0; i < args.NumField(); i++ {
		part := args.Field(i)
		if !part.IsExported() {
			continue
		}
		name, more, _ := strings.Cut(part.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(part.Name)
		}
		kind := kind(part.Type, tool, part.Name)
		schema := map[string]interface{}{}
		if kind != anything {
			schema["type"] = kind
		}
		if keywords := part.Tag.Get("schema"); keywords != "" {
			if err := json.Unmarshal([]byte(keywords), &schema); err != nil {
				panic(fmt.Sprintf("%s(%s): its schema is not a JSON object: %v", tool, part.Name, err))
			}
		}
		made := field{index: i, declared: &pluginpb.Parameter{
			Name:        name,
			Description: part.Tag.Get("help"),
			Type:        typeOf(schema),
			Required:    part.Type.Kind() != reflect.Ptr && !strings.Contains(more, "omitempty"),
		}}
		if choices := part.Tag.Get("enum"); choices != "" {
			made.choices = strings.Split(choices, ",")
			schema["enum"] = made.choices
		}
		if _, hasType := schema["type"]; len(schema) > 1 || len(schema) == 1 && !hasType {
			text, err := toJSON(schema)
			if err != nil {
				panic(fmt.Sprintf("%s(%s): %v", tool, part.Name, err))
			}
			made.declared.Schema = text
		}
		fields = append(fields, made)
	}
	return fields
}

// The type of a parameter that takes several: an interface{} or a json.RawMessage.
const anything = "any"

func typeOf(schema map[string]interface{}) string {
	if kind, is := schema["type"].(string); is {
		return kind
	}
	return anything
}

func takesAnything(of reflect.Type) bool {
	return of.Kind() == reflect.Interface && of.NumMethod() == 0 || of == reflect.TypeOf(json.RawMessage{})
}

func kind(of reflect.Type, tool, name string) string {
	if of.Kind() == reflect.Ptr {
		of = of.Elem()
	}
	if takesAnything(of) {
		return anything
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	default:
		panic(fmt.Sprintf("%s(%s): a %s cannot be told to a host", tool, name, of))
	}
}

// typedArguments reads the arguments with their types; nil where the host sent texts alone.
func typedArguments(text string) (map[string]json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	var typed map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &typed); err != nil {
		return nil, Refuse("the arguments are no JSON object: %v", err)
	}
	if typed == nil {
		return nil, Refuse("the arguments are no JSON object")
	}
	return typed, nil
}

// readTyped fills a struct from the arguments with their types, where 7 is no "7". A Refusal says what does not fit.
func readTyped(fields []field, tool string, typed map[string]json.RawMessage, into reflect.Value) error {
	texts := map[string]string{}
	for name, raw := range typed {
		texts[name] = string(raw)
	}
	if err := unknown(fields, tool, texts); err != nil {
		return err
	}
	for _, field := range fields {
		raw, given := typed[field.declared.Name]
		target := into.Field(field.index)
		if given && string(raw) == "null" && !takesAnything(target.Type()) {
			given = false
		}
		if !given {
			if field.declared.Required {
				return Refuse("argument %q is missing", field.declared.Name)
			}
			continue
		}
		var text string
		isText := json.Unmarshal(raw, &text) == nil && raw[0] == '"'
		var err error
		switch {
		case isText && field.declared.Type != anything:
			// A text for a number is read as it was when it came as a text: models write "7" for 7.
			err = fill(field, text, target)
		case field.declared.Type == "string":
			err = misfit(field, "a string", string(raw))
		default:
			err = fillJSON(field, string(raw), target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unknown(fields []field, tool string, texts map[string]string) error {
	known := map[string]bool{}
	for _, field := range fields {
		known[field.declared.Name] = true
	}
	for name := range texts {
		if !known[name] {
			return Refuse("unknown argument %q; %s takes %s", cut(name, shownBytes), tool, takes(known))
		}
	}
	return nil
}

// read fills a struct from the texts of a call. A Refusal says what does not fit.
func read(fields []field, tool string, texts map[string]string, into reflect.Value) error {
	if err := unknown(fields, tool, texts); err != nil {
		return err
	}
	for _, field := range fields {
		text, given := texts[field.declared.Name]
		if !given {
			if field.declared.Required {
				return Refuse("argument %q is missing", field.declared.Name)
			}
			continue
		}
		if err := fill(field, text, into.Field(field.index)); err != nil {
			return err
		}
	}
	return nil
}

func fill(field field, text string, into reflect.Value) error {
	if len(field.choices) > 0 && !contains(field.choices, text) {
		return misfit(field, "one of "+strings.Join(field.choices, ", "), text)
	}
	if into.Kind() == reflect.Ptr {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if into.Kind() == reflect.String {
		into.SetString(text)
		return nil
	}
	if takesAnything(into.Type()) && !json.Valid([]byte(text)) {
		// What is no JSON is the text itself.
		quoted, err := toJSON(text)
		if err != nil {
			return misfit(field, "a text", text)
		}
		return fillJSON(field, quoted, into)
	}
	return fillJSON(field, text, into)
}

// fillJSON fills a field from one value of JSON. Numbers of an interface{} are json.Number, with all their digits.
func fillJSON(field field, text string, into reflect.Value) error {
	if into.Kind() == reflect.Ptr {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	err := decoder.Decode(into.Addr().Interface())
	if err == nil {
		// One value and no more; null is none.
		if _, err = decoder.Token(); err == io.EOF && (strings.TrimSpace(text) != "null" || takesAnything(into.Type())) {
			return nil
		}
	}
	article := "a"
	if strings.ContainsAny(field.declared.Type[:1], "aio") {
		article = "an"
	}
	return misfit(field, article+" "+field.declared.Type, text)
}

func misfit(field field, wanted, text string) error {
	return Refuse("argument %q: expected %s, got %q", field.declared.Name, wanted, cut(text, shownBytes))
}

func contains(list []string, text string) bool {
	for _, each := range list {
		if each == text {
			return true
		}
	}
	return false
}

func takes(known map[string]bool) string {
	if len(known) == 0 {
		return "no arguments"
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + "…"
}
