package talonplugin

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"talonplugin/statepb"
)

type point struct {
	X int `json:"x"`
}

type everything struct {
	Text  string            `json:"text" help:"A text."`
	Count uint8             `json:"count" schema:"{\"minimum\": 1}"`
	Ratio *float64          `json:"ratio"`
	Loud  bool              `json:"loud,omitempty"`
	Tags  []string          `json:"tags,omitempty"`
	Marks map[string]int    `json:"marks,omitempty"`
	Mode  string            `json:"mode,omitempty" enum:"fast,slow"`
	Point *point            `json:"point"`
	none  map[string]string //nolint
}

func made() *Plugin {
	plugin := New("tests", "Of the tests.")
	Add(plugin, "everything", "Takes everything.", func(_ *Call, args everything) (interface{}, error) {
		return args, nil
	}, Destructive, UserOnly)
	Add(plugin, "who", "Looks at its call.", func(call *Call, _ struct{}) (interface{}, error) {
		_, err := call.State()
		return Output{call.Injected["session_id"], err.Error()}, nil
	}, Inject("session_id"))
	Add(plugin, "fails", "Has a defect.", func(*Call, struct{}) (interface{}, error) {
		return nil, errors.New("a secret of mine")
	})
	Add(plugin, "panics", "Has a worse one.", func(*Call, struct{}) (interface{}, error) { panic("a secret of mine") })
	return plugin
}

func call(action string, args map[string]string) (content, refused string) {
	answer := made().Call(NewCall(args), action)
	return answer.Content, answer.Error
}

func TestRolesAreDeclared(t *testing.T) {
	plugin := New("hooks", "")
	pass := func(*Call, struct{}) (interface{}, error) { return map[string]string{"verdict": "pass"}, nil }
	Add(plugin, "look", "Looks.", pass, Roles("request_hook", "tool"))
	roles := plugin.Capabilities().Actions[0].Roles
	if len(roles) != 2 || roles[0] != "request_hook" || roles[1] != "tool" {
		t.Fatal(roles)
	}
	if answer := plugin.Call(NewCall(nil), "look"); answer.StructuredContent != `{"verdict":"pass"}` {
		t.Fatal(answer)
	}
}

func TestAJobIsProposed(t *testing.T) {
	plugin := New("one", "")
	run := func(*Call, struct{}) (interface{}, error) { return "tidied", nil }
	daily := ProposedJob{Cron: "@daily", Timezone: "Europe/Berlin", Arguments: map[string]interface{}{"days": 30}}
	Add(plugin, "tidy", "Tidies.", run, Propose(daily, ProposedJob{Name: "often", Every: "6h"}))
	Add(plugin, "look", "Looks.", run, Roles("scheduled_task"), Propose(ProposedJob{Every: "1h"}))
	tidy, look := plugin.Capabilities().Actions[0], plugin.Capabilities().Actions[1]
	if len(tidy.Roles) != 1 || tidy.Roles[0] != "scheduled_task" || len(look.Roles) != 1 {
		t.Fatal(tidy.Roles, look.Roles)
	}
	first, second := tidy.ProposedJobs[0], tidy.ProposedJobs[1]
	if first.Cron != "@daily" || first.Timezone != "Europe/Berlin" || first.ArgumentsJson != `{"days":30}` || first.Name != "" {
		t.Fatal(first)
	}
	if second.Name != "often" || second.Every != "6h" || second.ArgumentsJson != "" {
		t.Fatal(second)
	}
}

func TestBytesAreSealedAndOnlyWholeOnesAreOpened(t *testing.T) {
	sealed := Seal([]byte{0, 255, 254, 10})
	if data, err := sealed.Open(); sealed.Data != "AP_-Cg" || err != nil || string(data) != "\x00\xff\xfe\n" {
		t.Fatal(sealed, data, err)
	}
	for _, data := range []string{"AA", "?", "AP_-Cg=="} {
		if _, err := (Sealed{Data: data, SHA256: sealed.SHA256}).Open(); err == nil {
			t.Fatal(data)
		}
	}
	plugin := New("roles", "")
	Add(plugin, "store", "Stores.", func(_ *Call, asked StorageRequest) (interface{}, error) {
		if asked.Op != "get" {
			return nil, Refuse("unknown")
		}
		return StorageReply{Outcome: "absent"}, nil
	}, Roles("storage_backend"))
	if answer := plugin.Call(NewCall(map[string]string{"op": "get", "key": `{"data":"","sha256":""}`}), "store"); answer.StructuredContent != `{"outcome":"absent"}` {
		t.Fatal(answer)
	}
}

