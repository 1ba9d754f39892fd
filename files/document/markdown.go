package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// blockKind decides whether an empty line precedes a block, and whether the last list item continues after it.
type blockKind int

const (
	otherBlock blockKind = iota
	itemBlock            // follows another item without an empty line
	moreBlock            // within the last item
)

// markdown writes the blocks of a document in order. If flat is set, for a cell or a note, it writes each block on its
// own lines without the marks at the beginning of lines.
type markdown struct {
	budget *budget
	flat   bool
	b      strings.Builder
	lines  int // lines that have ended so far
	last   blockKind
	items  []openItem // items that may contain the next item, each within the one before
	code   []string   // lines of a code block that has not ended
	breaks int        // pages begun since the last block
	pages  []int
	full   bool
}

func newMarkdown(b *budget) *markdown { return &markdown{budget: b} }

func newFlat(b *budget) *markdown { return &markdown{budget: b, flat: true} }

// write adds a block.
func (m *markdown) write(kind blockKind, block string) {
	m.flushCode()
	if kind == otherBlock {
		m.items = nil
	}
	if m.lines > 0 && !m.flat && (kind != itemBlock || m.last != itemBlock) {
		m.line("")
	}
	m.beginPages()
	for line := range strings.SplitSeq(block, "\n") {
		m.line(line)
	}
	m.last = kind
}

func (m *markdown) line(line string) {
	if m.full = m.full || m.b.Len()+len(line) > MaxTextBytes || !m.budget.handle(len(line)); m.full {
		return
	}
	m.b.WriteString(strings.TrimRight(line, " \t\r"))
	m.b.WriteByte('\n')
	m.lines++
}

// beginPages records that the pages begun since the last block begin on the next line.
func (m *markdown) beginPages() {
	for ; m.breaks > 0 && !m.flat; m.breaks-- {
		m.pages = append(m.pages, m.lines+1)
	}
}

// block says what kind of paragraph it is. The zero block is a plain paragraph.
type block struct {
	heading     int    // level from 1; 0 for none
	label       string // of a heading or an item, such as "2.1"
	item        bool   // list item
	within      bool   // further paragraph of the last item
	level       int    // level of an item, from 0
	code, quote bool
}

// put adds a paragraph. An empty paragraph shows only between lines of code.
func (m *markdown) put(b block, text *inline) {
	if !m.flat && !text.isEmpty() {
		m.budget.omitted.pass(b.heading > 0, text.plain())
	}
	switch {
	case text.isEmpty():
		if b.code && len(m.code) > 0 {
			m.codeLines("")
		}
	case b.heading > 0:
		m.heading(b.heading, b.label+" "+text.markdown())
	case b.code:
		m.codeLines(text.plain())
	case b.within:
		m.more(text.markdown())
	case b.item:
		m.item(b.level, b.label, text.markdown())
	case b.quote:
		m.quote(text.markdown())
	default:
		m.paragraph(text.markdown())
	}
}

func (m *markdown) heading(level int, text string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
	if text == "" {
		return
	}
	if !m.flat {
		text = strings.Repeat("#", min(max(level, 1), 6)) + " " + text
	}
	m.write(otherBlock, text)
}

func (m *markdown) paragraph(text string) {
	if text = trimLines(text); text != "" {
		m.write(otherBlock, text)
	}
}

func (m *markdown) quote(text string) {
	if text = trimLines(text); text != "" && !m.flat {
		text = "> " + strings.ReplaceAll(text, "\n", "\n> ")
	}
	m.paragraph(text)
}

// openItem is a list item: its level, and the indentation of blocks within it.
type openItem struct {
	level  int
	indent string
}

// indent returns the indentation of a block within the last item.
func (m *markdown) indent() string {
	if len(m.items) == 0 {
		return ""
	}
	return m.items[len(m.items)-1].indent
}

var plainNumber = regexp.MustCompile(`^[0-9]{1,9}[.)]$`)

// item adds a list item, within the last item of a lower level. A label that is a plain number becomes the item's
// marker. Any other label follows a bullet.
func (m *markdown) item(level int, label, text string) {
	marker := "-"
	if plainNumber.MatchString(label) {
		marker, label = label, ""
	}
	if text = trimLines(label + " " + text); text == "" {
		return
	}
	for len(m.items) > 0 && m.items[len(m.items)-1].level >= level {
		m.items = m.items[:len(m.items)-1]
	}
	before := m.indent()
	m.items = append(m.items, openItem{level, before + strings.Repeat(" ", len(marker)+1)})
	m.write(itemBlock, before+marker+" "+strings.ReplaceAll(text, "\n", "\n"+m.indent()))
}

// more adds a paragraph to the last item.
func (m *markdown) more(text string) {
	if text = trimLines(text); text != "" {
		indent := m.indent()
		if m.flat {
			indent = ""
		}
		m.write(moreBlock, indent+strings.ReplaceAll(text, "\n", "\n"+indent))
	}
}

