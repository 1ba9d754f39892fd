package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

type openArgs struct {
	FileRequests   list[fileRequest] `json:"file_requests"`
	CloseAllOthers flag              `json:"close_all_others"`
	IncludeContent *flag             `json:"include_content"`

	// The fields of a single request, which some models write outside of file_requests.
	FileName text    `json:"file_name" schema:"-"`
	Line     *number `json:"line" schema:"-"`
	Offset   *number `json:"offset" schema:"-"`
	Length   *number `json:"length" schema:"-"`
	Char     *number `json:"char" schema:"-"`
}

// requested returns the requests of a call.
func (a openArgs) requested() []fileRequest {
	if a.FileName == "" {
		return a.FileRequests
	}
	return append(a.FileRequests, fileRequest{a.FileName, a.Line, a.Offset, a.Length, a.Char})
}

// fileRequest names a file and the lines to view. The lines begin at a line (from 1) or at an offset (from 0); what a
// result shows of the first one, at a character (from 0). A bare string names a whole file.
type fileRequest struct {
	FileName text    `json:"file_name"`
	Line     *number `json:"line"`
	Offset   *number `json:"offset"`
	Length   *number `json:"length"`
	Char     *number `json:"char" schema:"-"` // results name it where it is needed
}

func (r *fileRequest) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, &r.FileName)
	case '{':
		type plain fileRequest // the same type without this method
		return decode("a file request", raw, (*plain)(r))
	}
	return db.Invalid("Invalid file request type: %s. Give %s.", jsonType(raw), aRequest)
}

// aRequest is an example of a file request.
var aRequest = literal(nextRequest{FileName: "folder/name.txt"})

