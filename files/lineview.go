package files

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// View is a range of a file's lines as a model reads it: a header, then each line after its number.
type View struct {
	FirstLine  int    // from 1; 0 in a view of an empty file
	LastLine   int    // last line shown, completely or in part; FirstLine-1 if the limit leaves room for none
	TotalLines int    // of the file
	Text       string // has no line end at its end
	Lines      [2]int // start and end of the file's own lines within Text
	Truncated  bool   // some of the requested lines are not shown completely
	NextOffset int    // offset, from 0, of the first requested line that is not shown at all; -1: none
	LimitChars int    // limit at which it is cut
	LineCut    bool   // it shows only a part of its first line, and no other line
}

// Excerpt is the lines First to Last of a file with Total lines, from 1 and inclusive. First 0 means the start of the
// file, Last 0 its end.
type Excerpt struct {
	First, Last, Total int
	Pages              Paging
	LimitChars         int // limit of the view, including header and notes
	Char               int // characters of line First that the view leaves out
}

// Render returns a view of an excerpt. segments are the file's segments, beginning with the one in which line First
// begins. A view is cut between lines; only its first line may be cut within. A cut view says which lines it shows, and
// the offset of the next. If the file has pages, the header names them. A Last behind the end means the end. ErrInvalid
// if the file has no line First, the line has no character Char, or Last is before First.
func Render(segments iter.Seq2[grep.Segment, error], e Excerpt) (View, error) {
	fromStart, toEnd := e.First <= 1, e.Last <= 0
	e.First, e.LimitChars = max(e.First, 1), max(e.LimitChars, 0)
	if toEnd || e.Last > e.Total {
		e.Last = e.Total
	}
	switch {
	case e.Total == 0 && fromStart:
		return View{Text: clip(fmt.Sprintf(frame.ViewFileStart, 0, ""), e.LimitChars), NextOffset: -1}, nil
	case e.First > e.Total:
		return View{}, db.Invalid(
			"The file has only %d lines: line %d, at offset %d, is past its end.", e.Total, e.First, e.First-1)
	case e.Last < e.First:
		return View{}, db.Invalid("Invalid range: line %d comes after line %d. Ask for a length of at least 1.",
			e.First, e.Last)
	}
	v := viewer{Excerpt: e, whole: fromStart && toEnd, skip: e.Char}
	if err := v.read(segments); err != nil {
		return View{}, err
	}
	if e.Char > 0 && v.firstChars <= e.Char {
		return View{}, db.Invalid("Line %d has only %d characters: character %d is past its end.", e.First, v.firstChars,
			e.Char)
	}
	if toEnd && !fromStart {
		return v.view(fmt.Sprintf(frame.ViewToEnd, e.First, e.Total, e.Pages.note(e.First, e.Last))), nil
	}
	return v.view(v.headerTo(e.Last)), nil
}

// viewer collects numbered lines, each behind a line end, until they exceed the limit.
type viewer struct {
	Excerpt
	whole      bool // all of the file is asked for
	body       strings.Builder
	chars      int       // characters in body
	line       int       // number of the current line; 0 before the first segment
	within     bool      // a part of the current line was read
	ends       []lineEnd // ends of the whole lines in body
	overflown  bool
	firstChars int // length of the whole first line, or more than counted
	skip       int // characters of the first line that are still to be left out
}

// counted: the first line's characters beyond the limit are counted up to this number.
const counted = 1 << 20

// lineEnd is where a whole line ends in the body.
type lineEnd struct{ bytes, chars int }

