package summary

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// appendixShare is the share of a summary's budget for the format's appendix.
const appendixShare = 0.5

// appendixShares are tried in turn, until the names of the last request fit beside the appendix. Beside an extraction,
// which quotes requests and errors itself, it has at most extractedShares.
var (
	appendixShares  = []float64{appendixShare, appendixShare / 4, 0}
	extractedShares = []float64{appendixShare / 2, appendixShare / 4, 0}
)

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

// listsShare is the share of a summary's budget for its lists of files. Pi bounds them by nothing; at its budget of
// 13,000 tokens this is some 150 files. leastLists is room in tokens that the lists have of a smaller budget.
const (
	listsShare = 0.125
	leastLists = 120
)

// fileLists returns the files that were read and the files that were modified, including those in the previous summary.
// A modified file is not listed as read.
func (w *writer) fileLists(room int) string {
	calls := slices.Clone(w.e.Calls)
	for _, m := range w.e.Messages {
		calls = append(calls, m.Content...)
	}
	var read, modified fileList
	for _, p := range slices.Backward(calls) {
		switch path, changes := FileOf(p); {
		case path == "":
		case changes:
			modified.add(path)
		default:
			read.add(path)
		}
	}
	modified.addAll(w.previous, prose.ModifiedTag)
	read.addAll(w.previous, prose.ReadTag)
	read.paths = slices.DeleteFunc(read.paths, func(path string) bool { return slices.Contains(modified.paths, path) })
	room = min(room, max(int(listsShare*float64(w.budget)), leastLists))
	changed := modified.text(prose.ModifiedTag, room)
	return strings.TrimSpace(read.text(prose.ReadTag, room-tokens.Estimate(changed)) + "\n\n" + changed)
}

// fileList is a list of files, the newest first.
type fileList struct {
	paths []string
	more  int // older files that are only counted
}

func (l *fileList) add(path string) {
	if !slices.Contains(l.paths, path) {
		l.paths = append(l.paths, path)
	}
}

// moreFiles is the last line of a list of files that has no room for all, and moreFilesLine matches it.
const moreFiles = "… and %d more, older: conversation_search finds their calls"

var moreFilesLine = regexp.MustCompile(`^… and (\d+) more\b`)

// addAll adds the files of a list in a summary.
func (l *fileList) addAll(summary, tag string) {
	_, text, found := strings.Cut(summary, "<"+tag+">\n")
	text, _, closed := strings.Cut(text, "\n</"+tag+">")
	if !found || !closed {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if found := moreFilesLine.FindStringSubmatch(line); found != nil {
			l.more, _ = strconv.Atoi(found[1])
			continue
		}
		l.add(line)
	}
}

// text returns the list between tags: sorted if all files have room, as in Pi, else the newest first.
func (l *fileList) text(tag string, room int) string {
	room -= tokens.Estimate("\n\n<" + tag + ">\n\n</" + tag + ">")
	costs, sum := make([]int, len(l.paths)), 0
	for i, path := range l.paths {
		costs[i] = tokens.Estimate(path+"\n") + 1
		sum += costs[i]
	}
	lines := l.paths
	if sum > room || l.more > 0 {
		room -= tokens.Estimate(moreFiles) + 1
		n := 0
		for ; n < len(costs) && room >= costs[n]; n++ {
			room -= costs[n]
		}
		lines = append(lines[:n:n], fmt.Sprintf(moreFiles, l.more+len(costs)-n))
	} else {
		slices.Sort(lines)
	}
	if len(lines) == 0 || room < 0 {
		return ""
	}
	return "<" + tag + ">\n" + strings.Join(lines, "\n") + "\n</" + tag + ">"
}
