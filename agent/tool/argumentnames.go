package tool

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
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
}

// commandNames are other names, in their bare form, that models give to the argument command.
var commandNames = []string{"action", "cmd", "operation", "op", "subcommand"}

// commanding returns the arguments of a call of a tool with commands, with the command under its own name.
func commanding(arguments map[string]json.RawMessage) map[string]json.RawMessage {
	if !absent(arguments["command"]) {
		return arguments
	}
	out := maps.Clone(arguments)
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if slices.Contains(commandNames, bare(name)) && absent(out["command"]) {
			out["command"] = out[name]
			delete(out, name)
		}
	}
	return out
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

// renamed returns the arguments of a call with the names that its tool takes, where another name can only mean one of
// them that is not given. known are all names that its schema has; the names in stay are left as they are.
func renamed(arguments map[string]json.RawMessage, takes, known, stay []string) map[string]json.RawMessage {
	out := maps.Clone(arguments)
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if slices.Contains(takes, name) || slices.Contains(stay, name) || absent(arguments[name]) {
			continue
		}
		free := slices.DeleteFunc(slices.Clone(takes), func(n string) bool { return !absent(out[n]) })
		if meant := nearestOf(name, free, slices.Contains(known, name)); meant != "" {
			out[meant] = out[name]
			delete(out, name)
		}
	}
	return out
}

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
