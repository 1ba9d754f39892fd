package file

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// ManifestPath is the path of the manifest, the file that says what belongs in which file.
const ManifestPath = Root + "/MANIFEST.md"

// Manifest says which files a tree has, and what belongs in each.
type Manifest struct {
	Entries []ManifestEntry `json:"entries"`
}

// ManifestEntry is a line of a manifest.
type ManifestEntry struct {
	Path     string `json:"path" doc:"Of the files, with * for any name: /memories/projects/*.md."`
	Holds    string `json:"holds" doc:"What belongs in them."`
	MaxChars int    `json:"max_chars" required:"false" minimum:"0" maximum:"102400" doc:"0: no limit."`
	Update   string `json:"update" required:"false" enum:"append,upsert,replace" doc:"append adds at the end only."`
	NotHere  string `json:"not_here" required:"false" doc:"What does not belong in them, and where it goes."`
}

// How a file may be changed.
const (
	updateAppend  = "append"
	updateUpsert  = "upsert"
	updateReplace = "replace"
)

// DefaultManifest returns a copy of the manifest for trees without one.
func DefaultManifest() Manifest { return Manifest{slices.Clone(defaultManifest.Entries)} }

// defaultManifest is the manifest for trees without one.
var defaultManifest = Manifest{Entries: []ManifestEntry{
	{Path: Root + "/MEMORY.md", Holds: "the index: pointers to the other files", MaxChars: 5_000, Update: updateReplace,
		NotHere: "facts, code and errors go to the file of their topic"},
	{Path: Root + "/TODO.md", Holds: "open tasks, temporary notes, reminders", Update: updateReplace},
	{Path: Root + "/projects/*.md", Holds: "one project each: status, decisions, commits, code, releases",
		Update: updateUpsert},
	{Path: Root + "/people/*.md", Holds: "one person each: user, role, preferences", Update: updateUpsert},
	{Path: Root + "/infra/*.md", Holds: "one service each: hosts, servers, ports, database, deployment",
		Update: updateUpsert},
	{Path: Root + "/lessons.md", Holds: "what was learned from errors and failures", Update: updateAppend},
	{Path: Root + "/topics/*.md", Holds: "any other topic", Update: updateUpsert},
}}

// manifestHead is the first line of a manifest's table.
const manifestHead = "| Path | Holds | Limit | Update | Elsewhere |"

// Render returns the manifest as the file that agents read.
func (m Manifest) Render() string {
	var b strings.Builder
	b.WriteString("# Manifest\n\nWhich files there are, and what belongs in each.\n\n" + manifestHead +
		"\n| --- | --- | --- | --- | --- |\n")
	for _, e := range m.Entries {
		limit := ""
		if e.MaxChars > 0 {
			limit = strconv.Itoa(e.MaxChars)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", e.Path, cell(e.Holds), limit, e.Update, cell(e.NotHere))
	}
	return b.String()
}

// cell returns a text in a form that fits in a table cell.
func cell(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "/")), " ")
}

// ParseManifest reads the table of a manifest. ErrInvalid if there is no table, or one of its lines breaks a rule.
func ParseManifest(text string) (m Manifest, err error) {
	lines := Lines(text)
	head := slices.IndexFunc(lines, func(l string) bool {
		return strings.Join(strings.Fields(l), " ") == manifestHead
	})
	if head < 0 {
		return m, db.Invalid("the manifest has no table that begins with %q; nothing was changed", manifestHead)
	}
	for i, l := range lines[head+1:] {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "|") {
			break
		}
		if separator.MatchString(l) {
			continue
		}
		cells := strings.Split(strings.Trim(l, "|"), "|")
		if len(cells) != 5 {
			return m, db.Invalid("line %d of the manifest has %d cells; it must have 5", head+i+2, len(cells))
		}
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		e := ManifestEntry{Path: cells[0], Holds: cells[1], Update: cells[3], NotHere: cells[4]}
		if e.MaxChars, err = strconv.Atoi(cells[2]); err != nil && cells[2] != "" {
			return m, db.Invalid("line %d of the manifest has the limit %q; it must be a number of characters, or empty",
				head+i+2, db.Short(cells[2]))
		}
		m.Entries = append(m.Entries, e)
	}
	return m, m.check()
}

// maxManifestEntries is how many entries a manifest may have.
const maxManifestEntries = 200

