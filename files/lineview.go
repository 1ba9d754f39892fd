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
	LastLine   int    // the last line shown, whole or in part; FirstLine-1 if the limit leaves room for none
	TotalLines int    // of the file
	Text       string // without a line end at its end
	Truncated  bool   // a part of the requested lines is not shown
	NextOffset int    // 0-based offset of the first requested line of which nothing is shown, -1 if none
}

// Excerpt is the lines First to Last of a file of Total lines, 1-based and inclusive. First 0 is the file's start, Last
// 0 its end.
type Excerpt struct {
	First, Last, Total int
	Pages              Paging
	LimitChars         int // of the view, header and notes included
}

// Render returns a view of an excerpt. The segments are those of the file from the one in which line First begins. A
// view is cut between lines, and within a line only if that is its first; it then names the lines that it shows and the
// offset of the next. The header names the pages of a file that has pages. ErrInvalid if the file has no line First, or
// Last comes before it; a Last past the end is the end.
func Render(segments iter.Seq2[grep.Segment, error], e Excerpt) (View, error) {
	fromStart, toEnd := e.First <= 1, e.Last <= 0
	e.First, e.LimitChars = max(e.First, 1), max(e.LimitChars, 0)
	if toEnd || e.Last > e.Total {
		e.Last = e.Total
	}
	switch {
	case e.Total == 0 && fromStart:
		return View{Text: clip("[Viewing file start (out of 0 lines)]", e.LimitChars), NextOffset: -1}, nil
	case e.First > e.Total:
		return View{}, db.Invalid(
			"The file has only %d lines: line %d, at offset %d, is past its end.", e.Total, e.First, e.First-1)
	case e.Last < e.First:
		return View{}, db.Invalid("Invalid range: line %d comes after line %d. Ask for a length of at least 1.",
			e.First, e.Last)
	}
	v := viewer{Excerpt: e}
	if err := v.read(segments); err != nil {
		return View{}, err
	}
	lines := fmt.Sprintf("lines %d to %d", e.First, e.Last)
	switch {
	case fromStart && toEnd:
		lines = "file start"
	case toEnd:
		lines = fmt.Sprintf("lines %d to end", e.First)
	}
	return v.view(v.header(lines, e.Last)), nil
}

const cutMark = "...[TRUNCATED]"

// viewer collects numbered lines, each after a line end, until they exceed the limit.
type viewer struct {
	Excerpt
	body       strings.Builder
	chars      int       // in body
	line       int       // the number of the line that is read; 0 before the first segment
	within     bool      // a part of line was read
	ends       []lineEnd // of the whole lines in body
	overflown  bool
	firstChars int // of the whole first line
}

// lineEnd is where a whole line ends in the body.
type lineEnd struct{ bytes, chars int }

// read reads until the limit is exceeded; a first line that exceeds it is read to its end, for its length.
func (v *viewer) read(segments iter.Seq2[grep.Segment, error]) error {
	for segment, err := range segments {
		if err != nil {
			return err
		}
		if v.line == 0 {
			v.line = segment.FirstLine
		}
		for text := range strings.Lines(segment.Text) {
			if v.line > v.Last || v.overflown && v.line > v.First {
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

// add reads a line or a part of a line.
func (v *viewer) add(text string) {
	text, ended := strings.CutSuffix(text, "\n")
	chars := utf8.RuneCountInString(text)
	if v.line == v.First {
		v.firstChars += chars
	}
	if v.line >= v.First && !v.overflown {
		if !v.within {
			n, _ := fmt.Fprintf(&v.body, "\n%d: ", v.line)
			v.chars += n
		}
		v.body.WriteString(text)
		v.chars += chars
		v.overflown = v.chars > v.LimitChars
	}
	v.within = true
	if ended {
		v.end()
	}
}

func (v *viewer) end() {
	if v.line >= v.First && !v.overflown {
		v.ends = append(v.ends, lineEnd{v.body.Len(), v.chars})
	}
	v.line++
	v.within = false
}

// header returns the header of a view of the first line to last, which it calls lines.
func (v *viewer) header(lines string, last int) string {
	return fmt.Sprintf("[Viewing %s (out of %d lines%s)]", lines, v.Total, v.Pages.note(v.First, last))
}

func (v *viewer) headerTo(last int) string {
	return v.header(fmt.Sprintf("lines %d to %d", v.First, last), last)
}

// view returns all that was read under header if that fits, else as many whole lines as fit with a note, else a part of
// the first line.
func (v *viewer) view(header string) View {
	if !v.overflown && len(header)+v.chars <= v.LimitChars {
		return View{v.First, v.Last, v.Total, header + v.body.String(), false, -1}
	}
	for shown := min(len(v.ends), v.Last-v.First); shown > 0; shown-- {
		last, end := v.First+shown-1, v.ends[shown-1]
		header, note := v.headerTo(last), v.note(last)
		if len(header)+end.chars+1+len(note) <= v.LimitChars {
			return View{v.First, last, v.Total, header + v.body.String()[:end.bytes] + "\n" + note, true, last}
		}
	}
	return v.firstLine()
}

// firstLine returns a view of as much of the first line as fits, or of no line if nothing fits.
func (v *viewer) firstLine() View {
	header, number := v.headerTo(v.First), fmt.Sprintf("\n%d: ", v.First)
	room := v.LimitChars - len(header) - len(number) - len(v.lineNote(v.LimitChars))
	if room < 1 {
		return View{v.First, v.First - 1, v.Total, clip(header+"\n"+cutMark, v.LimitChars), true, v.First - 1}
	}
	text, _, _ := strings.Cut(v.body.String()[len(number):], "\n")
	next := v.First
	if v.First == v.Last {
		next = -1
	}
	return View{v.First, v.First, v.Total, header + number + clip(text, room) + v.lineNote(room), true, next}
}

// note says that the lines after last are not shown.
func (v *viewer) note(last int) string {
	return v.fitting(
		fmt.Sprintf("%s\n# NOTE: This view is cut at its limit of %d characters; %s",
			cutMark, v.LimitChars, v.missing("lines", last)),
		fmt.Sprintf("%s\n# NOTE: Go on at line %d.", cutMark, last+1))
}

// lineNote says that only the given number of characters of the first line are shown.
func (v *viewer) lineNote(chars int) string {
	long := fmt.Sprintf("%s\n# NOTE: Line %d has %d characters; this view, cut at its limit of %d characters, "+
		"shows the first %d. A search for exact text finds what is further on in it.",
		cutMark, v.First, v.firstChars, v.LimitChars, chars)
	short := fmt.Sprintf("%s\n# NOTE: Line %d has %d characters.", cutMark, v.First, v.firstChars)
	if v.First < v.Last {
		long += " " + v.missing("Lines", v.First)
		short += fmt.Sprintf(" Go on at line %d.", v.First+1)
	}
	return v.fitting(long, short)
}

func (v *viewer) missing(lines string, last int) string {
	not := fmt.Sprintf("%s %d to %d are", lines, last+1, v.Last)
	if last+1 == v.Last {
		not = fmt.Sprintf("%s %d is", lines[:len("line")], v.Last)
	}
	return fmt.Sprintf("%s not shown. To go on, open line %d (offset %d).", not, last+1, last)
}

// fitting returns the first note that leaves half of the limit to the text, else the mark without words.
func (v *viewer) fitting(notes ...string) string {
	for _, note := range notes {
		if 2*len(note) <= v.LimitChars {
			return note
		}
	}
	return cutMark
}
