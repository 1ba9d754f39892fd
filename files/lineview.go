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

// View is a range of a file's lines as a model reads it: a header, then each line after its number in the file.
type View struct {
	FirstLine  int    // 1-based; 0 in a view of an empty file
	LastLine   int    // the last line shown, whole or in part; FirstLine-1 if the limit leaves room for none
	TotalLines int    // of the file
	Text       string // without a line end at its end
	Lines      [2]int // from where to where in Text the file's own lines stand
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
		return View{Text: clip(fmt.Sprintf(frame.ViewFileStart, 0, ""), e.LimitChars), NextOffset: -1}, nil
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
	pages := e.Pages.note(e.First, e.Last)
	switch {
	case fromStart && toEnd:
		return v.view(fmt.Sprintf(frame.ViewFileStart, e.Total, pages)), nil
	case toEnd:
		return v.view(fmt.Sprintf(frame.ViewToEnd, e.First, e.Total, pages)), nil
	}
	return v.view(v.headerTo(e.Last)), nil
}

// viewer collects numbered lines, each after a line end, until they exceed the limit.
type viewer struct {
	Excerpt
	body       strings.Builder
	chars      int       // in body
	line       int       // the number of the line that is read; 0 before the first segment
	within     bool      // a part of line was read
	ends       []lineEnd // of the whole lines in body
	overflown  bool
	firstChars int // of the whole first line, or more than counted
}

// counted is how many characters of a first line beyond the limit are counted.
const counted = 1 << 20

// lineEnd is where a whole line ends in the body.
type lineEnd struct{ bytes, chars int }

// read reads until the limit is exceeded; a first line that exceeds it is read on to count its characters.
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

// headerTo returns the header of a view of the first line to last.
func (v *viewer) headerTo(last int) string {
	return fmt.Sprintf(frame.ViewLines, v.First, last, v.Total, v.Pages.note(v.First, last))
}

// view returns all that was read under header if that fits, else as many whole lines as fit with a note, else a part of
// the first line.
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

// firstLine returns a view of as much of the first line as fits, or of no line if nothing fits.
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
	return v.shown(header, number+clip(text, room), v.lineNote(room),
		View{LastLine: v.First, Truncated: true, NextOffset: next})
}

// shown completes a view with its text: a header, lines and a note.
func (v *viewer) shown(header, lines, note string, of View) View {
	of.FirstLine, of.TotalLines, of.Text = v.First, v.Total, header+lines+note
	of.Lines = [2]int{len(header), len(header + lines)}
	return of
}

// Shown returns a view as a prompt shows it: no line of the file can pass for the header, the note, or another frame.
func (v View) Shown() string {
	from, to := v.Lines[0], v.Lines[1]
	return v.Text[:from] + frame.Neutralize(v.Text[from:to]) + v.Text[to:]
}

// note says that the lines after last are not shown.
func (v *viewer) note(last int) string {
	return v.fitting(
		frame.Truncated+"\n"+fmt.Sprintf(frame.ViewCut, v.LimitChars, v.missing("lines", last)),
		frame.Truncated+"\n"+fmt.Sprintf(frame.ViewGoesOn, last+1))
}

// lineNote says that only the given number of characters of the first line are shown.
func (v *viewer) lineNote(chars int) string {
	length := strconv.Itoa(v.firstChars)
	if v.firstChars > counted {
		length = fmt.Sprintf("more than %d", counted)
	}
	long := frame.Truncated + "\n" + fmt.Sprintf(frame.ViewLineCut, v.First, length, v.LimitChars, chars)
	short := frame.Truncated + "\n" + fmt.Sprintf(frame.ViewLineShort, v.First, length)
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
	return frame.Truncated
}