// read reads until the limit is exceeded. If the first line exceeds it, read continues to count that line's characters.
func (v *viewer) read(segments iter.Seq2[grep.Segment, error]) error {
	for segment, err := range segments {
		if err != nil {
			return err
		}
		if v.line == 0 {
			v.line = segment.FirstLine
		}
		for text := range strings.Lines(segment.Text) {
			if v.line > v.Last || v.overflown && (v.line > v.First || v.firstChars > counted) {
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
		left := min(v.skip, chars)
		v.skip -= left
		text, chars = text[len(clip(text, left)):], chars-left
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

// headerTo returns the header of a view from the first line to last. That of a whole file is the same where the view
// is cut, as in Letta; the note behind it says which lines are missing.
func (v *viewer) headerTo(last int) string {
	if v.whole {
		return fmt.Sprintf(frame.ViewFileStart, v.Total, v.Pages.note(v.First, last))
	}
	return fmt.Sprintf(frame.ViewLines, v.First, last, v.Total, v.Pages.note(v.First, last))
}

// view returns everything that was read, below header, if that fits. Otherwise it returns as many whole lines as fit
// and a note, or else a part of the first line.
func (v *viewer) view(header string) View {
	if !v.overflown && len(header)+v.chars <= v.LimitChars {
		return v.shown(header, v.body.String(), "", View{LastLine: v.Last, NextOffset: -1})
	}
	for shown := min(len(v.ends), v.Last-v.First); shown > 0; shown-- {
		last, end := v.First+shown-1, v.ends[shown-1]
		header, note := v.headerTo(last), v.note(last)
		if len(header)+end.chars+1+len(note) <= v.LimitChars {
			return v.shown(header, v.body.String()[:end.bytes], "\n"+note,
				View{LastLine: last, Truncated: true, NextOffset: last})
		}
	}
	return v.firstLine()
}

// firstLine returns a view with as much of the first line as fits, or with no line if nothing fits.
func (v *viewer) firstLine() View {
	header, number := v.headerTo(v.First), fmt.Sprintf("\n%d: ", v.First)
	room := v.LimitChars - len(header) - len(number) - len(v.lineNote(v.LimitChars))
	if room < 1 {
		return v.shown(clip(header+"\n"+frame.Truncated, v.LimitChars), "", "",
			View{LastLine: v.First - 1, Truncated: true, NextOffset: v.First - 1})
	}
	text, _, _ := strings.Cut(v.body.String()[len(number):], "\n")
	next := v.First
	if v.First == v.Last {
		next = -1
	}
	text = clip(text, room)
	return v.shown(header, number+text, v.lineNote(room), View{LastLine: v.First, Truncated: true, NextOffset: next,
		LineCut: v.Char+utf8.RuneCountInString(text) < v.firstChars})
}

// shown completes a view with its text: a header, lines and a note.
func (v *viewer) shown(header, lines, note string, of View) View {
	of.FirstLine, of.TotalLines, of.LimitChars, of.Text = v.First, v.Total, v.LimitChars, header+lines+note
	of.Lines = [2]int{len(header), len(header + lines)}
	return of
}

// Shown returns a view as a prompt shows it. No line of the file can look like the header, the note, or another frame.
func (v View) Shown() string {
	from, to := v.Lines[0], v.Lines[1]
	return v.Text[:from] + frame.Neutralize(v.Text[from:to]) + v.Text[to:]
}

// note says that the lines behind last are not shown.
func (v *viewer) note(last int) string {
	return v.fitting(
		frame.Truncated+"\n"+fmt.Sprintf(frame.ViewCut, v.LimitChars, v.missing("lines", last)),
		frame.Truncated+"\n"+fmt.Sprintf(frame.ViewGoesOn, last+1))
}

// lineNote says that only so many characters of the first line are shown.
func (v *viewer) lineNote(chars int) string {
	length := strconv.Itoa(v.firstChars)
	if v.firstChars > counted {
		length = fmt.Sprintf("more than %d", counted)
	}
	long := frame.Truncated + "\n" + fmt.Sprintf(frame.ViewLineCut, v.First, length, v.LimitChars, chars)
	short := frame.Truncated + "\n" + fmt.Sprintf(frame.ViewLineShort, v.First, length)
	if v.Char > 0 {
		long = short
	}
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

// fitting returns the first note that leaves half of the limit for the text, or else only the mark of truncation.
func (v *viewer) fitting(notes ...string) string {
	for _, note := range notes {
		if 2*len(note) <= v.LimitChars {
			return note
		}
	}
	return frame.Truncated
}
