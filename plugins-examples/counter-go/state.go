package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"talon/example/state"
)

// How often one increment tries. Each time it fails, somebody else has counted.
const maxTries = 100

// How long one operation on the state may take; the socket is on this machine.
const stateTimeout = 5 * time.Second

// Counters in the host's state.
type counters struct {
	// nil: this host keeps no state.
	state state.StateClient
}

func openCounters(socket string) (*counters, error) {
	if socket == "" {
		return &counters{}, nil
	}
	// Connects in the background, and again when it has to; the bounds keep it from waiting long between attempts.
	again := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: 2 * time.Second}}
	connection, err := grpc.Dial("unix:"+socket, grpc.WithInsecure(), grpc.WithConnectParams(again))
	if err != nil {
		return nil, err
	}
	return &counters{state: state.NewStateClient(connection)}, nil
}

func (c *counters) increment(ctx context.Context, name string) (int64, error) {
	if c.state == nil {
		return 0, errNotServed
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	key := "counter/" + name
	seen, err := c.state.Get(ctx, &state.GetRequest{Key: key})
	if err != nil {
		return 0, told(err)
	}
	// nil means that there is no such key, here and below.
	old := seen.Value
	for try := 0; try < maxTries; try++ {
		count := int64(0)
		if old != nil {
			if count, err = strconv.ParseInt(string(old), 10, 64); err != nil {
				return 0, fmt.Errorf("%s does not hold a count", name)
			}
		}
		count++
		swap, err := c.state.CompareAndSet(ctx, &state.CompareAndSetRequest{Key: key, Expected: old, Value: strconv.AppendInt(nil, count, 10)})
		if err != nil {
			return 0, told(err)
		}
		if swap.Swapped {
			return count, nil
		}
		// Another call, or another instance of this plugin, was faster.
		old = swap.Current
	}
	return 0, fmt.Errorf("%s is counted by too many at once: try again", name)
}

func (c *counters) reset(ctx context.Context, name string) error {
	if c.state == nil {
		return errNotServed
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	_, err := c.state.Set(ctx, &state.SetRequest{Key: "counter/" + name, Value: []byte("0")})
	return told(err)
}

var errNotServed = errors.New("this host keeps no state: TALON_STATE_SOCKET is not set")

// What the caller can do about it.
func told(err error) error {
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.Unavailable, codes.DeadlineExceeded:
		return errors.New("the counters are not available for now: try again later")
	default:
		// A quota that is used up (ResourceExhausted) or a key that is too long (InvalidArgument): the host's text
		// says what would help.
		return errors.New(status.Convert(err).Message())
	}
}