func TestTheRolesHaveArgumentsAndAnswers(t *testing.T) {
	plugin := New("roles", "")
	Add(plugin, "send", "Sends.", func(_ *Call, asked Notification) (interface{}, error) {
		if asked.Event.Kind == "test" {
			return Refused("a test"), nil
		}
		return Retry(asked.Event.Summary, 9), nil
	}, Roles("notification_sink"))
	Add(plugin, "login", "Logs in.", func(_ *Call, asked AuthRequest) (interface{}, error) {
		if asked.Credential == "let me in" {
			return Accepted("ada", "staff"), nil
		}
		return Rejected("unknown"), nil
	}, Roles("auth_provider"))
	Add(plugin, "reply", "Replies.", func(_ *Call, asked APIRequest) (interface{}, error) {
		return APIResponse{Status: 200, Body: asked.Path}, nil
	}, Roles("api_route"))
	peer := map[string]string{"scheme": "bearer", "peer": "{}", "credential": "let me in"}
	request := map[string]string{"method": "GET", "path": "/x/a", "query": "{}", "headers": "{}", "body": "", "subject": "gw:a/b"}
	for _, one := range []struct {
		action string
		args   map[string]string
		wanted string
	}{
		{"send", map[string]string{"event": `{"summary":"busy"}`, "attempt": "1"}, `{"status":"retry","reason":"busy","retry_after_seconds":9}`},
		{"send", map[string]string{"event": `{"kind":"test"}`, "attempt": "1"}, `{"status":"refused","reason":"a test"}`},
		{"login", peer, `{"outcome":"accepted","subject":"ada","scopes":["staff"]}`},
		{"reply", request, `{"status":200,"body":"/x/a"}`},
	} {
		if answer := plugin.Call(NewCall(one.args), one.action); answer.StructuredContent != one.wanted {
			t.Fatal(one.action, answer)
		}
	}
}

func TestAStructBecomesParameters(t *testing.T) {
	action := made().Capabilities().Actions[0]
	if !action.GetDestructive() || !action.UserOnly || action.ReadOnly {
		t.Fatal(action)
	}
	seen := map[string]string{}
	for _, parameter := range action.Parameters {
		needed := ""
		if parameter.Required {
			needed = "!"
		}
		seen[parameter.Name] = parameter.Type + needed + parameter.Schema
	}
	for name, wanted := range map[string]string{
		"text": "string!", "count": `integer!{"minimum":1,"type":"integer"}`, "ratio": "number", "loud": "boolean",
		"tags": "array", "marks": "object", "mode": `string{"enum":["fast","slow"],"type":"string"}`, "point": "object",
	} {
		if seen[name] != wanted {
			t.Errorf("%s: %s", name, seen[name])
		}
	}
	if len(seen) != 8 {
		t.Fatal(seen)
	}
}

func TestTextsBecomeValues(t *testing.T) {
	content, refused := call("everything", map[string]string{
		"text": "5", "count": "2", "ratio": "0.5", "loud": "true", "tags": `["a<b"]`, "marks": `{"a":1}`, "mode": "slow", "point": `{"x":1}`,
	})
	wanted := `{"text":"5","count":2,"ratio":0.5,"loud":true,"tags":["a<b"],"marks":{"a":1},"mode":"slow","point":{"x":1}}`
	if content != wanted || refused != "" {
		t.Fatal(content, refused)
	}
}

func TestWhatDoesNotFitIsTold(t *testing.T) {
	for _, row := range []struct{ name, text, says string }{
		{"shout", "x", `unknown argument "shout"; everything takes count, loud`},
		{"count", "many", `argument "count": expected an integer, got "many"`},
		{"count", "256", `argument "count": expected an integer`},
		{"count", "null", `argument "count": expected an integer`},
		{"count", "1 2", `argument "count": expected an integer`},
		{"loud", "yes", `argument "loud": expected a boolean`},
		{"tags", "[1]", `argument "tags": expected an array`},
		{"tags", strings.Repeat("[", 100_000), `argument "tags": expected an array`},
		{"mode", "odd", `argument "mode": expected one of fast, slow, got "odd"`},
		{"point", `{"y":1}`, `argument "point": expected an object`},
	} {
		args := map[string]string{"text": "a", "count": "1"}
		args[row.name] = row.text
		if _, refused := call("everything", args); !strings.HasPrefix(refused, row.says) || len(refused) > 300 {
			t.Errorf("%s=%.20s: %s", row.name, row.text, refused)
		}
	}
	if _, refused := call("everything", nil); refused != `argument "text" is missing` {
		t.Error(refused)
	}
	if _, refused := call("nothing", nil); refused != `no action "nothing"; there are everything, who, fails, panics` {
		t.Error(refused)
	}
}

