// A plugin of OpenTalon's, as its SDK has served them since it speaks gRPC: a directory below TMPDIR that it makes itself, one
// line, a grpc-go server with nothing registered but the plugin service, no signal handler. The word after its name says in
// which way it differs from that.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	pb "talon/example/plugin"
)

// What the SDK takes at most, unless the environment says otherwise.
const defaultReceiveBytes = 32 << 20

// Names of tools that OpenTalon takes, and that no model does.
var foreignNames = []string{"kv.get", "a b", "", "<tool_call>", strings.Repeat("x", 100)}

type plugin struct {
	pb.UnimplementedPluginServiceServer
	manner string
	mu     sync.Mutex
	asked  []string
	config string
	pings  *int64
}

func (p *plugin) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, what)
}

func (p *plugin) Init(_ context.Context, request *pb.PluginInitRequest) (*emptypb.Empty, error) {
	p.note("Init")
	switch p.manner {
	case "without-init":
		return nil, status.Error(codes.Unimplemented, "method Init not implemented")
	case "refuses-init":
		return nil, status.Errorf(codes.InvalidArgument, "configure: %v", "the setting root is missing")
	case "crashes-in-init":
		var nobody *plugin
		_ = nobody.manner
	case "slow-init":
		time.Sleep(time.Hour)
	}
	p.config = request.ConfigJson
	return &emptypb.Empty{}, nil
}

func (p *plugin) Capabilities(context.Context, *emptypb.Empty) (*pb.PluginCapabilities, error) {
	p.note("Capabilities")
	text := func(name string) *pb.Parameter { return &pb.Parameter{Name: name, Type: "string"} }
	var foreign []*pb.Action
	if p.manner == "names" {
		for _, name := range foreignNames {
			foreign = append(foreign, &pb.Action{Name: name, Description: "Says its name."})
		}
	}
	return &pb.PluginCapabilities{
		Name:              "opentalon-fixture",
		Description:       "Shows what it was given.",
		SupportsCallbacks: p.manner == "callbacks",
		Actions: append(foreign, []*pb.Action{
			{Name: "echo", Description: "Says it again.", Parameters: []*pb.Parameter{text("text")}},
			{Name: "show", Description: "A variable, its settings, its directory, or what it was asked.", Parameters: []*pb.Parameter{text("what")}},
			{Name: "large", Description: "Says so many bytes.", Parameters: []*pb.Parameter{text("bytes")}},
			{Name: "size", Description: "The size of what it was sent.", Parameters: []*pb.Parameter{text("text")}},
			{Name: "panic", Description: "Panics, which kills it."},
			{Name: "keep-id", Description: "Forgets to copy the id."},
		}...),
	}, nil
}

func (p *plugin) RefreshCapabilities(context.Context, *emptypb.Empty) (*pb.PluginCapabilities, error) {
	return nil, status.Error(codes.Unimplemented, "plugin does not support capability refresh")
}

func (p *plugin) Execute(_ context.Context, request *pb.ToolCallRequest) (*pb.ToolResultResponse, error) {
	result := &pb.ToolResultResponse{CallId: request.Id}
	switch request.Action {
	case "echo":
		result.Content = request.Args["text"]
	case "show":
		result.Content = p.show(request.Args["what"])
	case "large":
		bytes, _ := strconv.Atoi(request.Args["bytes"])
		result.Content = strings.Repeat("x", bytes)
	case "size":
		result.Content = strconv.Itoa(len(request.Args["text"]))
	case "panic":
		panic("it was asked to")
	case "keep-id":
		result.CallId = ""
	default:
		for _, name := range foreignNames {
			if p.manner == "names" && name == request.Action {
				result.Content = fmt.Sprintf("called %q", name)
				return result, nil
			}
		}
		result.Error = "unknown action " + request.Action
	}
	return result, nil
}

func (p *plugin) show(what string) string {
	switch what {
	case "config":
		return p.config
	case "asked":
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Join(p.asked, " ")
	case "pings":
		return strconv.FormatInt(atomic.LoadInt64(p.pings), 10)
	case "tmp":
		entries, err := os.ReadDir(os.TempDir())
		if err != nil {
			return err.Error()
		}
		names := make([]string, 0, len(entries))
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return os.TempDir() + " " + strings.Join(names, " ")
	}
	return os.Getenv(what)
}

func receiveBytes() int {
	if bytes, err := strconv.Atoi(os.Getenv("OPENTALON_GRPC_MAX_MSG_BYTES")); err == nil && bytes > 0 {
		return bytes
	}
	return defaultReceiveBytes
}

func main() {
	manner := ""
	if len(os.Args) > 1 {
		manner = os.Args[1]
	}
	directory, err := os.MkdirTemp("", "opentalon-plugin-*")
	if err == nil {
		err = serve(manner, filepath.Join(directory, "plugin.sock"))
	}
	fmt.Fprintln(os.Stderr, "serve:", err)
	os.Exit(1)
}

func serve(manner, socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Printf("1|unix|%s\n", socket)
	if manner == "talks" {
		// A client that does not read it blocks the program here.
		for i := 0; i < 4096; i++ {
			fmt.Printf("line %d %s\n", i, strings.Repeat("x", 100))
		}
	}
	pings := new(int64)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(receiveBytes()))
	pb.RegisterPluginServiceServer(server, &plugin{manner: manner, pings: pings})
	return server.Serve(&watched{listener, pings})
}

// Counts the PING frames that a client sends of its own accord.
type watched struct {
	net.Listener
	pings *int64
}

func (w *watched) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.Copy(conn, theirs)
		_ = conn.Close()
	}()
	go func() {
		_ = count(conn, theirs, w.pings)
		_ = theirs.Close()
	}()
	return ours, nil
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Copies frame by frame.
func count(from io.Reader, to io.Writer, pings *int64) error {
	if _, err := io.CopyN(to, from, int64(len(preface))); err != nil {
		return err
	}
	for {
		var header [9]byte
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return err
		}
		const ping, ack = 6, 1
		if header[3] == ping && header[4]&ack == 0 {
			atomic.AddInt64(pings, 1)
		}
		length := binary.BigEndian.Uint32(append([]byte{0}, header[:3]...))
		if _, err := to.Write(header[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, int64(length)); err != nil {
			return err
		}
	}
}