func (m *Manifest) check() error {
	if len(m.Entries) == 0 || len(m.Entries) > maxManifestEntries {
		return db.Invalid("a manifest has from 1 to %d entries, and not %d", maxManifestEntries, len(m.Entries))
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Update == "" {
			e.Update = updateUpsert
		}
		_, err := ParseFile(strings.ReplaceAll(e.Path, "*", "x"))
		switch {
		case err != nil:
			return db.Invalid("entry %d of the manifest: %v", i+1, err)
		case strings.TrimSpace(e.Holds) == "":
			return db.Invalid("entry %d of the manifest (%s) does not say what belongs there", i+1, e.Path)
		case !slices.Contains([]string{updateAppend, updateUpsert, updateReplace}, e.Update):
			return db.Invalid("entry %d of the manifest has the update %q; it must be append, upsert or replace", i+1,
				db.Short(e.Update))
		case e.MaxChars < 0 || e.MaxChars > MaxFileBytes:
			return db.Invalid("entry %d of the manifest has the limit %d; it must be from 0 to %d characters", i+1, e.MaxChars,
				MaxFileBytes)
		}
	}
	return nil
}

// entry returns the first entry that covers a path.
func (m Manifest) entry(file string) (ManifestEntry, bool) {
	for _, e := range m.Entries {
		if ok, err := path.Match(fold(e.Path), fold(file)); err == nil && ok {
			return e, true
		}
	}
	return ManifestEntry{}, false
}

// allows returns ErrInvalid if the manifest does not allow a file's text to change from before to after.
func (m Manifest) allows(file, before, after string) error {
	e, ok := m.entry(file)
	if !ok {
		return nil
	}
	if n := utf8.RuneCountInString(after); e.MaxChars > 0 && n > e.MaxChars {
		return db.Invalid("%s would have %d characters; by the manifest it may have %d. Nothing was changed: put a part of "+
			"it into another file. %s", file, n, e.MaxChars, e.NotHere)
	}
	if e.Update == updateAppend && !strings.HasPrefix(after, strings.TrimSuffix(before, "\n")) {
		return db.Invalid("by the manifest %s is only added to, at its end; nothing was changed", file)
	}
	return nil
}

// keeps returns ErrInvalid if the manifest does not allow a file to leave its path. A file that may only be appended to
// must stay, because otherwise it could be written anew.
func (m Manifest) keeps(file string) error {
	if e, ok := m.entry(file); ok && e.Update == updateAppend {
		return db.Invalid("by the manifest %s is only added to, at its end: it is not deleted, and not renamed; nothing was "+
			"changed. An operator may change the manifest first", file)
	}
	return nil
}

// kinds maps each rule to words. The place for a line that breaks the rule is found by these words.
var kinds = map[string]string{
	ruleHash: "commits project", ruleCode: "code project", ruleError: "errors learned failures lessons",
	ruleTemporary: "temporary tasks todo notes", ruleContent: "", ruleList: "",
}

var wordOf = regexp.MustCompile(`[\pL\pN]{3,}`)

// fillers are words in manifests that do not say what belongs in a file.
var fillers = []string{"memories", "any", "one", "each", "other", "the", "and", "from", "what", "was", "for", "file"}

// place returns the path of the entry that fits a line best, except the index. If no entry fits, it returns the last
// one.
func (m Manifest) place(rule, line string) string {
	best, _ := m.best(kinds[rule] + " " + line)
	return best
}

// best returns the path of the entry that fits a text best, except the index, and the number of fitting words. If no
// entry fits, it returns the last one.
func (m Manifest) best(text string) (best string, most int) {
	words := wordOf.FindAllString(strings.ToLower(text), -1)
	for _, e := range m.Entries {
		if strings.HasSuffix(e.Path, "/MEMORY.md") || e.Path == ManifestPath {
			continue
		}
		score := 0
		for _, w := range wordOf.FindAllString(strings.ToLower(e.Path+" "+e.Holds), -1) {
			same := func(o string) bool { return o == w || o+"s" == w || o == w+"s" }
			if !slices.Contains(fillers, w) && slices.ContainsFunc(words, same) {
				score++
			}
		}
		if score > most || most == 0 {
			best, most = e.Path, max(score, most)
		}
	}
	return best, most
}
