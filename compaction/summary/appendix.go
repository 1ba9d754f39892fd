package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// appendixShare is the share of a summary's budget for the format's appendix.
const appendixShare = 0.5

// appendixShares are tried in turn, until the names of the last request fit beside the appendix.
var appendixShares = []float64{appendixShare, appendixShare / 4, 0}

// Limits of an appendix, in characters per line.
const (
	failureChars = 240
	recentChars  = 600
)

// appendix returns what the format appends to any summary, within a share of the budget. Every line is whole, and lines
// that do not fit are counted.
func (w *writer) appendix(share float64) string {
	f := cmp.Or(w.e.Format, &prose.Format{})
	if share == 0 {
		return ""
	}
	room := int(share * float64(w.budget))
	var b strings.Builder
	add := func(block string) {
		if block != "" {
			b.WriteString("\n\n" + block)
			room -= tokens.Estimate("\n\n" + block)
		}
	}
	add(listed(prose.NamedHeading, w.named(), 1<<10, room))
	if f.Files {
		add(w.fileLists(room))
	}
	if f.Failures > 0 {
		add(listed(prose.FailuresHeading, w.failures(), min(f.Failures, 1<<10), room))
	}
	if f.RecentTurns > 0 {
		add(listed(prose.RecentHeading, w.recentTurns(f.RecentTurns), 1<<10, room))
	}
	return b.String()
}

// listed returns a heading and the newest lines, in order: at most most lines, and room tokens. It is empty without
// lines.
func listed(heading string, lines []string, most, room int) string {
	if len(lines) == 0 {
		return ""
	}
	more := "- …and %d more"
	room -= tokens.Estimate(heading+"\n") + tokens.Estimate(fmt.Sprintf(more, len(lines))) + 1
	from := len(lines)
	for from > 0 && len(lines)-from < most {
		if room -= tokens.Estimate(lines[from-1] + "\n"); room < 0 {
			break
		}
		from--
	}
	if from == len(lines) {
		return ""
	}
	all := slices.Concat([]string{heading}, lines[from:])
	if from > 0 {
		all = append(all, fmt.Sprintf(more, from))
	}
	return strings.Join(all, "\n")
}

// named returns a line for each file that the summary names.
func (w *writer) named() (lines []string) {
	for _, n := range w.e.Named {
		lines = append(lines, fmt.Sprintf("- %s: seq %d", prose.OneLine(n.Path, failureChars), n.Seq))
	}
	return lines
}

// failures returns a line for each failed call; equal failures have one line.
func (w *writer) failures() (lines []string) {
	names := prose.CallNames(w.e.Messages)
	for _, m := range w.e.Messages {
		for _, p := range m.Content {
			if p.Type != recall.ToolReturn || !p.Failed() {
				continue
			}
			line := fmt.Sprintf("- %s: %s", cmp.Or(names[p.CallID], "a tool"), prose.OneLine(failureText(p), failureChars))
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// recentTurns returns lines about the newest turns that leave.
func (w *writer) recentTurns(turns int) (lines []string) {
	from := len(w.e.Messages)
	for n := 0; from > 0 && n < turns; {
		if from--; w.e.Messages[from].Role == recall.User {
			n++
		}
	}
	names := prose.CallNames(w.e.Messages)
	for _, m := range w.e.Messages[from:] {
		if m.Role != recall.User && m.Role != recall.Assistant || prose.IsWarning(m) {
			continue
		}
		if text := prose.Spoken(m, names, true); text != "" {
			lines = append(lines, fmt.Sprintf("- [%d] %s: %s", m.Seq, m.Role, prose.OneLine(prose.Unmarked(text), recentChars)))
		}
	}
	return lines
}

// fileLists returns the files that were read and the files that were modified, including those in the previous summary,
// sorted. A modified file is not listed as read.
func (w *writer) fileLists(room int) string {
	read, modified := listIn(w.previous, prose.ReadTag), listIn(w.previous, prose.ModifiedTag)
	calls := slices.Clone(w.e.Calls)
	for _, m := range w.e.Messages {
		calls = append(calls, m.Content...)
	}
	for _, p := range calls {
		switch path, changes := FileOf(p); {
		case path == "":
		case changes:
			modified = append(modified, path)
		default:
			read = append(read, path)
		}
	}
	slices.Sort(modified)
	modified = slices.Compact(modified)
	slices.Sort(read)
	read = slices.DeleteFunc(slices.Compact(read), func(path string) bool { return slices.Contains(modified, path) })
	changed := tagList(prose.ModifiedTag, modified, room)
	return strings.TrimSpace(tagList(prose.ReadTag, read, room-tokens.Estimate(changed)) + "\n\n" + changed)
}

func listIn(text, tag string) []string {
	_, text, found := strings.Cut(text, "<"+tag+">\n")
	text, _, closed := strings.Cut(text, "\n</"+tag+">")
	if !found || !closed {
		return nil
	}
	return strings.Split(text, "\n")
}

func tagList(tag string, paths []string, room int) string {
	if len(paths) == 0 {
		return ""
	}
	room -= tokens.Estimate("\n\n<" + tag + ">\n\n</" + tag + ">")
	n := 0
	for ; n < len(paths); n++ {
		if room -= tokens.Estimate(paths[n]+"\n") + 1; room < 0 {
			break
		}
	}
	if n == 0 {
		return ""
	}
	return "<" + tag + ">\n" + strings.Join(paths[:n], "\n") + "\n</" + tag + ">"
}
