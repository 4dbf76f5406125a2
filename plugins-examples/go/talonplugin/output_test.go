package talonplugin

import (
	"strings"
	"testing"
)

func TestOutputComesInLines(t *testing.T) {
	told := map[string][]string{}
	call := NewCall(nil)
	call.output = func(callID string, lines []string) { told[callID] = append(told[callID], lines...) }
	call.Output("one\r\ntwo\n" + strings.Repeat("ä", 4096) + "\n")
	lines := told["call"]
	if len(lines) != 3 || lines[0] != "one" || lines[1] != "two" || lines[2] != strings.Repeat("ä", 2048) {
		t.Errorf("%q", lines)
	}
}
