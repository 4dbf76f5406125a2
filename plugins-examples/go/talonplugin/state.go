package talonplugin

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"talonplugin/statepb"
)

// How long one operation may take. The socket is on this machine, and the host answers after the value is on the disk.
const stateTimeout = 5 * time.Second

// How often a change tries. Each time it fails, somebody else has changed the value.
const maxTries = 64

// How many keys of one prefix are listed: as many as a plugin may have unless its operator gave it more.
const maxKeys = 100_000

// What can go wrong with the state. A tool that returns one of them answers with its text.
var (
	ErrNotServed   = Refuse("this host keeps no state: TALON_STATE_SOCKET is not set")
	ErrUnavailable = Refuse("the state is not available for now: try again later")
	ErrContended   = Refuse("the value is changed by too many at once: try again")
)

// QuotaExceeded says that the plugin's quota is used up. Reading, deleting and shrinking still work.
type QuotaExceeded struct {
	Resource            string
	Used, Limit, Wanted uint64
}

func (q *QuotaExceeded) Error() string { return q.refusal().Error() }

// Unwrap makes it a Refusal for a tool that lets it through.
func (q *QuotaExceeded) Unwrap() error { return q.refusal() }

func (q *QuotaExceeded) refusal() error {
	return Refuse("there is no room for more: %d %s would be kept, %d may be", q.Wanted, q.Resource, q.Limit)
}

// State is the plugin's own key-values, which outlive its process. No other plugin sees them; all its instances share them.
type State struct{ client statepb.StateClient }

func openState(socket string) (*State, error) {
	if socket == "" {
		return nil, nil
	}
	// Connects in the background, and again when it has to; the bounds keep it from waiting long between attempts.
	again := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: 2 * time.Second}}
	connection, err := grpc.Dial("unix:"+socket, grpc.WithInsecure(), grpc.WithConnectParams(again))
	if err != nil {
		return nil, err
	}
	return &State{statepb.NewStateClient(connection)}, nil
}

// Get gives the value; nil when there is no such key.
func (s *State) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	seen, err := s.client.Get(ctx, &statepb.GetRequest{Key: key})
	if err != nil {
		return nil, told(err)
	}
	return seen.Value, nil
}

// Set keeps a value; it is on the disk when this returns.
func (s *State) Set(ctx context.Context, key string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	_, err := s.client.Set(ctx, &statepb.SetRequest{Key: key, Value: value})
	return told(err)
}

// Delete deletes a key and says whether it was there.
func (s *State) Delete(ctx context.Context, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	deleted, err := s.client.Delete(ctx, &statepb.DeleteRequest{Key: key})
	return deleted.GetExisted(), told(err)
}

// Keys lists the keys that begin with a prefix.
func (s *State) Keys(ctx context.Context, prefix string) ([]string, error) {
	var found []string
	for token := ""; ; {
		page, err := s.page(ctx, prefix, token)
		if err != nil {
			return nil, told(err)
		}
		if found = append(found, page.Keys...); len(found) > maxKeys {
			return nil, Refuse("more than %d keys begin with %q: ask for a longer prefix", maxKeys, prefix)
		}
		if token = page.NextPageToken; token == "" {
			return found, nil
		}
	}
}

func (s *State) page(ctx context.Context, prefix, token string) (*statepb.KeysResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	return s.client.Keys(ctx, &statepb.KeysRequest{Prefix: prefix, PageToken: token})
}

// CompareAndSet sets (nil: deletes) only if expected still stands there (nil: if there is no such key). It gives whether it
// did, and otherwise what stands there.
func (s *State) CompareAndSet(ctx context.Context, key string, expected, value []byte) (bool, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	swap, err := s.client.CompareAndSet(ctx, &statepb.CompareAndSetRequest{Key: key, Expected: expected, Value: value})
	return swap.GetSwapped(), swap.GetCurrent(), told(err)
}

// Update reads, changes, and writes only if what was read still stands there; otherwise it changes what does. So nothing is
// lost that another call, or another instance of this plugin, wrote in between.
func (s *State) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) ([]byte, error) {
	old, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	for try := 0; try < maxTries; try++ {
		value, err := change(old)
		if err != nil {
			return nil, err
		}
		swapped, current, err := s.CompareAndSet(ctx, key, old, value)
		if err != nil {
			return nil, err
		}
		if swapped {
			return value, nil
		}
		old = current
	}
	return nil, ErrContended
}

// UpdateJSON is Update for a value that is JSON; change gets the zero value when there is none.
func UpdateJSON[V any](ctx context.Context, s *State, key string, change func(*V) error) (V, error) {
	var made V
	_, err := s.Update(ctx, key, func(old []byte) ([]byte, error) {
		var value V
		if old != nil {
			if err := json.Unmarshal(old, &value); err != nil {
				return nil, Refuse("what is kept under %s is not what this plugin keeps", key)
			}
		}
		if err := change(&value); err != nil {
			return nil, err
		}
		made = value
		return json.Marshal(value)
	})
	return made, err
}

func told(err error) error {
	if err == nil {
		return nil
	}
	said := status.Convert(err)
	switch said.Code() {
	case codes.Unavailable, codes.DeadlineExceeded:
		return ErrUnavailable
	case codes.ResourceExhausted:
		for _, detail := range said.Details() {
			if quota, ok := detail.(*statepb.QuotaExceeded); ok {
				return &QuotaExceeded{quota.Resource, quota.Used, quota.Limit, quota.Wanted}
			}
		}
		return ErrUnavailable
	case codes.InvalidArgument:
		return Refuse("%s", said.Message())
	default:
		return Refuse("the state refused: %s", said.Message())
	}
}
