package document

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// rtfDest is where the text of a group goes.
type rtfDest int

const (
	rtfBody rtfDest = iota
	rtfSkipped
	rtfFonts
	rtfStyles
	rtfListMark
	rtfInstruction
)

// rtfOpens is what ends with a group.
type rtfOpens int

const (
	rtfNothing rtfOpens = iota
	rtfNote
	rtfBox
	rtfStyleEntry
)

// rtfState is what a group begins with, and leaves as it was.
type rtfState struct {
	dest  rtfDest
	opens rtfOpens
	uc    int
	field *field
	rtfLook
	rtfPlace
}

// rtfLook is what \plain resets.
type rtfLook struct {
	font                                    int
	hidden, deleted, struck, raised, isCode bool
}

// rtfPlace is what \pard resets.
type rtfPlace struct {
	style, outline, level, indent, first int
	inTable                              bool
}

type rtfFont struct {
	charset string
	code    bool
}

type rtfStyle struct {
	name    string
	outline int
}

// rtfSink takes the paragraphs of the body, of a note or of a box.
type rtfSink struct {
	md, boxes *markdown
	para      *inline
	mark      string // of a list
	cell      *markdown
	row       row
	rows      []row
	edges     [][]int // where each row's cells end
}

// rtfText makes Markdown of what the reader finds.
type rtfText struct {
	budget     *budget
	state      rtfState
	charset    string
	fonts      map[int]rtfFont
	styles     map[int]rtfStyle
	codeStyles map[int]bool
	entry      rtfStyle // of the table that is read
	entryChar  int
	name       string
	edges      []int // of the row that is read
	sinks      []*rtfSink
	notes      []string
}

func newRTFText(b *budget, md *markdown) *rtfText {
	t := &rtfText{budget: b, charset: "windows-1252", fonts: map[int]rtfFont{}, styles: map[int]rtfStyle{}, codeStyles: map[int]bool{}}
	t.state = rtfState{uc: 1, rtfPlace: rtfPlace{outline: -1}}
	t.push(md)
	return t
}

func (t *rtfText) push(md *markdown) {
	t.sinks = append(t.sinks, &rtfSink{md: md, boxes: newMarkdown(t.budget), para: &inline{budget: t.budget}, cell: newFlat(t.budget)})
}

func (t *rtfText) sink() *rtfSink { return t.sinks[len(t.sinks)-1] }

// maxRTFName is how long the names of fonts and styles, marks of lists and instructions of fields may be.
const maxRTFName = maxLinkBytes + 100

func (t *rtfText) text(s string) {
	switch t.state.dest {
	case rtfBody:
		if !t.state.hidden && !t.state.deleted {
			t.sink().para.addWords(s, t.look())
		}
	case rtfListMark:
		if sink := t.sink(); len(sink.mark)+len(s) < maxRTFName {
			sink.mark += s
		}
	case rtfInstruction:
		if f := t.state.field; f != nil && len(f.instruction)+len(s) < maxRTFName {
			f.instruction += s
		}
	case rtfFonts, rtfStyles:
		if t.name += s; len(t.name) > maxRTFName {
			t.name = ""
		}
		if t.state.dest == rtfFonts && strings.Contains(s, ";") {
			t.endFont()
		}
	}
}

func (t *rtfText) look() style {
	s := style{code: t.state.isCode || t.fonts[t.state.font].code, struck: t.state.struck, raised: t.state.raised}
	if t.state.field != nil {
		s.href = t.state.field.href
	}
	return s
}

func (t *rtfText) endFont() {
	f := t.fonts[t.state.font]
	f.code = f.code || isCodeFont(t.name)
	t.fonts[t.state.font] = f
	t.name = ""
}

