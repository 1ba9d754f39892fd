package lab

import (
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// Source is a kind of message that an entity may come from before an answer uses it. A message may be of several kinds:
// the result of a failed command belongs to commands and to errors.
type Source string

// The kinds of messages.
const (
	Requests  Source = "requests"  // messages of the user
	Decisions Source = "decisions" // answers with a decision
	Files     Source = "files"     // calls that read or change a file, and their results
	Commands  Source = "commands"  // other calls, and their results
	Errors    Source = "errors"    // results that say what failed
)

// Sources lists the kinds.
var Sources = []Source{Requests, Decisions, Files, Commands, Errors}

// sourcesOf returns the kinds of each message.
func sourcesOf(messages []recall.Message) [][]Source {
	ofFile := map[string]bool{} // calls of files, by their ids
	all := make([][]Source, len(messages))
	for i, m := range messages {
		all[i] = sources(m, ofFile)
	}
	return all
}

func sources(m recall.Message, ofFile map[string]bool) (all []Source) {
	kinds := map[Source]bool{}
	for _, p := range m.Content {
		switch {
		case m.Role == recall.User:
			kinds[Requests] = true
		case p.Type == recall.ToolCall:
			path, _ := summary.FileOf(p)
			ofFile[p.CallID] = path != ""
			kinds[fileOr(path != "")] = true
		case p.Type == recall.ToolReturn:
			kinds[fileOr(ofFile[p.CallID])] = true
			kinds[Errors] = kinds[Errors] || p.IsError || m.IsErr || endsInError(p.Text)
		case p.Type == recall.Text && m.Role == recall.Assistant:
			kinds[Decisions] = kinds[Decisions] || prose.Decides(p.Text)
		}
	}
	for _, s := range Sources {
		if kinds[s] {
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

// endBytes is how much of a result's end is searched for failures, because commands report them last.
const endBytes = 2_000

func endsInError(text string) bool {
	for line := range strings.Lines(text[max(len(text)-endBytes, 0):]) {
		if isErrorLine(line) {
			return true
		}
	}
	return false
}
