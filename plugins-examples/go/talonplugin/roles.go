package talonplugin

// What the roles of actions are asked, for Add, and what they answer (docs/extensions). Name the role with Roles.

// HookRequest is what a filter, a request hook or a response hook is asked.
type HookRequest struct {
	Message  string                 `json:"message" help:"The message"`
	Session  map[string]interface{} `json:"session" help:"Its session"`
	Metadata map[string]string      `json:"metadata" help:"What earlier hooks noted"`
}

// Notification is what a notification sink is asked to deliver.
type Notification struct {
	Event   Event   `json:"event" help:"What happened"`
	Events  []Event `json:"events,omitempty" help:"The events of a digest"`
	Attempt int     `json:"attempt" help:"The number of the attempt, from 1"`
}

// Event is something that people may want to know. ID is the same in every attempt: pass it on, so that a receiver can drop
// what it has already.
type Event struct {
	ID         string            `json:"id"`
	Kind       string            `json:"kind"`
	Severity   string            `json:"severity"`
	Summary    string            `json:"summary"`
	Details    string            `json:"details"`
	TimeUnixMS int64             `json:"time_unix_ms"`
	Fields     map[string]string `json:"fields"`
	Count      uint64            `json:"count"`
}

// Delivery is what became of a notification. An error of the function counts as Retry.
type Delivery struct {
	Status            string `json:"status"`
	Reason            string `json:"reason,omitempty"`
	RetryAfterSeconds int    `json:"retry_after_seconds,omitempty"`
}

// Delivered says that the receiver has it.
func Delivered() Delivery { return Delivery{Status: "delivered"} }

// Retry says that it is to be tried again, not before so many seconds.
func Retry(reason string, afterSeconds int) Delivery {
	return Delivery{Status: "retry", Reason: reason, RetryAfterSeconds: afterSeconds}
}

// Refused says that it is not to be tried again.
func Refused(reason string) Delivery { return Delivery{Status: "refused", Reason: reason} }

// Run is which run of which job a scheduled task is for: a field `json:"run"` beside the job's own arguments.
type Run struct {
	ID            string `json:"id"`
	Job           string `json:"job"`
	PlannedUnixMS int64  `json:"planned_unix_ms"`
	Attempt       int    `json:"attempt"`
}

// AuthRequest is what an auth provider is asked. The credential belongs into no log and no error.
type AuthRequest struct {
	Scheme     string            `json:"scheme" help:"The scheme of the header Authorization"`
	Credential string            `json:"credential" help:"What follows it"`
	Peer       map[string]string `json:"peer" help:"Who sent it"`
}

// Authentication says whose a credential is. An error of the function counts as Rejected.
type Authentication struct {
	Outcome       string   `json:"outcome"`
	Subject       string   `json:"subject,omitempty"`
	Scopes        []string `json:"scopes,omitempty"`
	ExpiresUnixMS int64    `json:"expires_unix_ms,omitempty"`
	DisplayName   string   `json:"display_name,omitempty"`
	Reason        string   `json:"reason,omitempty"`
}

// Accepted says that it is this subject's.
func Accepted(subject string, scopes ...string) Authentication {
	return Authentication{Outcome: "accepted", Subject: subject, Scopes: scopes}
}

// Rejected says that it is nobody's. The reason is for the operator's log.
func Rejected(reason string) Authentication {
	return Authentication{Outcome: "rejected", Reason: reason}
}

// APIRequest is what the action of an API route is asked.
type APIRequest struct {
	Method       string              `json:"method" help:"The method"`
	Path         string              `json:"path" help:"The path"`
	Query        map[string][]string `json:"query" help:"The parameters of the query"`
	Headers      map[string]string   `json:"headers" help:"The headers that the entry lists"`
	Body         string              `json:"body" help:"The body"`
	BodyEncoding string              `json:"body_encoding,omitempty" help:"How the body is written: text or base64"`
	Subject      string              `json:"subject" help:"Whose request it is"`
}

// APIResponse is what it answers.
type APIResponse struct {
	Status       int               `json:"status"`
	Headers      map[string]string `json:"headers,omitempty"`
	Body         string            `json:"body,omitempty"`
	BodyEncoding string            `json:"body_encoding,omitempty"`
}

// ChannelRequest is what the action of a channel is asked. What people write is told with an EventSource.
type ChannelRequest struct {
	Op           string          `json:"op" help:"open, send, typing or fetch"`
	ID           string          `json:"id,omitempty" help:"What identifies the message, the same in every attempt"`
	Conversation string          `json:"conversation,omitempty" help:"Where to, as an event said"`
	Text         string          `json:"text,omitempty" help:"The text"`
	Buttons      []ChannelButton `json:"buttons,omitempty" help:"Buttons below the text"`
	Attempt      int             `json:"attempt,omitempty" help:"The number of the attempt, from 1"`
	File         string          `json:"file,omitempty" help:"The id of a file, as a message had it"`
	Offset       int64           `json:"offset,omitempty" help:"From which byte on"`
	MaxBytes     int64           `json:"max_bytes,omitempty" help:"How many bytes the whole file may have"`
}

// ChannelButton is a button below a text: its ID is in the event that says that it was pressed.
type ChannelButton struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// ChannelReply is what it answers, with the Status of a Delivery. An error of the function counts as retry.
type ChannelReply struct {
	Delivery
	SentBytes int      `json:"sent_bytes,omitempty"`
	Supports  []string `json:"supports,omitempty"`
	Piece     *Sealed  `json:"piece,omitempty"`
	More      bool     `json:"more,omitempty"`
}
