package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// alike are names that models give to the same argument, without case and signs. A call that uses one of them means the
// first of the others that its tool takes.
var alike = [][]string{
	{"query", "q", "question", "search", "searchquery", "searchterm", "keywords", "text"},
	{"limit", "topk", "k", "n", "count", "maxresults", "numresults", "pagesize"},
	{"path", "label", "filename", "filepath", "file", "name", "blocklabel", "block", "key"},
	{"oldstring", "oldstr", "oldcontent", "oldtext", "old", "find"},
	{"newstring", "newstr", "newcontent", "newtext", "new", "replacement", "replacewith", "replace"},
	{"filetext", "inserttext", "content", "newmemory", "newstring", "contents", "text", "value", "body", "memory", "fact"},
	{"insertline", "line", "linenumber", "afterline"},
	{"line", "start", "startline", "firstline", "linenumber"},
	{"pattern", "regex", "regexp", "query"},
	{"include", "glob", "path", "files", "filter", "folder"},
	{"conversationid", "session", "sessionid", "conversation"},
	{"id", "messageid", "passageid", "clipid", "resultid", "memoryid", "seq"},
	{"startdate", "startdatetime", "from", "since"},
	{"enddate", "enddatetime", "to", "until"},
	{"viewrange", "range", "lines"},
	{"oldpath", "from", "source", "oldname", "oldlabel", "path"},
	{"newpath", "to", "destination", "newname", "newlabel"},
	{"filerequests", "files", "requests", "filenames", "paths"},
	{"filenames", "files", "names", "filename", "paths"},
	{"kinds", "types"},
	{"changes", "updates", "operations"},
	{"name", "skill", "skillname"},
	{"task", "prompt", "instructions"},
	{"definition", "subagenttype", "agenttype"},
}

// commandNames are other names, in their bare form, that models give to the argument command.
var commandNames = []string{"action", "cmd", "operation", "op", "subcommand"}

// commanding returns the arguments of a call of a tool with commands, with the command under its own name. ErrInvalid
// if the call names two commands.
func commanding(arguments map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	out := maps.Clone(arguments)
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		switch {
		case !slices.Contains(commandNames, bare(name)) || absent(out[name]):
		case absent(out["command"]):
			out["command"] = out[name]
			delete(out, name)
		case !sameJSON(out["command"], out[name]):
			return nil, twoNames(name, "command")
		default:
			delete(out, name)
		}
	}
	return out, nil
}

// bare returns a name in small letters, without signs.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// singular returns a bare name without the ends of plurals.
func singular(bare string) string {
	if stem, ok := strings.CutSuffix(bare, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(bare, "s")
}

// otherNames maps names that a tool has for arguments → the names under which a call gives them, where these differ.
type otherNames map[string]string

// renamed returns the arguments of a call with the names that its tool takes, where another name can only mean one of
// them that is not given, and the names that the call has for them. known are all names that the tool's schema has; the
// names in stay are left as they are. A second name of a given argument is dropped; ErrInvalid if it has another value.
func renamed(arguments map[string]json.RawMessage, takes, known, stay []string) (out map[string]json.RawMessage,
	others otherNames, err error) {
	out, others = maps.Clone(arguments), otherNames{}
	isFree := func(n string) bool { return absent(out[n]) }
	isGiven := func(n string) bool { return !absent(out[n]) }
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if slices.Contains(takes, name) || slices.Contains(stay, name) || absent(arguments[name]) {
			continue
		}
		isKnown := slices.Contains(known, name)
		if meant := nearestOf(name, slices.DeleteFunc(slices.Clone(takes), isGiven), isKnown); meant != "" {
			out[meant], others[meant] = out[name], name
			delete(out, name)
			continue
		}
		given := nearestOf(name, slices.DeleteFunc(slices.Clone(takes), isFree), isKnown)
		switch {
		case given == "" || isKnown:
		case !sameJSON(out[given], out[name]):
			return nil, nil, twoNames(name, cmp.Or(others[given], given))
		default:
			delete(out, name)
		}
	}
	return out, others, nil
}

// twoNames returns ErrInvalid for a call that gives an argument two values, under two names.
func twoNames(name, other string) error {
	return db.Invalid("%s and %s are two names of one argument, and their values differ: give one of them. Nothing was "+
		"done.", echo(name), echo(other))
}

// sameJSON reports whether two values are the same JSON, or the same text of a scalar.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b)) {
		return true
	}
	one, isScalar := scalar(bytes.TrimSpace(a))
	other, isToo := scalar(bytes.TrimSpace(b))
	return isScalar && isToo && one == other
}

// in returns an error that names arguments as the call does. If a call has its own name for the old text of a
// replacement, that for the new one follows from it.
func (o otherNames) in(err error) error {
	if err == nil || len(o) == 0 {
		return err
	}
	all := maps.Clone(o)
	for name, given := range o {
		before, after, changed := "old", "new", strings.HasPrefix(name, "old_")
		if strings.HasPrefix(name, "new_") {
			before, after, changed = after, before, true
		}
		rest, fits := strings.CutPrefix(given, before)
		if counterpart := after + strings.TrimPrefix(name, before); changed && fits && all[counterpart] == "" {
			all[counterpart] = after + rest
		}
	}
	text := err.Error()
	for name, given := range all {
		if strings.Contains(name, "_") { // other names are words of sentences, too
			text = replaceWord(text, name, given)
		}
	}
	return &reworded{err, text}
}

// replaceWord replaces the first place where a name stands as a word.
func replaceWord(text, name, by string) string {
	place := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).FindStringIndex(text)
	if place == nil {
		return text
	}
	return text[:place[0]] + by + text[place[1]:]
}

// reworded is an error with another text.
type reworded struct {
	error
	text string
}

func (r *reworded) Error() string { return r.text }

// Unwrap returns the error whose text it replaces.
func (r *reworded) Unwrap() error { return r.error }

// nearestOf returns the one of the free names that a name means; empty if none. The name of another argument of the
// tool has no other spelling.
func nearestOf(name string, free []string, isKnown bool) string {
	given := bare(name)
	if !isKnown {
		for _, n := range free {
			if b := bare(n); b == given || b == given+"s" || b+"s" == given {
				return n
			}
		}
	}
	for _, group := range alike {
		if !slices.Contains(group, given) {
			continue
		}
		for _, other := range group {
			if i := slices.IndexFunc(free, func(n string) bool { return bare(n) == other }); i >= 0 {
				return free[i]
			}
		}
	}
	return ""
}

func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == `""`
}
