package lab

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Reread is a result that the agent read again, by the same call or by another read of the same file, when a policy had
// taken it out of view.
type Reread struct {
	Position int    `json:"position"` // of the answer that reads again
	Tool     string `json:"tool"`
	What     string `json:"what"`   // the file's path, or the beginning of the call's arguments
	Result   int    `json:"result"` // position of the result that was read before
	Step     string `json:"step"`   // that took it out of view
	How      string `json:"how"`    // shortened, cleared or summarized
}

// How a result was out of view.
const (
	shortened  = "shortened"  // its beginning or end is shown
	clearedAll = "cleared"    // nothing of it is shown
	summarized = "summarized" // its message left, and a summary stands for it
)

// repeat is a call of the recording that reads again what earlier results showed.
type repeat struct {
	tool, what string
	results    []int // indexes of the messages with the results, ascending
}

// repeatsOf returns for each message the calls that read again what an earlier result showed. After a change of a file,
// reading it again is no repetition, nor is any command.
func repeatsOf(messages []recall.Message) [][]repeat {
	type call struct {
		key  string
		file bool
	}
	all := make([][]repeat, len(messages))
	open := recall.OpenCalls[call]{}
	files, commands := map[string][]int{}, map[string][]int{} // key → indexes of results
	for i, m := range messages {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				key, changes := summary.FileOf(p)
				isFile := key != "" && !changes
				before := files
				what := key
				if !isFile {
					before, what = commands, clipped(strings.Join(strings.Fields(p.Input), " "), whatChars)
					key = p.Name + "\x00" + canonical(p.Input)
				}
				if results := before[key]; len(results) > 0 {
					all[i] = append(all[i], repeat{p.Name, what, append([]int(nil), results...)})
				}
				open.Add(p.CallID, call{key, isFile})
				if path, changes := changedBy(p); changes {
					delete(files, path)
					clear(commands)
					if path == "" {
						clear(files)
					}
				}
			case recall.ToolReturn:
				if c, ok := open.Answer(p.CallID); ok && c.file {
					files[c.key] = append(files[c.key], i)
				} else if ok {
					commands[c.key] = append(commands[c.key], i)
				}
			}
		}
	}
	return all
}

// whatChars bounds the arguments that name a call.
const whatChars = 100

// changing matches tools that change files, and actions of SWE-agent that do.
var changing = regexp.MustCompile(`(?i)edit|write|patch|create|insert|replace|delete|remove|move|rename`)

// changedBy reports whether a call changes a file, and which; the path is empty if the call does not name it.
func changedBy(p recall.Part) (path string, changes bool) {
	if path, changes = summary.FileOf(p); path != "" {
		return path, changes
	}
	name := p.Name
	if name == "action" {
		name, _, _ = strings.Cut(strings.TrimPrefix(p.Input, `{"action":"`), " ")
	}
	return "", changing.MatchString(name)
}

// canonical returns a call's arguments in one form: the order of fields, and spaces, mean nothing in JSON.
func canonical(input string) string {
	var value any
	if json.Unmarshal([]byte(input), &value) != nil {
		return strings.TrimSpace(input)
	}
	return string(chat.Encode(value))
}
