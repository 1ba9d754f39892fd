package lab

import (
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// Source names a kind of message that has said an entity before an answer uses it. A message may be of several kinds:
// the result of a command that failed is of a command, and of an error.
type Source string

// The kinds of messages.
const (
	Requests  Source = "requests"  // of the user
	Decisions Source = "decisions" // answers that decide
	Files     Source = "files"     // calls that read or change a file, and their results
	Commands  Source = "commands"  // other calls, and their results
	Errors    Source = "errors"    // results that say what failed
)

// Sources lists the kinds.
var Sources = []Source{Requests, Decisions, Files, Commands, Errors}

// sourcesOf returns the kinds of each message.
func sourcesOf(messages []recall.Message) [][]Source {
	ofFile := map[string]bool{} // by the ids of calls
	all := make([][]Source, len(messages))
	for i, m := range messages {
		all[i] = sources(m, ofFile)
	}
	return all
}

func sources(m recall.Message, ofFile map[string]bool) (all []Source) {
	said := map[Source]bool{}
	for _, p := range m.Content {
		switch {
		case m.Role == recall.User:
			said[Requests] = true
		case p.Type == recall.ToolCall:
			path, _ := summary.FileOf(p)
			ofFile[p.CallID] = path != ""
			said[fileOr(path != "")] = true
		case p.Type == recall.ToolReturn:
			said[fileOr(ofFile[p.CallID])] = true
			said[Errors] = said[Errors] || p.IsError || m.IsErr || endsInError(p.Text)
		case p.Type == recall.Text && m.Role == recall.Assistant:
			said[Decisions] = said[Decisions] || prose.Decides(p.Text)
		}
	}
	for _, s := range Sources {
		if said[s] {
			all = append(all, s)
		}
	}
	return all
}

func fileOr(file bool) Source {
	if file {
		return Files
	}
	return Commands
}

// endBytes is how much of a result's end is searched for what failed: commands say it last.
const endBytes = 2_000

func endsInError(text string) bool {
	for line := range strings.Lines(text[max(len(text)-endBytes, 0):]) {
		if isErrorLine(line) {
			return true
		}
	}
	return false
}