// codeLines adds lines of code. Consecutive lines become one block.
func (m *markdown) codeLines(text string) {
	if m.budget.handle(len(text)) {
		m.code = append(m.code, strings.Split(text, "\n")...)
	}
}

func (m *markdown) flushCode() {
	lines := m.code
	m.code = nil
	if m.flat {
		for _, line := range lines {
			m.line(line)
		}
		return
	}
	m.fence("", strings.Join(lines, "\n"))
}

// fence adds a code block. Its fence is longer than any fence within it.
func (m *markdown) fence(language, code string) {
	code = strings.Trim(trimEnds(code), "\n")
	if strings.TrimSpace(code) == "" {
		return
	}
	marks := "```"
	for strings.Contains(code, marks) {
		marks += "`"
	}
	m.write(otherBlock, marks+language+"\n"+code+"\n"+marks)
}

// raw adds Markdown.
func (m *markdown) raw(text string) {
	if text = tidyMarkdown(text); text != "" {
		m.write(otherBlock, text)
	}
}

// embed adds the blocks of a text box.
func (m *markdown) embed(box *markdown) {
	if text := box.text(); m.flat {
		m.paragraph(text)
	} else {
		m.raw(text)
	}
}

// slide adds a page below its number and title. A slide without text gets no lines.
func (m *markdown) slide(n int, title string, body, notes *markdown) {
	m.breaks++
	text, noted := body.text(), notes.text()
	if title == "" && text == "" && noted == "" {
		return
	}
	heading := fmt.Sprintf("Slide %d", n)
	if title != "" {
		heading += ": " + title
	}
	m.heading(2, heading)
	m.raw(text)
	if noted != "" {
		m.heading(3, "Notes")
		m.raw(noted)
	}
}

// noteMark returns the mark of the nth note.
func noteMark(n int) string { return fmt.Sprintf("[^%d]", n) }

// notes adds the texts of the notes with the marks 1, 2, ….
func (m *markdown) notes(texts []string) {
	m.flushCode()
	m.last, m.items = otherBlock, nil
	for i, text := range texts {
		m.write(itemBlock, noteMark(i+1)+": "+strings.ReplaceAll(trimLines(text), "\n", "\n    "))
	}
}

// text returns all blocks so far.
func (m *markdown) text() string {
	m.flushCode()
	return strings.TrimSuffix(m.b.String(), "\n")
}

// oneLine returns all blocks so far on one line.
func (m *markdown) oneLine() string { return strings.ReplaceAll(m.text(), "\n", " ") }

// textless returns why a document without text is not read. Only pictures may become text by OCR.
func textless(omitted []Omission) *UnreadableError {
	if len(omitted) == 0 {
		return unreadable("The document holds no text.")
	}
	advice := ""
	if slices.ContainsFunc(omitted, func(o Omission) bool { return o.Kind == picture }) {
		advice = " Upload a version with text, made by OCR for instance."
	}
	return unreadable("The document holds no text, only what is not read: %s.%s", ListOmissions(omitted), advice)
}

// finish returns the document's text. *UnreadableError if it is empty or a limit is exceeded.
func (m *markdown) finish() (Text, error) {
	text := m.text()
	if spent := m.budget.spent(); spent != nil {
		return Text{}, spent
	}
	if m.full {
		return Text{}, tooMuchText()
	}
	if isBlank(text) {
		return Text{}, textless(m.budget.omitted.list())
	}
	return Text{Text: text + "\n", Pages: m.pages, Omitted: m.budget.omitted.list(),
		Pictures: m.budget.omitted.listPictures()}, nil
}

// severalPages drops the page list of a document with only one page.
func severalPages(text Text, err error) (Text, error) {
	if len(text.Pages) < 2 {
		text.Pages = nil
	}
	return text, err
}

var atEnds = regexp.MustCompile(`(?m)[ \t\r]+$`)

// trimLines reduces each run of blanks to one blank, and drops blanks around lines and empty lines.
func trimLines(text string) string {
	if isTrim(text) {
		return text
	}
	var lines []string
	for line := range strings.SplitSeq(strings.ToValidUTF8(text, "\ufffd"), "\n") {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\u00a0", r) })
		if len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// isTrim reports whether a text has no blanks at all, like most table cells.
func isTrim(text string) bool {
	return !strings.ContainsAny(text, " \t\r\n\u00a0") && utf8.ValidString(text)
}

func trimEnds(text string) string { return atEnds.ReplaceAllString(text, "") }

// tidyMarkdown applies tidyLines outside code blocks.
func tidyMarkdown(text string) string {
	var b strings.Builder
	fence, empty := "", true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if mark := fenceMark(line); mark != "" && fence == "" {
			fence = mark
		} else if fence != "" && strings.HasPrefix(mark, fence) {
			fence = ""
		}
		if line == "" && empty && fence == "" {
			continue
		}
		empty = line == ""
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// fenceMark returns the marks at the beginning of a line that opens or closes a code block. It returns "" for other
// lines.
func fenceMark(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if mark := line[:len(line)-len(strings.TrimLeft(line, c))]; len(mark) >= 3 {
			return mark
		}
	}
	return ""
}
