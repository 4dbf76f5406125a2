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
		schema := map[string]interface{}{"type": kind(part.Type, tool, part.Name)}
		if keywords := part.Tag.Get("schema"); keywords != "" {
			if err := json.Unmarshal([]byte(keywords), &schema); err != nil {
				panic(fmt.Sprintf("%s(%s): its schema is not a JSON object: %v", tool, part.Name, err))
			}
		}
		made := field{index: i, declared: &pluginpb.Parameter{
			Name:        name,
			Description: part.Tag.Get("help"),
			Type:        schema["type"].(string),
			Required:    part.Type.Kind() != reflect.Ptr && !strings.Contains(more, "omitempty"),
		}}
		if choices := part.Tag.Get("enum"); choices != "" {
			made.choices = strings.Split(choices, ",")
			schema["enum"] = made.choices
		}
		if len(schema) > 1 {
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

func kind(of reflect.Type, tool, name string) string {
	if of.Kind() == reflect.Ptr {
		of = of.Elem()
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

// read fills a struct from the texts of a call. A Refusal says what does not fit.
func read(fields []field, tool string, texts map[string]string, into reflect.Value) error {
	known := map[string]bool{}
	for _, field := range fields {
		known[field.declared.Name] = true
	}
	for name := range texts {
		if !known[name] {
			return Refuse("unknown argument %q; %s takes %s", cut(name, shownBytes), tool, takes(known))
		}
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
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into.Addr().Interface())
	if err == nil {
		// One value and no more; null is none.
		if _, err = decoder.Token(); err == io.EOF && strings.TrimSpace(text) != "null" {
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
