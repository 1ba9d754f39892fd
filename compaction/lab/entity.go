package lab

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
)

// Kind names what an entity is.
type Kind string

// The kinds of entities.
const (
	Path      Kind = "paths"       // paths of files, and addresses
	Number    Kind = "numbers"     // amounts, dates, versions
	Name      Kind = "identifiers" // names as in programs
	ID        Kind = "ids"         // ids of messages, calls, commits and other things
	Quote     Kind = "lines"       // whole lines of an earlier message that an answer repeats
	ErrorText Kind = "errors"      // lines of a result that say what failed
)

// Kinds lists the kinds.
var Kinds = []Kind{Path, Number, Name, ID, Quote, ErrorText}

// use is an answer's use of an entity, with the earlier messages that contain the entity.
type use struct {
	entity string
	kind   Kind
	in     []int // indexes of messages, ascending
}

// Limits: the characters of a line that counts as an entity, and how many error lines are remembered.
const (
	minLineChars  = 24
	minErrorChars = 12
	maxLineChars  = 300
	maxErrorLines = 400
)

// entities remembers what messages contain, and finds what later answers use of it.
type entities struct {
	seen   map[string][]int // path, number or name → messages with it
	lines  map[string][]int // line → messages with it
	errors []errorLine      // the newest
}

type errorLine struct {
	text string
	in   int
}

// usesOf returns for each message the entities that it uses from earlier messages. Only answers use any.
func usesOf(messages []recall.Message) [][]use {
	e := entities{seen: map[string][]int{}, lines: map[string][]int{}}
	all := make([][]use, len(messages))
	for i, m := range messages {
		text := spoken(m)
		found := prose.Identifiers(text)
		lines := linesOf(m)
		if m.Role == recall.Assistant {
			all[i] = e.uses(text, found, lines)
		}
		e.note(i, m, found, lines)
	}
	return all
}

// uses returns the entities that an answer uses.
func (e *entities) uses(text string, found, lines []string) (all []use) {
	for _, entity := range found {
		if messages := e.seen[entity]; len(messages) > 0 {
			all = append(all, use{entity, kindOf(entity), slices.Clone(messages)})
		}
	}
	for _, line := range lines {
		if messages := e.lines[line]; len(messages) > 0 && utf8.RuneCountInString(line) >= minLineChars {
			all = append(all, use{line, Quote, slices.Clone(messages)})
		}
	}
	for _, line := range e.errors {
		if strings.Contains(text, line.text) && !slices.ContainsFunc(all, func(u use) bool { return u.entity == line.text }) {
			all = append(all, use{line.text, ErrorText, []int{line.in}})
		}
	}
	return all
}

// note remembers what message i contains.
func (e *entities) note(i int, m recall.Message, found, lines []string) {
	for _, entity := range found {
		e.seen[entity] = append(e.seen[entity], i)
	}
	for _, line := range lines {
		e.lines[line] = append(e.lines[line], i)
		if m.Role == recall.Tool && isErrorLine(line) {
			e.errors = append(e.errors, errorLine{line, i})
		}
	}
	if n := len(e.errors) - maxErrorLines; n > 0 {
		e.errors = e.errors[n:]
	}
}

// lineNumber matches the number that tools put before the lines of files.
var lineNumber = regexp.MustCompile(`^\d{1,7}[\t:|→] ?`)

// linesOf returns the lines of a message that say something, each once, without indentation and line numbers. For calls
// these are lines of the texts in the arguments.
func linesOf(m recall.Message) (all []string) {
	seen := map[string]bool{}
	for _, p := range m.Content {
		for _, text := range append(textsIn(p.Input), p.Text) {
			for line := range strings.Lines(text) {
				if len(line) > 4*maxLineChars {
					continue
				}
				line = strings.TrimSpace(lineNumber.ReplaceAllString(strings.TrimSpace(line), ""))
				if n := utf8.RuneCountInString(line); n < minErrorChars || n > maxLineChars || seen[line] ||
					!strings.ContainsFunc(line, unicode.IsLetter) {
					continue
				}
				seen[line] = true
				all = append(all, line)
			}
		}
	}
	return all
}

// textsIn returns the texts in a call's arguments that have several lines or words.
func textsIn(input string) (all []string) {
	if !strings.Contains(input, " ") {
		return nil
	}
	var args any
	if json.Unmarshal([]byte(input), &args) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(args)
	slices.Sort(all) // the order of a map varies
	return all
}

// failing matches a line that says what failed.
var failing = regexp.MustCompile(`(?i)(\b(\w*error|\w*exception|fail(ed|ure)?|fatal|panic|traceback|undefined|` +
	`refused|denied)\b|cannot|not found|no such)`)

func isErrorLine(line string) bool { return failing.MatchString(line) }

// spoken returns everything that a message says, calls and returns.
func spoken(m recall.Message) string {
	var b strings.Builder
	for _, p := range m.Content {
		for _, text := range []string{p.Text, p.Name, p.Input} {
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// clipped returns the beginning and the end of a text if it is longer than chars characters.
func clipped(text string, chars int) string {
	if utf8.RuneCountInString(text) <= chars {
		return text
	}
	all := []rune(text)
	return string(all[:chars/2]) + fmt.Sprintf("\n[… %d characters …]\n", len(all)-chars) +
		string(all[len(all)-chars/2:])
}

// idLike matches ids: those with a prefix and a long ending, and hexadecimal ones.
var idLike = regexp.MustCompile(`^([a-z]+[-_])?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{7,64}$|` +
	`^(message|msg|call|toolu|clip|run|step|job|req|evt|chatcmpl)[-_]\w{4,}$`)

// kindOf returns the kind of an entity, judged by its characters.
func kindOf(entity string) Kind {
	if strings.ContainsAny(entity, "/\\") {
		return Path
	}
	if !strings.ContainsFunc(entity, unicode.IsLetter) {
		return Number
	}
	if idLike.MatchString(entity) && strings.ContainsAny(entity, "0123456789") {
		return ID
	}
	if i := strings.LastIndexByte(entity, '.'); i > 0 && len(entity)-i <= 5 && !strings.ContainsAny(entity[i:], "()") {
		return Path
	}
	return Name
}