type mixed struct {
	Either   interface{}     `json:"either,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Count    int64           `json:"count,omitempty"`
	Text     *string         `json:"text"`
	Required int             `json:"required"`
}

func typed(t *testing.T, arguments string) (content, refused string) {
	t.Helper()
	plugin := New("typed", "")
	Add(plugin, "mixed", "", func(_ *Call, args mixed) (interface{}, error) {
		return Refuse("%T %v %s %d", args.Either, args.Either, args.Raw, args.Count).Error(), nil
	}, Inject("session_id"))
	if kind := plugin.Capabilities().Actions[0].Parameters[0].Type; kind != "any" {
		t.Error(kind)
	}
	answer := plugin.Call(NewTypedCall(arguments), "mixed")
	return answer.Content, answer.Error
}

func TestSevenIsNoTextWhereTheHostSendsTypes(t *testing.T) {
	for arguments, wanted := range map[string]string{
		`{"required":1,"either":7}`:                           "json.Number 7  0",
		`{"required":1,"either":"7"}`:                         "string 7  0",
		`{"required":1,"either":true}`:                        "bool true  0",
		`{"required":1,"either":null}`:                        "<nil> <nil>  0",
		`{"required":1,"either":12345678901234567890123}`:     "json.Number 12345678901234567890123  0",
		`{"required":1,"raw":"1.10","count":7}`:               `<nil> <nil> "1.10" 7`,
		`{"required":1,"raw":1.10,"count":"7"}`:               "<nil> <nil> 1.10 7",
		`{"required":1,"count":null,"text":null}`:             "<nil> <nil>  0",
		`{"required":1,"either":[7,"7"],"session_id":"mine"}`: "[]interface {} [7 7]  0",
	} {
		if content, refused := typed(t, arguments); content != wanted || refused != "" {
			t.Errorf("%s: %q %q", arguments, content, refused)
		}
	}
	for arguments, says := range map[string]string{
		`{"required":null}`:          `argument "required" is missing`,
		`{"required":1,"text":7}`:    `argument "text": expected a string, got "7"`,
		`{"required":1,"count":1.5}`: `argument "count": expected an integer`,
		`{"required":1,"other":1}`:   `unknown argument "other"`,
		`[]`:                         "the arguments are no JSON object",
		`null`:                       "the arguments are no JSON object",
		strings.Repeat("[", 100_000): "the arguments are no JSON object",
	} {
		if _, refused := typed(t, arguments); !strings.HasPrefix(refused, says) || len(refused) > 300 {
			t.Errorf("%.40s: %s", arguments, refused)
		}
	}
}

func TestACallKnowsOfItselfAndADefectIsNotTold(t *testing.T) {
	if content, _ := call("who", map[string]string{"session_id": "s1"}); content != "s1" {
		t.Error(content)
	}
	for _, action := range []string{"fails", "panics"} {
		if _, refused := call(action, nil); refused != action+" failed; the plugin's log says why" {
			t.Error(refused)
		}
	}
}

func TestSettingsAreReadOrRefused(t *testing.T) {
	plugin := made()
	if err := plugin.Configure(`{"loud":true}`); err == nil || err.Error() != "this plugin takes no config; remove loud" {
		t.Error(err)
	}
	word := ""
	Settings(plugin, func(config struct {
		Word string `json:"word"`
	}) error {
		word = config.Word
		return nil
	})
	if err := plugin.Configure(`{"word":"hi"}`); err != nil || word != "hi" {
		t.Error(err, word)
	}
	if err := plugin.Configure(`{"wrod":"hi"}`); err == nil || !strings.Contains(err.Error(), "wrod") {
		t.Error(err)
	}
}

func TestAMistakeInADeclarationIsFoundAtTheStart(t *testing.T) {
	type odd struct{ C chan int }
	for name, add := range map[string]func(*Plugin){
		"name":   func(p *Plugin) { Add(p, "no name", "", func(*Call, struct{}) (interface{}, error) { return nil, nil }) },
		"twice":  func(p *Plugin) { Add(p, "who", "", func(*Call, struct{}) (interface{}, error) { return nil, nil }) },
		"type":   func(p *Plugin) { Add(p, "odd", "", func(*Call, odd) (interface{}, error) { return nil, nil }) },
		"struct": func(p *Plugin) { Add(p, "odd", "", func(*Call, string) (interface{}, error) { return nil, nil }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			add(made())
		}()
	}
}

func TestFailuresOfTheStateHaveTypes(t *testing.T) {
	full, err := status.New(codes.ResourceExhausted, "full").WithDetails(
		&statepb.QuotaExceeded{Resource: "bytes", Used: 90, Limit: 100, Wanted: 120})
	if err != nil {
		t.Fatal(err)
	}
	var quota *QuotaExceeded
	var refused *Refusal
	if told := told(full.Err()); !errors.As(told, &quota) || quota.Limit != 100 || !errors.As(told, &refused) {
		t.Error(told)
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted} {
		if told(status.Error(code, "")) != ErrUnavailable {
			t.Error(code)
		}
	}
	if told(nil) != nil {
		t.Error("no error became one")
	}
}

func TestLargeDataIsNotSaidTwice(t *testing.T) {
	text, err := toJSON(strings.Repeat("x", 1000))
	if err != nil || !json.Valid([]byte(text)) || len(digest(text)) > 100 {
		t.Error(err, digest(text))
	}
}
