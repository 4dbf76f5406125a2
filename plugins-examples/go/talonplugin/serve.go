package talonplugin

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"talonplugin/noticespb"
	"talonplugin/pluginpb"
)

// Handshake is what this plugin and its host agree on before they speak.
var Handshake = goplugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "TALON_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d3a7c1f0-talon-plugin",
}

// The largest request that is read; go-plugin's own servers read 4 MiB. The host itself lets 1 MiB of arguments through.
const maxRequestBytes = 32 << 20

// What the host reads at most where it does not say (OPENTALON_GRPC_MAX_MSG_BYTES), and what of it is left for the rest of
// an answer. A larger answer becomes an error, which a host would otherwise make of it less clearly.
const (
	defaultAnswerBytes = 8 << 20
	answerMarginBytes  = 64 << 10
)

// How long calls in flight may take at the end. The host's own grace period is 10 s unless configured.
const grace = 8 * time.Second

// The longest path of a unix socket, by the kernel; go-plugin names its socket with this many bytes at most.
const (
	maxSocketPath    = 107
	socketNameLength = len("/plugin") + 10
)

// Log goes to the host, with levels and fields.
var Log = hclog.New(&hclog.LoggerOptions{
	Level: hclog.LevelFromString(level()), Output: os.Stderr, JSONFormat: true,
})

func level() string {
	if wanted := os.Getenv("TALON_LOG"); hclog.LevelFromString(wanted) != hclog.NoLevel {
		return wanted
	}
	return "info"
}

// Serve serves until the host is done. It is the last thing that main does.
func (p *Plugin) Serve() {
	if os.Getenv(Handshake.MagicCookieKey) != Handshake.MagicCookieValue {
		program := os.Args[0]
		if directory := filepath.Dir(program); exists(filepath.Join(directory, "plugin.yaml")) {
			program = directory
		}
		fmt.Fprintf(os.Stderr, "this is a Talon plugin, not a program to run by hand.\n"+
			"Call one of its actions with:  talon exec %s ACTION [key=value …]\nIts actions: %s\n",
			program, strings.Join(p.order, ", "))
		os.Exit(1)
	}
	// Older go-plugins know only TMPDIR; and one that cannot bind its socket ends with 0 and no word.
	if directory := os.Getenv("PLUGIN_UNIX_SOCKET_DIR"); directory != "" {
		os.Setenv("TMPDIR", directory)
	}
	if directory := os.TempDir(); len(directory)+socketNameLength > maxSocketPath {
		fatal("%s is too long a directory for a unix socket, whose path may have at most %d bytes", directory, maxSocketPath)
	}
	var err error
	if p.state, err = openState(os.Getenv("TALON_STATE_SOCKET")); err != nil {
		fatal("the state's socket: %v", err)
	}
	if p.model, err = openModel(os.Getenv("TALON_MODEL_SOCKET")); err != nil {
		fatal("the socket for completions: %v", err)
	}
	serving := &server{plugin: p, stdout: os.Stdout, stderr: os.Stderr, listeners: map[*noticeQueue]bool{}}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: Handshake,
		Plugins:         goplugin.PluginSet{"plugin": &registered{server: serving}},
		GRPCServer:      serving.make,
		// go-plugin's own words; ours go to Log.
		Logger: Log.Named("go-plugin"),
	})
}

func fatal(format string, values ...interface{}) {
	Log.Error(fmt.Sprintf(format, values...))
	os.Exit(1)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// server is the services of a plugin.
type server struct {
	pluginpb.UnimplementedPluginServiceServer
	noticespb.UnimplementedNoticesServer
	plugin         *Plugin
	stdout, stderr *os.File
	restore        sync.Once
	// Read by each call, written by who waits for their end.
	calls sync.RWMutex

	mutex     sync.Mutex
	listeners map[*noticeQueue]bool
}

// registered is how go-plugin takes a service.
type registered struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (r *registered) GRPCServer(_ *goplugin.GRPCBroker, to *grpc.Server) error {
	pluginpb.RegisterPluginServiceServer(to, r.server)
	noticespb.RegisterNoticesServer(to, r.server)
	if source := r.server.plugin.events; source != nil {
		noticespb.RegisterEventSourceServer(to, &eventServer{source: source})
	}
	return nil
}

func (*registered) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, status.Error(codes.Unimplemented, "this is the plugin's side")
}

func (s *server) make(options []grpc.ServerOption) *grpc.Server {
	options = append(options, grpc.MaxRecvMsgSize(maxRequestBytes), grpc.UnaryInterceptor(s.around))
	made := grpc.NewServer(options...)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		s.drain()
		made.Stop()
	}()
	return made
}

// around stands around every call. go-plugin stops its server in the middle of the calls in flight when it is asked to end:
// they are waited for first. And it puts pipes in the place of stdout and stderr, which older hosts and older go-plugins
// never read, so that a plugin that prints a lot would hang; the host of this one reads the true ones.
func (s *server) around(ctx context.Context, request interface{}, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (interface{}, error) {
	s.restore.Do(func() { os.Stdout, os.Stderr = s.stdout, s.stderr })
	if info.FullMethod == "/plugin.GRPCController/Shutdown" {
		s.drain()
	}
	return next(ctx, request)
}

// drain waits for the calls in flight, but not for ever.
func (s *server) drain() {
	done := make(chan struct{})
	go func() {
		s.calls.Lock()
		s.calls.Unlock()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(grace):
		Log.Warn("calls are still in flight and will be cut off")
	}
}

func (s *server) Init(_ context.Context, request *pluginpb.PluginInitRequest) (*emptypb.Empty, error) {
	if err := s.plugin.Configure(request.ConfigJson); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &emptypb.Empty{}, nil
}

func (s *server) Capabilities(context.Context, *emptypb.Empty) (*pluginpb.PluginCapabilities, error) {
	return s.plugin.Capabilities(), nil
}

func (s *server) Execute(ctx context.Context, request *pluginpb.ToolCallRequest) (*pluginpb.ToolResultResponse, error) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	call := &Call{Context: ctx, ID: request.Id, args: request.Args, typed: request.ArgumentsJson, plugin: s.plugin}
	call.tell, call.output = s.tell, s.output
	call.Credentials = map[string]Credential{}
	for name, header := range request.CredentialHeaders {
		call.Credentials[name] = Credential{header.Header, header.Value}
	}
	answer := s.plugin.Call(call, request.Action)
	if size, may := proto.Size(answer), maxAnswerBytes(); size > may {
		answer = refusal(call, Refuse("the answer has %d bytes, %d may be; ask for less", size, may), request.Action)
	}
	return answer, nil
}

func maxAnswerBytes() int {
	largest, err := strconv.Atoi(os.Getenv("OPENTALON_GRPC_MAX_MSG_BYTES"))
	if err != nil {
		largest = defaultAnswerBytes
	}
	return largest - answerMarginBytes
}

func (s *server) Listen(_ *noticespb.ListenRequest, stream noticespb.Notices_ListenServer) error {
	queue := newNoticeQueue()
	s.mutex.Lock()
	s.listeners[queue] = true
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.listeners, queue)
	}()
	for {
		for notice := queue.take(); notice != nil; notice = queue.take() {
			if err := stream.Send(notice); err != nil {
				return err
			}
		}
		select {
		case <-queue.changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (s *server) tell(notice *noticespb.Notice) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for listener := range s.listeners {
		listener.put(notice)
	}
}

func (s *server) output(callID string, lines []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for listener := range s.listeners {
		listener.putOutput(callID, lines)
	}
}
