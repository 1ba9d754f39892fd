package summary

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
)

// maxPathBytes bounds the path of a called file.
const maxPathBytes = 300

// These are the names of tools that read a file, and of tools that change a file.
var (
	readingTool  = regexp.MustCompile(`(?i)read|open|view|cat\b|show_file|get_file`)
	changingTool = regexp.MustCompile(`(?i)write|edit|create|patch|replace|insert|update_file|modify|save|delete_file`)
)

// FileOf returns the path of the file that a tool call reads or changes, judged by the tool's name and the arguments.
// The path is empty if the part is no such call.
func FileOf(p recall.Part) (path string, changes bool) {
	changes = changingTool.MatchString(p.Name)
	if p.Type != recall.ToolCall || !changes && !readingTool.MatchString(p.Name) {
		return "", false
	}
	var args map[string]any
	if json.Unmarshal([]byte(p.Input), &args) != nil {
		return "", false
	}
	for _, name := range []string{"path", "file_path", "filepath", "filename", "file", "file_name", "relative_path"} {
		if s, ok := args[name].(string); ok && s != "" && len(s) <= maxPathBytes && !strings.ContainsAny(s, "\n\r<>") {
			return prose.Clean(s), changes
		}
	}
	return "", false
}