// close ends what the group opened.
func (t *rtfText) close() {
	switch t.state.opens {
	case rtfNote, rtfBox:
		t.endParagraph()
		t.endTable()
		text := t.sink().md.text()
		t.sinks = t.sinks[:len(t.sinks)-1]
		if t.state.opens == rtfBox {
			t.sink().boxes.raw(text)
		} else if text != "" && len(t.sinks) == 1 {
			t.notes = append(t.notes, text)
			t.sink().para.add("[^"+strconv.Itoa(len(t.notes))+"]", style{})
		}
	case rtfStyleEntry:
		name := strings.ToLower(strings.TrimSpace(strings.Trim(strings.TrimSpace(t.name), ";")))
		if level, ok := strings.CutPrefix(name, "heading "); ok && t.entry.outline < 0 {
			t.entry.outline = number(level, 0) - 1
		}
		t.entry.name = name
		if t.entryChar >= 0 {
			t.codeStyles[t.entryChar] = isCodeName(name)
		} else {
			t.styles[t.state.style] = t.entry
		}
	}
}

func (t *rtfText) finish() {
	t.endParagraph()
	t.endTable()
	md := t.sink().md
	for i, text := range t.notes {
		if i == 0 {
			md.last = otherBlock
		}
		md.note(strconv.Itoa(i+1), text)
	}
}

// endParagraph puts the paragraph where its style says.
func (t *rtfText) endParagraph() {
	if t.state.dest != rtfBody {
		return
	}
	s := t.sink()
	md := s.md
	if t.state.inTable {
		md = s.cell
	} else if !s.para.isEmpty() {
		t.endTable()
	}
	t.write(md, s)
	s.para, s.mark = &inline{budget: t.budget}, ""
	if boxes := s.boxes.text(); boxes != "" {
		s.boxes = newMarkdown(t.budget)
		if md.flat {
			md.paragraph(boxes)
		} else {
			md.raw(boxes)
		}
	}
}

func (t *rtfText) write(md *markdown, s *rtfSink) {
	named := t.styles[t.state.style]
	outline := t.state.outline
	if known, ok := t.styles[t.state.style]; ok && outline < 0 {
		outline = known.outline
	}
	mark, level, listed := t.mark(s)
	text := s.para.markdown()
	switch {
	case s.para.isEmpty():
		if isCodeName(named.name) && len(md.code) > 0 {
			md.codeLines("")
		}
	case strings.HasPrefix(named.name, "toc "):
	case named.name == "title":
		md.heading(1, text)
	case outline >= 0 && outline < 9:
		md.heading(outline+1, joined(strings.TrimSpace(s.mark), text))
	case (isCodeName(named.name) || s.para.isCode()) && !md.flat && !listed:
		md.codeLines(s.para.plain())
	case listed:
		marker, word := label(mark).item()
		md.item(level, marker, joined(word, strings.TrimPrefix(text, s.mark)))
	case strings.HasPrefix(named.name, "quot"):
		md.quote(text)
	default:
		md.paragraph(text)
	}
}

// typedMark is a list's mark that stands in the text, with the tab after it.
var typedMark = regexp.MustCompile(`^\s*((?:[•◦▪‣–—·o-]|\(?[0-9a-zA-Z]{1,4}[.)]))\s*\t`)

// mark is that of an item, "" for a bullet, and its level.
func (t *rtfText) mark(s *rtfSink) (mark string, level int, listed bool) {
	mark, level = strings.TrimSpace(s.mark), t.state.level
	if mark == "" && t.state.first < 0 {
		if m := typedMark.FindStringSubmatch(s.para.plain()); m != nil && len(s.para.parts) > 0 && len(m[0]) <= len(s.para.parts[0].text) {
			s.para.parts[0].text = s.para.parts[0].text[len(m[0]):]
			mark, level = m[1], t.state.indent/360-1
		}
	}
	if mark == "" {
		return "", 0, false
	}
	if mark == "o" || !strings.ContainsFunc(mark, isAlphanumeric) { // a bullet, of a font of symbols perhaps
		mark = ""
	}
	return mark, level, true
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
