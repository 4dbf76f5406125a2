package talonplugin

import (
	"strings"
	"unicode/utf8"
)

// How much of a line of output is sent, which is what hosts keep, and the lines of one notice, which has 16 KiB at most.
const (
	maxLineBytes   = 4096
	maxOutputBytes = 8 << 10
	maxOutputLines = 256
)

// batches are the lines of a text, in lists that fit into one notice each.
func batches(text string) [][]string {
	var all [][]string
	var batch []string
	size := 0
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line = cutLine(strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD"))
		if len(batch) > 0 && size+len(line) > maxOutputBytes || len(batch) == maxOutputLines {
			all, batch, size = append(all, batch), nil, 0
		}
		batch = append(batch, line)
		size += len(line)
	}
	return append(all, batch)
}

// cutLine cuts in whole characters.
func cutLine(line string) string {
	if len(line) <= maxLineBytes {
		return line
	}
	end := maxLineBytes
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end]
}
