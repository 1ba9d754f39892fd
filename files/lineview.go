package files

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// View is a range of a file's lines as a model reads it: a header, then each line after its number in the file.
type View struct {
	FirstLine  int    // 1-based; 0 in a view of an empty file
	LastLine   int    // the last line shown, in part at least; FirstLine-1 if the limit leaves room for none
	TotalLines int    // of the file
	Text       string // without a line end at its end
	Truncated  bool   // something of what was asked for is not shown
	NextOffset int    // 0-based offset of the first requested line that is not shown at all, -1 if none
}

// Excerpt is the lines First to Last of a file of Total lines, 1-based and inclusive. First 0 is the file's start, Last
// 0 its end.
type Excerpt struct {
	First, Last, Total int
	Pages              Paging
	LimitChars         int // of the view, header and notes included
}

// Render returns a view of an excerpt. The segments are those of the file from the one in which line First begins. A
// view is cut between lines, and within a line only if that is its first; it then names the lines it shows, and the
// offset to go on from. The header names the pages of a file that has pages. ErrInvalid if the file has no line First,
// or Last comes before it; a Last past the end is the end.
func Render(segments iter.Seq2[grep.Segment, error], e Excerpt) (View, error) {
	asked := e.First <= 1 && e.Last <= 0
	first, last, total, pages, limitChars := max(e.First, 1), e.Last, e.Total, e.Pages, e.LimitChars
	toEnd := last <= 0
	if toEnd || last > total {
		last = total
	}
	if total == 0 && first == 1 {
		return View{Text: clip("[Viewing file start (out of 0 lines)]", max(limitChars, 0)), NextOffset: -1}, nil
	}
	if first > total {
		return View{}, db.Invalid(
			"The file has only %d lines, but requested offset %d is out of range. Ask for an offset below %d.",
			total, first, max(total, 1))
	}
	if last < first {
		return View{}, db.Invalid("Invalid range: line %d comes after line %d. Ask for a length of at least 1.", first, last)
	}
	v := viewer{first: first, last: last, total: total, pages: pages, limit: max(limitChars, 0)}
	if err := v.read(segments); err != nil {
		return View{}, err
	}
	switch {
	case asked:
		return v.view(fmt.Sprintf("[Viewing file start (out of %d lines%s)]", total, pages.note(first, last))), nil
	case toEnd:
		return v.view(fmt.Sprintf("[Viewing lines %d to end (out of %d lines%s)]",
			first, total, pages.note(first, last))), nil
	}
	return v.view(v.header(last)), nil
}

const cutMark = "...[TRUNCATED]"

// viewer collects numbered lines, each after a line end, until they pass the limit.
type viewer struct {
	first, last, total, limit int
	pages                     Paging

	body      strings.Builder
	chars     int       // in body
	line      int       // being read; 0 before the first segment
	within    bool      // line has begun
	ends      []lineEnd // of the whole lines in body
	overflown bool
	lineChars int // of line first, all of it
}

// lineEnd is where a whole line ends in the body.
type lineEnd struct{ bytes, chars int }

// read stops as soon as it knows what fits; of a first line that does not fit it reads on, for its length.
func (v *viewer) read(segments iter.Seq2[grep.Segment, error]) error {
	for segment, err := range segments {
		if err != nil {
			return err
		}
		if v.line == 0 {
			v.line = segment.FirstLine
		}
		for text := range strings.Lines(segment.Text) {
			if v.line > v.last || v.overflown && v.line > v.first {
				return nil
			}
			v.add(text)
		}
	}
	if v.within {
		v.end()
	}
	return nil
}

// add takes a line, or a part of one.
func (v *viewer) add(text string) {
	text, ended := strings.CutSuffix(text, "\n")
	chars := utf8.RuneCountInString(text)
	if v.line == v.first {
		v.lineChars += chars
	}
	if v.line >= v.first && !v.overflown {
		if !v.within {
			n, _ := fmt.Fprintf(&v.body, "\n%d: ", v.line)
			v.chars += n
		}
		v.body.WriteString(text)
		v.chars += chars
		v.overflown = v.chars > v.limit
	}
	v.within = true
	if ended {
		v.end()
	}
}

func (v *viewer) end() {
	if v.line >= v.first && !v.overflown {
		v.ends = append(v.ends, lineEnd{v.body.Len(), v.chars})
	}
	v.line++
	v.within = false
}

func (v *viewer) header(last int) string {
	return fmt.Sprintf("[Viewing lines %d to %d (out of %d lines%s)]", v.first, last, v.total, v.pages.note(v.first, last))
}

// view is all that was read under header if that fits, else as many whole lines as fit with a note, else a part of the
// first line.
func (v *viewer) view(header string) View {
	if !v.overflown && len(header)+v.chars <= v.limit {
		return View{v.first, v.last, v.total, header + v.body.String(), false, -1}
	}
	for shown := min(len(v.ends), v.last-v.first); shown > 0; shown-- {
		last, end := v.first+shown-1, v.ends[shown-1]
		header, note := v.header(last), v.note(last)
		if len(header)+end.chars+1+len(note) <= v.limit {
			return View{v.first, last, v.total, header + v.body.String()[:end.bytes] + "\n" + note, true, last}
		}
	}
	return v.firstLine()
}

// firstLine shows as much of the first line as fits; where that is nothing, as much as fits of the words that say so.
func (v *viewer) firstLine() View {
	header, number := v.header(v.first), fmt.Sprintf("\n%d: ", v.first)
	room := v.limit - len(header) - len(number) - len(v.lineNote(v.limit))
	if room < 1 {
		return View{v.first, v.first - 1, v.total, clip(header+"\n"+cutMark, v.limit), true, v.first - 1}
	}
	text, _, _ := strings.Cut(v.body.String()[len(number):], "\n")
	next := v.first
	if v.first == v.last {
		next = -1
	}
	return View{v.first, v.first, v.total, header + number + clip(text, room) + v.lineNote(room), true, next}
}

// note says which lines are not shown after last, in as many words as half the limit allows.
func (v *viewer) note(last int) string {
	return v.fitting(
		fmt.Sprintf("%s\n# NOTE: This view is cut at its limit of %d characters; %s",
			cutMark, v.limit, v.missing("lines", last)),
		fmt.Sprintf("%s\n# NOTE: Go on with offset=%d.", cutMark, last))
}

// lineNote says that only so many characters of the first line are shown.
func (v *viewer) lineNote(chars int) string {
	long := fmt.Sprintf("%s\n# NOTE: Line %d has %d characters; this view, cut at its limit of %d characters, "+
		"shows the first %d. To see text further on in it, call grep_files.", cutMark, v.first, v.lineChars, v.limit, chars)
	short := fmt.Sprintf("%s\n# NOTE: Line %d has %d characters.", cutMark, v.first, v.lineChars)
	if v.first < v.last {
		long += " " + v.missing("Lines", v.first)
		short += fmt.Sprintf(" Go on with offset=%d.", v.first)
	}
	return v.fitting(long, short)
}

func (v *viewer) missing(lines string, last int) string {
	if last+1 == v.last {
		return fmt.Sprintf("%s %d is not shown. To see it, call open_files with offset=%d.",
			lines[:len("line")], v.last, last)
	}
	return fmt.Sprintf("%s %d to %d are not shown. To see them, call open_files with offset=%d.",
		lines, last+1, v.last, last)
}

// fitting is the first note that leaves half of the limit to the text, at last the bare mark.
func (v *viewer) fitting(notes ...string) string {
	for _, note := range notes {
		if 2*len(note) <= v.limit {
			return note
		}
	}
	return cutMark
}
