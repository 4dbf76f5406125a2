// What Go programs lean on, each once. Prints one line for what works, and ends with an error at what does not.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func works(what string) { fmt.Println("works:", what) }

func must(err error, what string) {
	if err != nil {
		fmt.Fprintln(os.Stderr, what+":", err)
		os.Exit(1)
	}
}

func main() {
	var group sync.WaitGroup
	results := make(chan int, 1000)
	for i := 0; i < 1000; i++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			results <- n
		}(i)
	}
	// Goroutines that sit in the kernel get threads of their own.
	for i := 0; i < 16; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			moment := syscall.Timespec{Nsec: 1000000}
			_ = syscall.Nanosleep(&moment, nil)
		}()
	}
	group.Wait()
	close(results)
	sum := 0
	for n := range results {
		sum += n
	}
	if sum != 499500 {
		must(fmt.Errorf("%d", sum), "goroutines")
	}
	works("goroutines and threads")

	directory, err := os.MkdirTemp("", "go-")
	must(err, "temporary directory")
	path := filepath.Join(directory, "http.sock")
	listener, err := net.Listen("unix", path)
	must(err, "listen")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello, socket")
	})}
	go func() { _ = server.Serve(listener) }()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	response, err := client.Get("http://socket/")
	must(err, "http")
	body, err := io.ReadAll(response.Body)
	must(err, "http body")
	if string(body) != "hello, socket" {
		must(fmt.Errorf("%q", body), "http body")
	}
	must(server.Close(), "close")
	works("http over a unix socket")

	out, err := exec.Command("/bin/echo", "child").Output()
	must(err, "child")
	if string(out) != "child\n" {
		must(fmt.Errorf("%q", out), "child")
	}
	works("children")

	_, _, err = ed25519.GenerateKey(rand.Reader)
	must(err, "randomness")
	works("randomness and keys")

	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGUSR1)
	must(syscall.Kill(os.Getpid(), syscall.SIGUSR1), "signal to itself")
	<-arrived
	works("signals")

	data := make([][]byte, 0)
	for i := 0; i < 200; i++ {
		data = append(data, make([]byte, 1<<20))
		data = data[max(0, len(data)-8):]
	}
	runtime.GC()
	works("garbage collection")

	_, err = user.Current()
	must(err, "user")
	if time.Now().Year() < 2000 || runtime.NumCPU() < 1 {
		must(fmt.Errorf("no clock or no processor"), "system")
	}
	works("clock, processors, user")

	if _, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second); err == nil {
		must(fmt.Errorf("it reached the internet"), "tcp")
	} else {
		works("nothing of the internet: " + err.Error())
	}
	fmt.Println("all of it works")
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}
