package file

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// The rules of an index.
const (
	ruleSize      = "size"      // at most MaxChars characters
	ruleContent   = "content"   // it points to facts, and does not tell them
	ruleHash      = "hash"      // no commit hashes
	ruleCode      = "code"      // no code fences
	ruleError     = "error"     // no raw error messages
	ruleList      = "list"      // no list with more than MaxListItems items, and no table with more rows without pointers
	ruleDuplicate = "duplicate" // no fact that another file has
	ruleDangling  = "dangling"  // no pointer that leads nowhere
	ruleTemporary = "temporary" // no temporary notes
)

var ruleNames = []string{ruleSize, ruleContent, ruleHash, ruleCode, ruleError, ruleList, ruleDuplicate, ruleDangling,
	ruleTemporary}

// IndexRules are the rules of a tree for its index. A zero field means the default; by default all rules hold.
type IndexRules struct {
	Index        string   `json:"index,omitempty" doc:"The path of the index; /memories/MEMORY.md if absent."`
	MaxChars     int      `json:"max_chars,omitempty" minimum:"0" maximum:"100000" doc:"Of the index; 5,000 if absent."`
	MaxListItems int      `json:"max_list_items,omitempty" minimum:"0" maximum:"1000" doc:"5 if absent."`
	Off          []string `json:"off,omitempty" doc:"Rules that do not hold, by their names; * is all."`
}

func (r IndexRules) index() string {
	if r.Index == "" {
		return Root + "/MEMORY.md"
	}
	return r.Index
}

// IsIndex reports whether a path is the index's, in any case.
func (r IndexRules) IsIndex(path string) bool { return fold(path) == fold(r.index()) }

func (r IndexRules) maxChars() int { return defaulted(r.MaxChars, 5_000) }

func (r IndexRules) maxListItems() int { return defaulted(r.MaxListItems, 5) }

func defaulted(n, usual int) int {
	if n == 0 {
		return usual
	}
	return n
}

func (r IndexRules) holds(rule string) bool {
	return !slices.Contains(r.Off, rule) && !slices.Contains(r.Off, "*")
}

func (r IndexRules) check() error {
	if r.Index != "" {
		if path, err := ParseFile(r.Index); err != nil || path != r.Index {
			return db.Invalid("rules.index: %q is no path of a file, such as %s/MEMORY.md", db.Short(r.Index), Root)
		}
		if r.IsIndex(ManifestPath) {
			return db.Invalid("rules.index: %s is the manifest, which says what belongs where; name another file, such as "+
				"%s/MEMORY.md", r.Index, Root)
		}
	}
	if r.MaxChars < 0 || r.MaxListItems < 0 {
		return db.Invalid("rules: max_chars and max_list_items cannot be below 0")
	}
	for _, name := range r.Off {
		if name != "*" && !slices.Contains(ruleNames, name) {
			return db.Invalid("rules.off: there is no rule %q; the rules are %s, and * is all", db.Short(name),
				strings.Join(ruleNames, ", "))
		}
	}
	return nil
}

// ruleWords describe the rules to an agent.
var ruleWords = map[string]string{
	ruleContent: "pointers to files in place of facts", ruleHash: "no hashes of commits", ruleCode: "no code",
	ruleError: "no raw messages of errors", ruleDuplicate: "no fact that another file has",
	ruleDangling: "no pointer that leads nowhere", ruleTemporary: "no notes for the moment (TODO.md is for them)",
}

