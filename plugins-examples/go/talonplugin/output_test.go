package talonplugin

import (
	"strings"
	"testing"

	"talonplugin/noticespb"
)

func TestOutputComesInLinesAndWhatIsNotTakenIsCounted(t *testing.T) {
	var told []*noticespb.CallOutput
	takes := true
	call := NewCall(nil)
	call.tell = func(notice *noticespb.Notice) bool {
		if takes {
			told = append(told, notice.GetOutput())
		}
		return takes
	}
	call.Output("one\r\ntwo\n" + strings.Repeat("ä", 4096) + "\n")
	takes = false
	call.Output("lost\nlost")
	takes = true
	call.Output("last")
	if len(told) != 2 {
		t.Fatalf("%d messages", len(told))
	}
	if lines := told[0].Lines; len(lines) != 3 || lines[1] != "two" || lines[2] != strings.Repeat("ä", 2048) {
		t.Errorf("%q", lines)
	}
	if told[1].LeftOutLines != 2 || told[1].CallId != "call" {
		t.Errorf("%v", told[1])
	}
}