func jsonType(raw []byte) string {
	switch raw[0] {
	case '[':
		return "list"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

func (m Memories) openFiles(ctx context.Context, c Caller, a openArgs) (Result, error) {
	content := bool(deref(a.IncludeContent, flag(c.Unprompted)))
	requests, err := openRequests(a.requested(), content)
	if err != nil {
		return Result{}, err
	}
	bounds, err := m.readBounds(ctx, c)
	if err != nil {
		return Result{}, err
	}
	chars := c.readChars(bounds)
	args := files.OpenArgs{Requests: requests, CloseOthers: bool(a.CloseAllOthers), Limits: c.Agent.Limits(),
		ContentChars: max(chars, files.OpenContentChars)}
	if bounds.Refuses() {
		args.Admit, args.AdmitChars = func(all []files.Wanted) error { return admit(bounds, c.has(), all) }, gateChars(bounds)
	}
	o, err := m.Files.Open(ctx, c.Org, c.folders(), args)
	if err != nil {
		return Result{}, withoutOpening(err, requests)
	}
	next, err := m.nextShown(ctx, c)
	if err != nil {
		return Result{}, err
	}
	for i, f := range o.Files {
		if offset, ok := next[f.ID]; ok {
			o.Files[i].ShownNext = &offset
		}
	}
	return Result{Text: openText(o, content, bounds, chars), Files: o.Files, chars: chars}, nil
}

// nextShown maps the id of each open file that the caller's prompt shows in part → the offset of the first line that it
// does not show.
func (m Memories) nextShown(ctx context.Context, c Caller) (map[string]int, error) {
	if m.Agents != nil {
		return m.Agents.NextShown(ctx, c.Org, c.Agent.ID, c.Conversation)
	}
	shown, err := m.Files.Directories(ctx, c.Org, c.folders(), c.Agent.Limits())
	return files.NextShown(shown), err
}

// openRequests checks the requests as far as it can without reading the files.
func openRequests(wanted []fileRequest, content bool) ([]files.OpenRequest, error) {
	if len(wanted) == 0 {
		return nil, db.Invalid("No file requests provided: give file_requests=[%s].", aRequest)
	}
	var requests []files.OpenRequest
	for _, r := range wanted {
		if r.FileName == "" {
			return nil, db.Invalid("A file request has no file_name. Give one, such as %s.", aRequest)
		}
		offset, err := r.offset()
		if err != nil {
			return nil, err
		}
		char := int(deref(r.Char, 0))
		switch {
		case char < 0:
			return nil, db.Invalid("Char for file %s must be >= 0, got %d", echo(string(r.FileName)), char)
		case char > 0 && !content:
			return nil, db.Invalid("Char for file %s needs include_content=true: your context shows whole lines.",
				echo(string(r.FileName)))
		}
		requests = append(requests, files.OpenRequest{FileName: string(r.FileName), Offset: offset, Length: (*int)(r.Length),
			Char: char})
	}
	return requests, nil
}

// offset checks the range of a request and returns its first line, counted from 0; nil means the start of the file. A
// length without a start counts from the first line.
func (r fileRequest) offset() (*int, error) {
	name := echo(string(r.FileName))
	switch {
	case r.Line != nil && r.Offset != nil:
		return nil, db.Invalid("Give line %d or offset %d for file %s, not both: line counts from 1, offset from 0.",
			*r.Line, *r.Offset, name)
	case r.Line != nil && *r.Line < 1:
		return nil, db.Invalid("Line for file %s must be >= 1 (lines count from 1), got %d", name, *r.Line)
	case r.Offset != nil && *r.Offset < 0:
		return nil, db.Invalid("Offset for file %s must be >= 0 (0-indexed), got %d", name, *r.Offset)
	case r.Length != nil && *r.Length < 1:
		return nil, db.Invalid("Length for file %s must be >= 1, got %d", name, *r.Length)
	case r.Line != nil:
		return new(int(*r.Line) - 1), nil
	case r.Length != nil && r.Offset == nil:
		return new(0), nil
	}
	return (*int)(r.Offset), nil
}

// openText names the opened files. If content is true, it also shows their numbered lines. If a view ends too early, it
// gives the call that opens the rest. A view ends too early at the limit of the prompt or, with content, at the limit
// of the result, chars, or of the policy.
func openText(o files.Opening, content bool, bounds *policy.ReadBounds, chars int) string {
	o.Files = settled(o.Files)
	if content {
		for i, f := range o.Files {
			o.Files[i] = bounded(f, bounds)
		}
		return most(chars, chars, func(chars int) string {
			views := shortened(o.Files, chars)
			return openedLine(o.Files) + closedNotes(o) + restNotes(views, true, bounds) + sections(views)
		})
	}
	views := slices.Clone(o.Files)
	for i, f := range views {
		views[i].NextOffset = f.ShownNext
	}
	return openedLine(o.Files) + closedNotes(o) + restNotes(views, false, nil)
}

// settled removes negative offsets. Such an offset means that only the end of a line is not shown.
func settled(opened []files.Opened) []files.Opened {
	opened = slices.Clone(opened)
	for i, f := range opened {
		if f.NextOffset != nil && *f.NextOffset < 0 {
			opened[i].NextOffset = nil
		}
	}
	return opened
}

func closedNotes(o files.Opening) string {
	var notes string
	if n := len(o.ClosedOthers); n > 0 {
		notes += fmt.Sprintf("\nNote: Closed %d file(s) due to close_all_others=True: %s", n, fileNames(o.ClosedOthers))
	}
	if n := len(o.ClosedToLimit); n > 0 {
		notes += fmt.Sprintf("\nNote: Closed %d least recently used file(s) due to open file limit: %s", n,
			fileNames(o.ClosedToLimit))
	}
	return notes
}

func restNotes(views []files.Opened, content bool, bounds *policy.ReadBounds) string {
	var notes strings.Builder
	for _, f := range views {
		switch {
		case content && f.LineCut:
			notes.WriteString("\n" + bounds.Sentence(policy.Rest{File: fileName(f.Name), First: f.FirstLine, Last: f.FirstLine,
				Lines: f.Lines, Char: f.Request.Char + shownChars(f.Content), Call: lineCall(f)}))
		case f.NextOffset != nil:
			notes.WriteString("\n" + bounds.Sentence(policy.Rest{File: fileName(f.Name), First: f.FirstLine,
				Last: *f.NextOffset, Lines: f.Lines, Call: nextCall(f, content)}))
		}
	}
	return notes.String()
}

func openedLine(opened []files.Opened) string {
	var summaries []string
	for _, f := range opened {
		summaries = append(summaries, openedFile(f))
	}
	if len(opened) == 1 {
		return "* Opened " + summaries[0]
	}
	return fmt.Sprintf("* Opened %d files: %s", len(opened), joined(summaries))
}

// openedFile names a file, the requested lines that the file has, and the lines that were open before.
func openedFile(f files.Opened) string {
	s := fileName(f.Name)
	if f.Request.Offset != nil {
		lines := files.LineRange{Offset: *f.Request.Offset, Length: f.Request.Length}
		if f.NextOffset == nil && lines.Length != nil && f.LastLine > lines.Offset {
			lines.Length = new(min(*lines.Length, f.LastLine-lines.Offset))
		}
		s += " (" + lineRange(lines) + ")"
	}
	switch {
	case f.Previous == nil:
	case *f.Previous == files.LineRange{}:
		s += " (previously full file)"
	default:
		s += " (previously " + lineRange(*f.Previous) + ")"
	}
	return s
}

// lineRange describes a range of lines, counted from 1 with both ends included.
func lineRange(r files.LineRange) string {
	if r.Length == nil {
		return fmt.Sprintf("lines %d-end", r.Offset+1)
	}
	return fmt.Sprintf("lines %d-%d", r.Offset+1, r.Offset+*r.Length)
}

// shownChars returns how many characters of its line a content shows that has only a part of one.
func shownChars(content string) int {
	if first, rest, ok := strings.Cut(content, "\n"); ok && strings.HasPrefix(first, "[") {
		content = rest
	}
	line, _, _ := strings.Cut(content, "\n")
	_, text, _ := strings.Cut(line, ": ")
	for _, mark := range []string{frame.Truncated, frame.LineTruncated} {
		if cut, ok := strings.CutSuffix(text, mark); ok {
			text = cut
			break
		}
	}
	return utf8.RuneCountInString(text)
}

// lineCall returns the call that goes on within a line of which a content shows a part.
func lineCall(f files.Opened) string {
	return openCall(nextRequest{FileName: f.Name, Line: f.FirstLine, Length: f.Request.Length,
		Char: f.Request.Char + shownChars(f.Content)}, true)
}

// nextCall returns the call that opens the rest of a request.
func nextCall(f files.Opened, content bool) string {
	next := nextRequest{FileName: f.Name, Line: *f.NextOffset + 1}
	if f.Request.Length != nil {
		next.Length = new(deref(f.Request.Offset, 0) + *f.Request.Length - *f.NextOffset)
	}
	return openCall(next, content)
}

// sections shows the contents of files under heads. Each line of a content begins with a number or "[", so that no line
// can look like a head.
func sections(views []files.Opened) string {
	var b strings.Builder
	for _, f := range views {
		b.WriteString("\n\n=== " + fileName(f.Name) + " ===")
		for l := range strings.SplitSeq(cmp.Or(f.Content, emptiness(f)), "\n") {
			b.WriteString("\n" + line(l))
		}
	}
	return b.String()
}

func emptiness(f files.Opened) string {
	if f.NextOffset != nil {
		return "(its lines do not fit here)"
	}
	return "(no lines)"
}

// shortened cuts the contents of files, the last files first, until they have at most chars characters together.
func shortened(opened []files.Opened, chars int) []files.Opened {
	var views []files.Opened
	for i, f := range opened {
		f = shorter(f, chars, i == 0)
		chars -= utf8.RuneCountInString(f.Content)
		views = append(views, f)
	}
	return views
}

type closeArgs struct {
	FileNames list[text] `json:"file_names"`
	All       flag       `json:"all"`
}

func (m Memories) closeFiles(ctx context.Context, c Caller, a closeArgs) (Result, error) {
	var closed []string
	var err error
	switch {
	case bool(a.All) && len(a.FileNames) > 0:
		return Result{}, db.Invalid("Give either file_names or all=true, not both.")
	case bool(a.All):
		closed, err = m.Files.CloseAll(ctx, c.Org, c.folders())
	case len(a.FileNames) == 0:
		return Result{}, db.Invalid(`No files named. Give file_names, such as ["folder/name.txt"], or all=true.`)
	default:
		closed, err = m.Files.Close(ctx, c.Org, c.folders(), plain(a.FileNames))
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Text: closeText(closed, bool(a.All))}, nil
}

func closeText(closed []string, all bool) string {
	switch {
	case len(closed) == 0 && all:
		return "No files were open."
	case len(closed) == 0:
		return "None of these files was open."
	}
	return fmt.Sprintf("* Closed %s: %s", count(len(closed), "file"), fileNames(closed))
}