// Words returns the rules that hold as a sentence, or "" if none holds.
func (r IndexRules) Words() string {
	var all []string
	for _, name := range ruleNames {
		switch {
		case !r.holds(name):
		case name == ruleSize:
			all = append(all, fmt.Sprintf("at most %d characters", r.maxChars()))
		case name == ruleList:
			all = append(all, fmt.Sprintf("no list of more than %d items, nor table of more rows without pointers",
				r.maxListItems()))
		default:
			all = append(all, ruleWords[name])
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("Rules of the index %s: %s. %s says what belongs where.", r.index(), strings.Join(all, "; "),
		ManifestPath)
}

// Violation is a line of an index that breaks a rule.
type Violation struct {
	Rule    string `json:"rule"`
	Line    int    `json:"line" doc:"From 1; 0 is the whole index."`
	Text    string `json:"text" doc:"The beginning of the line."`
	Why     string `json:"why"`
	Belongs string `json:"belongs" doc:"Where it belongs, by the manifest; empty if nothing is to be moved."`
}

func (v Violation) String() string {
	text := v.Why
	if v.Line > 0 {
		text = fmt.Sprintf("line %d (%q) %s", v.Line, v.Text, v.Why)
	}
	if v.Belongs != "" {
		text += fmt.Sprintf("; by the manifest it belongs in %s", v.Belongs)
	}
	return text
}

// refusal returns the error of a change after which the index would break rules.
func refusal(path string, broken []Violation) error {
	var lines []string
	for _, v := range broken[:min(len(broken), 5)] {
		lines = append(lines, fmt.Sprintf("[%s] %s.", v.Rule, v))
	}
	if n := len(broken) - 5; n > 0 {
		lines = append(lines, fmt.Sprintf("%d more lines break rules.", n))
	}
	return db.Invalid("%s is an index of pointers; nothing was changed, because the new text would break its rules:\n%s",
		path, strings.Join(lines, "\n"))
}

// indexLine is a line of an index.
type indexLine struct {
	number   int
	text     string
	section  string // heading above the line, in lower case
	heads    bool   // the line is a heading
	item     bool   // item of a list
	row      bool   // row of a table
	plain    bool   // none of these
	inFence  bool
	pointers []string
}

var (
	heading   = regexp.MustCompile(`^#{1,6}\s+(.*)$`)
	underline = regexp.MustCompile(`^ {0,3}(?:=+|--+)\s*$`) // below a heading
	quote     = regexp.MustCompile(`^\s*(?:>\s?)+`)
	listItem  = regexp.MustCompile(`^\s*(?:[^\pL\pN\s|#>\x60]{1,2}\x{FE0F}?|\(?(?:\d+|\pL|[ivxIVX]+)[.)])\s+\S|^\s*<li\b`)
	boldLine  = regexp.MustCompile(`^\s*(?:\*\*([^*]{1,60})\*\*|__([^_]{1,60})__):?\s*$`)
	separator = regexp.MustCompile(`^[\s|:-]+$`)
	divider   = regexp.MustCompile(`^\s*(?:[-=*_]\s*){3,}$`)
	fence     = regexp.MustCompile("^\\s*(?:```|~~~)")
	hash      = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	anyUUID   = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

	temporary = regexp.MustCompile(`(?i)^\W*temp(?:orary|orarily)?\s*[:(]|\btemporary (?:notes?|fix|workaround|hack)\b|` +
		`\b(?:temporarily|temp note|for now|todo|to do:|wip|tbd|remind me|later today|this session|tomorrow|tonight|` +
		`remember to|don['’]t forget(?: to)?|` +
		`until (?:then|further notice|(?:next|this) \w+|\w+day))\b|^\W*reminders?:`)

	// passing matches the names of sections for temporary notes.
	passing = regexp.MustCompile(`^(?:temp|temporary|scratch|reminder|todo|to do)\b`)
)

// recentSection matches the name of the section for recent activity.
var recentSection = regexp.MustCompile(`(?i)^recent`)

// nameOf returns the name of a section: its heading in lower case, from the first letter to the last.
func nameOf(heading string) string {
	return strings.ToLower(strings.TrimFunc(heading, func(r rune) bool { return !unicode.IsLetter(r) }))
}

// readIndex reads the lines of an index.
func readIndex(content string) (lines []indexLine) {
	section, fenced := "", false
	all := Lines(lineFeeds(content))
	for i, whole := range all {
		l := indexLine{number: i + 1, text: whole, section: section, inFence: fenced}
		text := quote.ReplaceAllString(whole, "")
		switch {
		case fence.MatchString(text):
			fenced, l.inFence = !fenced, true
		case fenced || strings.TrimSpace(text) == "":
		case divider.MatchString(text):
		case heading.MatchString(text):
			section = nameOf(heading.FindStringSubmatch(text)[1])
			l.section, l.heads = section, true
		case boldLine.MatchString(text), i+1 < len(all) && isTitle(text) && underline.MatchString(all[i+1]):
			section = nameOf(text)
			l.section, l.heads = section, true
		case strings.HasPrefix(strings.TrimSpace(text), "|"):
			l.row = true
		case listItem.MatchString(text):
			l.item = true
		default:
			l.plain = true
		}
		l.pointers = pointersOf(text)
		lines = append(lines, l)
	}
	return lines
}

// isTitle reports whether a line becomes a heading if the line below underlines it.
func isTitle(text string) bool {
	return !listItem.MatchString(text) && !underline.MatchString(text) && !strings.HasPrefix(strings.TrimSpace(text), "|")
}

// lineFeeds returns a text in which every line ends in a line feed, or in a carriage return and a line feed.
func lineFeeds(text string) string {
	lines := strings.Split(text, "\r\n")
	for i, line := range lines {
		lines[i] = frame.LineFeeds(line)
	}
	return strings.Join(lines, "\r\n")
}

// indexCheck checks an index.
type indexCheck struct {
	rules    IndexRules
	manifest Manifest
	lines    []indexLine
	others   []File // the tree's other files
	broken   []Violation
}

// checkIndex returns the rules that a text of the index breaks.
func checkIndex(r IndexRules, m Manifest, content string, others []File) []Violation {
	c := &indexCheck{rules: r, manifest: m, lines: readIndex(content), others: others}
	if n := utf8.RuneCountInString(content); n > r.maxChars() {
		c.add(ruleSize, indexLine{}, fmt.Sprintf("the index would have %d characters, and may have %d: move what it tells "+
			"to files that it points to", n, r.maxChars()), false)
	}
	for _, l := range c.lines {
		c.checkLine(l)
	}
	c.checkLists()
	c.checkDuplicates()
	slices.SortStableFunc(c.broken, func(a, b Violation) int { return a.Line - b.Line })
	return c.broken
}

func (c *indexCheck) add(rule string, l indexLine, why string, moves bool) {
	if !c.rules.holds(rule) {
		return
	}
	v := Violation{Rule: rule, Line: l.number, Text: db.Beginning(strings.TrimSpace(l.text), 80), Why: why}
	if moves {
		v.Belongs = c.manifest.place(rule, l.section+" "+l.text)
	}
	c.broken = append(c.broken, v)
}

func (c *indexCheck) checkLine(l indexLine) {
	if l.inFence {
		if fence.MatchString(l.text) {
			c.add(ruleCode, l, "is code", true)
		}
		return
	}
	said := saidIn(l)
	if isErrorOutput(withoutPointers(l.text)) || slices.ContainsFunc(said, errorText.MatchString) {
		c.add(ruleError, l, "is a raw message of an error: say what was learned from it", true)
	}
	for _, text := range said {
		noted := strings.TrimSpace(text) != "" && !l.heads && passing.MatchString(l.section)
		if noted || temporary.MatchString(text) {
			c.add(ruleTemporary, l, "is a note for the moment", true)
		}
	}
	if hasHash(l) {
		c.add(ruleHash, l, "has the hash of a commit", true)
	}
	if p := c.dangling(l); p != "" {
		c.add(ruleDangling, l, fmt.Sprintf("points to %s, which does not exist: create the file first. A path "+
			"with spaces or brackets is written as [text](<path>)", p), false)
	}
	if l.heads && headingTells(l.text) {
		c.add(ruleContent, l, "is a heading that tells something: name the topic, and tell it in a file", true)
	} else if c.tells(l) {
		c.add(ruleContent, l, "tells something and points to no file", true)
	} else if tellsBeside(l) {
		c.add(ruleContent, l, "tells a fact beside its pointer: the fact belongs in the file", true)
	}
}

// maxLabelWords: a heading, or a text that points to a file, only names something if it has at most this many words.
const maxLabelWords = 3

// cells returns the text of a line without pointers. For a row it returns one text per cell.
func (l indexLine) cells() []string {
	text := withoutPointers(l.text)
	if l.row {
		return strings.Split(strings.Trim(text, "| "), "|")
	}
	return []string{text}
}

// saidIn returns what a line says: its text without pointers, or the cells of a row. It leaves out texts that only name
// the thing to which the line points, and headings of a few words.
func saidIn(l indexLine) (said []string) {
	for _, part := range l.cells() {
		names := len(wordOf.FindAllString(part, -1)) <= maxLabelWords
		if !names || len(l.pointers) == 0 && !l.heads {
			said = append(said, part)
		}
	}
	return said
}

// hasHash reports whether a line has a commit hash outside a path.
func hasHash(l indexLine) bool {
	text := anyUUID.ReplaceAllString(withoutPointers(l.text), " ")
	return slices.ContainsFunc(hash.FindAllString(text, -1), func(s string) bool {
		return strings.ContainsAny(s, "0123456789") && strings.ContainsAny(s, "abcdef")
	})
}

// checkLists finds lists with too many items, and tables with too many rows that point to no file.
func (c *indexCheck) checkLists() {
	items, rows, most := 0, 0, c.rules.maxListItems()
	for _, l := range c.lines {
		switch {
		case l.item:
			if items++; items == most+1 {
				c.add(ruleList, l, fmt.Sprintf("is item %d of a list that may have %d: make the list a file of its own, or a "+
					"table of pointers", items, most), true)
			}
		case l.row && len(l.pointers) == 0 && !c.headOfTable(l):
			if rows++; rows == most+1 {
				c.add(ruleList, l, fmt.Sprintf("is row %d without a pointer of a table that may have %d: make the table a file "+
					"of its own", rows, most), true)
			}
		case !l.row && strings.TrimSpace(l.text) != "":
			items, rows = 0, 0
		}
	}
}
