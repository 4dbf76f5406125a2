// A host built with HashiCorp's go-plugin, as its documentation has one, that runs loads: a number of callers call a plugin
// again and again. Its name and the lines that it reads and writes are those of talon-bench's other contenders.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/net/context"
	"google.golang.org/grpc"

	pb "talon/example/plugin"
)

// load is a line that is read.
type load struct {
	ContentBytes int   `json:"content_bytes"`
	Concurrency  int   `json:"concurrency"`
	Millis       int64 `json:"millis"`
}

// outcome is the line that answers it.
type outcome struct {
	Calls          int     `json:"calls"`
	CallsPerSecond float64 `json:"calls_per_second"`
	P50            float64 `json:"p50_us"`
	P99            float64 `json:"p99_us"`
}

// service makes the host's side of the plugin: a connection to call on.
type service struct{}

func (service) Server(*goplugin.MuxBroker) (interface{}, error) {
	return nil, fmt.Errorf("this is a host")
}

func (service) Client(*goplugin.MuxBroker, *rpc.Client) (interface{}, error) {
	return nil, fmt.Errorf("it speaks gRPC alone")
}

func (service) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return fmt.Errorf("this is a host")
}

func (service) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, connection *grpc.ClientConn) (interface{}, error) {
	return pb.NewPluginServiceClient(connection), nil
}

func start(client *goplugin.Client) (pb.PluginServiceClient, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	dispensed, err := protocol.Dispense("tools")
	if err != nil {
		return nil, err
	}
	plugin := dispensed.(pb.PluginServiceClient)
	_, err = plugin.Init(context.Background(), &pb.PluginInitRequest{ConfigJson: "{}"})
	return plugin, err
}

// call asks for so many bytes and looks whether they came.
func call(plugin pb.PluginServiceClient, bytes int) error {
	answer, err := plugin.Execute(context.Background(), &pb.ToolCallRequest{
		Id:     "01JCZ6N8V2K4W5Q7R9T0X1Y3Z5",
		Plugin: "says",
		Action: "say",
		Args:   map[string]string{"bytes": strconv.Itoa(bytes)},
	})
	if err == nil && len(answer.Content) != bytes {
		err = fmt.Errorf("%d bytes came: %s", len(answer.Content), answer.Error)
	}
	return err
}

// run makes a load: so many callers, each of which calls again as soon as it has its answer.
func run(plugin pb.PluginServiceClient, told load) (*outcome, error) {
	type result struct {
		nanoseconds []int64
		err         error
	}
	results := make(chan result)
	begin := time.Now()
	end := begin.Add(time.Duration(told.Millis) * time.Millisecond)
	for caller := 0; caller < told.Concurrency; caller++ {
		go func() {
			var own result
			for called := time.Now(); called.Before(end); {
				if own.err = call(plugin, told.ContentBytes); own.err != nil {
					break
				}
				answered := time.Now()
				own.nanoseconds = append(own.nanoseconds, int64(answered.Sub(called)))
				called = answered
			}
			results <- own
		}()
	}
	var all []int64
	var failed error
	for caller := 0; caller < told.Concurrency; caller++ {
		own := <-results
		all = append(all, own.nanoseconds...)
		if own.err != nil {
			failed = own.err
		}
	}
	took := time.Since(begin)
	if failed == nil && len(all) == 0 {
		failed = fmt.Errorf("no call was answered")
	}
	if failed != nil {
		return nil, failed
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	part := func(part float64) float64 {
		at := int(float64(len(all)) * part)
		if at >= len(all) {
			at = len(all) - 1
		}
		return float64(all[at]) / 1e3
	}
	return &outcome{
		Calls:          len(all),
		CallsPerSecond: float64(len(all)) / took.Seconds(),
		P50:            part(0.5),
		P99:            part(0.99),
	}, nil
}

func serve(client *goplugin.Client) error {
	plugin, err := start(client)
	if err != nil {
		return fmt.Errorf("start: %v", err)
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]bool{"ready": true}); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var told load
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			return fmt.Errorf("no load: %s", lines.Text())
		}
		came, err := run(plugin, told)
		if err != nil {
			return err
		}
		if err := out.Encode(came); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	// The plugin goes with its host, which is killed when all is measured. What it goes with is the thread that started it,
	// and of a Go program only the first thread is sure to stay.
	runtime.LockOSThread()
	command := exec.Command(os.Args[1])
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion:  1,
			MagicCookieKey:   "TALON_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "d3a7c1f0-talon-plugin",
		},
		Plugins:          goplugin.PluginSet{"tools": service{}},
		Cmd:              command,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Error}),
	})
	err := serve(client)
	client.Kill()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-host:", err)
		os.Exit(1)
	}
}
