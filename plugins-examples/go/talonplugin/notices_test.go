package talonplugin

import (
	"fmt"
	"testing"

	"talonplugin/noticespb"
)

func TestACountWaitsForNoFurtherLine(t *testing.T) {
	queue := newNoticeQueue()
	for i := 0; i < maxNotices+3; i++ {
		queue.putOutput("a", []string{"x", "x"})
	}
	for i := 0; i < maxNotices; i++ {
		if output := queue.take().GetOutput(); len(output.Lines) != 2 || output.LeftOutLines != 0 {
			t.Fatalf("%d: %v", i, output)
		}
	}
	if output := queue.take().GetOutput(); output.CallId != "a" || len(output.Lines) != 0 || output.LeftOutLines != 6 {
		t.Errorf("%v", output)
	}
	if notice := queue.take(); notice != nil {
		t.Errorf("%v", notice)
	}
	<-queue.changed
}

func TestALineAfterAGapHasItsCount(t *testing.T) {
	queue := newNoticeQueue()
	for i := 0; i < maxNotices+1; i++ {
		queue.putOutput("a", []string{"x"})
	}
	queue.take()
	queue.putOutput("a", []string{"after"})
	var last *noticespb.CallOutput
	for notice := queue.take(); notice != nil; notice = queue.take() {
		last = notice.GetOutput()
	}
	if last.Lines[0] != "after" || last.LeftOutLines != 1 {
		t.Errorf("%v", last)
	}
}

func TestWhatIsCountedIsBounded(t *testing.T) {
	queue := newNoticeQueue()
	for i := 0; i < 3*maxNotices; i++ {
		queue.putOutput(fmt.Sprint(i), []string{"x"})
		queue.put(&noticespb.Notice{})
	}
	var counted uint64
	for notice := queue.take(); notice != nil; notice = queue.take() {
		counted += notice.GetOutput().GetLeftOutLines()
	}
	if counted != maxNotices {
		t.Errorf("%d lines", counted)
	}
}
