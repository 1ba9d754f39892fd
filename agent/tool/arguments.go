package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// ignored lists the arguments that Letta's agents add to every call for their agent loop. Tools do not read them.
var ignored = []string{"request_heartbeat", "inner_thoughts", "thinking"}

// The types of arguments. Each type also accepts wrong JSON that models commonly write. A struct field is a pointer if
// an absent argument differs from a zero one.
type (
	number      int    // also "20" and 20.0
	start       int    // a number ≥ 0
	flag        bool   // also "true", "False", 1
	text        string // also a bare number or boolean; without NUL, because no stored text has one
	selection   string // a part of a memory's text or its replacement, as the model wrote it: it may cut marks
	condition   []byte // a filter: a JSON object, also in a string
	list[T any] []T    // also a single item, and a JSON list in a string
)

// commanded are the arguments of a tool with commands. takes returns the names of the arguments that a command takes,
// or nil if there is no such command; commands lists the commands in words.
type commanded interface {
	takes(command string) []string
	commands() string
}

// otherCommands maps a command that the tools of memories do not have → the one that a model means by it.
var otherCommands = map[string]string{"append": "insert", "add": "insert", "write": "create", "new": "create",
	"read": "view", "show": "view", "get": "view", "list": "view", "ls": "view", "replace": "str_replace",
	"edit": "str_replace", "update": "str_replace", "overwrite": "str_replace",
	"remove": "delete", "move": "rename"}

// noCommand returns ErrInvalid for a command that a tool does not have.
func noCommand(command text, known string) error {
	if command == "" {
		return db.Invalid("The argument command is missing: the commands are %s. Nothing was done.", known)
	}
	if meant := otherCommands[bare(string(command))]; meant != "" {
		known += "; you may mean " + meant
	}
	return db.Invalid("There is no command '%s'; the commands are %s. Nothing was done.", echo(string(command)), known)
}

// decode reads the arguments of a call into the struct that dst points to. The struct's fields have the types above.
// Null and an empty string count as absent, except for a *text or a *selection. A string with a JSON object is read as
// that object. A name that is nearly right is read as the one that is meant. ErrInvalid for an argument of a wrong
// type, and for an unknown argument, so that the model learns of a misspelled name; the error names the tool who.
func decode(who string, raw json.RawMessage, dst any) error {
	_, err := decodeNamed(who, raw, dst)
	return err
}

// decodeNamed is decode. It also returns the names that the call has for arguments.
func decodeNamed(who string, raw json.RawMessage, dst any) (otherNames, error) {
	v := reflect.ValueOf(dst).Elem()
	known, takes := names(v.Type()), schemaNames(v.Type())
	arguments, err := object(who, raw, takes)
	if err != nil {
		return nil, err
	}
	inSchema, stay := schemaNames(v.Type()), slices.Clone(ignored)
	meant := known
	if of, ok := dst.(commanded); ok {
		if arguments, err = commanding(arguments); err != nil {
			return nil, err
		}
		command := commandIn(arguments)
		its := of.takes(command)
		if its == nil {
			return nil, noCommand(text(command), of.commands())
		}
		who, takes = "the command "+command+" of "+who, its
		meant = takes
		stay = append(stay, slices.DeleteFunc(slices.Clone(known), func(n string) bool {
			return slices.Contains(inSchema, n)
		})...)
	}
	arguments, others, err := renamed(arguments, meant, inSchema, stay)
	if err == nil {
		err = refuseUnknown(who, arguments, known, takes)
	}
	if err != nil {
		return nil, err
	}
	for i, name := range known {
		value, kind := arguments[name], v.Field(i).Type()
		keepsEmpty := kind == reflect.TypeFor[*text]() || kind == reflect.TypeFor[*selection]()
		if !absent(value) || keepsEmpty && string(value) == `""` {
			if err := json.Unmarshal(value, v.Field(i).Addr().Interface()); err != nil {
				return nil, named(err, cmp.Or(others[name], name), who)
			}
		}
	}
	return others, nil
}

// object returns the arguments of a call by their names. ErrInvalid if they are no JSON object; takes are those that
// the tool who takes.
func object(who string, raw json.RawMessage, takes []string) (map[string]json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	raw = unwrapped(raw)
	if len(raw) == 0 {
		return arguments, nil
	}
	err := json.Unmarshal(raw, &arguments)
	if inner := ""; raw[0] == '"' && json.Unmarshal(raw, &inner) == nil { // a text, which may be a broken object
		raw = []byte(strings.TrimSpace(inner))
		err = cmp.Or(json.Unmarshal(raw, &arguments), err)
	}
	syntax := (*json.SyntaxError)(nil)
	switch isObject := len(raw) > 0 && raw[0] == '{'; {
	case err == nil:
		return arguments, nil
	case isObject && errors.As(err, &syntax) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return nil, db.Invalid("The arguments of %s end too early, after %d bytes: %s. Nothing was done. Send the whole "+
			"JSON object; a long text goes in several calls.", who, len(raw), ending(string(raw)))
	case isObject && errors.As(err, &syntax):
		return nil, db.Invalid("The arguments of %s are no valid JSON (%v after %d bytes): %s. Nothing was done.", who,
			syntax, syntax.Offset, echo(string(raw)))
	}
	return nil, db.Invalid("The arguments of %s must be a JSON object of: %s; got %s.", who, joined(takes),
		echo(string(raw)))
}

// commandIn returns the command that arguments name; empty if they name none.
func commandIn(arguments map[string]json.RawMessage) string {
	if absent(arguments["command"]) {
		return ""
	}
	command, _ := scalar(arguments["command"])
	return command
}

// mismatch is the error for an argument of a wrong type.
type mismatch struct {
	want string
	got  []byte
}

func (m *mismatch) Error() string {
	return "must be " + m.want + ", got " + echo(string(m.got)) + "."
}

// named adds the argument's name and its tool to a mismatch.
func named(err error, name, who string) error {
	if m := (*mismatch)(nil); errors.As(err, &m) {
		return db.Invalid("Argument %s of %s %v", name, who, m)
	}
	return err
}

// refuseUnknown returns ErrInvalid, with a list of the arguments that the tool takes, if an argument is unknown and not
// empty.
func refuseUnknown(who string, arguments map[string]json.RawMessage, known, takes []string) error {
	var unknown []string
	for name, value := range arguments {
		if !slices.Contains(known, name) && !slices.Contains(ignored, name) && !absent(value) {
			unknown = append(unknown, echo(name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return db.Invalid("Unknown %s %s: %s takes %s.", noun(len(unknown), "argument"), joined(unknown), who, joined(takes))
}

// refuseOthers returns ErrInvalid if a call gives an argument that its command does not take. args is the struct of the
// tool's arguments. Empty texts, zeros and empty lists count as absent, because some models send all arguments of a
// tool.
func refuseOthers(command text, args any, takes ...string) error {
	var others []string
	v := reflect.ValueOf(args)
	for i, name := range names(v.Type()) {
		if name != "command" && !slices.Contains(takes, name) && isGiven(v.Field(i)) {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return db.Invalid("The command %s does not take %s; it takes %s. Nothing was done.", command, joined(others),
		joined(takes))
}

// isGiven reports whether an argument is more than an empty text, a zero or an empty list.
func isGiven(v reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Pointer:
		return !v.IsNil() && isGiven(v.Elem())
	case v.Kind() == reflect.Slice:
		return v.Len() > 0
	}
	return !v.IsZero()
}

// fence matches a block of code in Markdown around JSON.
var fence = regexp.MustCompile("(?s)^```[a-zA-Z]*\\s*([\\[{].*[\\]}])\\s*```$")

// unwrapped returns the JSON object or list that the JSON string raw holds, also in a block of code, nil if raw is null
// or "", and otherwise raw itself.
func unwrapped(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if absent(raw) {
		return nil
	}
	var inner string
	if raw[0] != '"' || json.Unmarshal(raw, &inner) != nil {
		return raw
	}
	inner = strings.TrimSpace(inner)
	if block := fence.FindStringSubmatch(inner); block != nil {
		inner = block[1]
	}
	if strings.HasPrefix(inner, "{") || strings.HasPrefix(inner, "[") {
		if json.Valid([]byte(inner)) {
			return json.RawMessage(inner)
		}
	}
	return raw
}

// restore removes marks from the texts of arguments: those that a prompt puts into tags and labels, and those that a
// result puts for stray line ends.
func restore(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[selection]() {
			v.SetString(unmarked(v.String()))
		}
	case reflect.Slice:
		for i := range v.Len() {
			restore(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			restore(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			restore(field)
		}
	}
}

func unmarked(s string) string { return frame.UnmarkLineEnds(frame.Restore(s)) }

// replaced replaces the text old in a value. It looks for old as a prompt or a result shows the value (where old may
// have cut a mark), then for old without its marks, then for old itself, and last for old without the line numbers of a
// view. labels are the names of tags that a prompt marks in values.
func replaced(value string, labels []string, old, text selection,
	replace func(value, old, text string) (string, error)) (string, error) {
	edited, err := replacedAsGiven(value, labels, old, text, replace)
	if !refused(err) {
		return edited, err
	}
	plain, isNumbered := unnumbered(old)
	switch {
	case !isNumbered:
		return "", err
	case len(frame.Occurrences(value, unmarked(string(plain))))+len(frame.Occurrences(value, string(plain))) == 0:
		return "", db.Invalid("%v It begins with line numbers, which only the view has: leave them out.",
			strings.TrimSuffix(err.Error(), ".")+".")
	}
	return replacedAsGiven(value, labels, plain, withoutNumbers(text), replace)
}

// replacedAsGiven is replaced for an old text without the line numbers of a view.
func replacedAsGiven(value string, labels []string, old, text selection,
	replace func(value, old, text string) (string, error)) (string, error) {
	selected, replacement := string(old), string(text)
	form, found := findShown(value, labels, selected, replacement)
	asShown := func() (string, error) {
		edited, err := replace(form.shown, form.selected, replacement)
		return form.restore(edited), err
	}
	switch marked := someMark.MatchString(selected); {
	case marked && found:
		return asShown()
	case strings.Contains(value, unmarked(selected)):
		return replace(value, unmarked(selected), unmarked(replacement))
	case strings.Contains(value, selected):
		return replace(value, selected, replacement)
	case found && strings.Trim(selected, "~") != "":
		return asShown()
	}
	return replace(value, unmarked(selected), unmarked(replacement))
}

// numberBefore matches what a view shows before a line: the line's number, and a tab, an arrow or a colon.
var numberBefore = regexp.MustCompile(`^ *(\d+)(?:\t|→ ?|: )`)

// unnumbered returns a text without the line numbers that a view shows. ok is false if the text has none: each line
// begins with the next number, except that the text may begin within a line.
func unnumbered(s selection) (plain selection, ok bool) {
	next := 0
	lines := strings.Split(string(s), "\n")
	for i, l := range lines {
		number := numberBefore.FindStringSubmatch(l)
		if number == nil {
			if i == 0 && len(lines) > 1 || l == "" && i == len(lines)-1 {
				continue
			}
			return s, false
		}
		n, err := strconv.Atoi(number[1])
		if err != nil || ok && n != next {
			return s, false
		}
		next, ok = n+1, true
	}
	return withoutNumbers(s), ok
}

// withoutNumbers returns a text without the numbers that its lines have before them.
func withoutNumbers(s selection) selection {
	lines := strings.Split(string(s), "\n")
	for i, l := range lines {
		lines[i] = l[len(numberBefore.FindString(l)):]
	}
	return selection(strings.Join(lines, "\n"))
}

// shownForm is a value as the model sees it. selected is the selection in that form, and restore turns an edited form
// back into a value.
type shownForm struct {
	shown, selected string
	restore         func(string) string
}

// findShown looks for a selection first in the value as prompts show it, then in the value as results show it, with
// stray line ends marked. If the selection ends with a bracket, the mark behind the bracket belongs to it, unless the
// replacement also ends with that bracket.
func findShown(value string, labels []string, selected, replacement string) (f shownForm, found bool) {
	_, size := utf8.DecodeLastRuneInString(selected)
	bracket := selected[len(selected)-size:]
	cutsMark := strings.Contains(frame.Brackets, bracket) && !strings.HasSuffix(replacement, bracket)
	for _, f := range []shownForm{{value, selected, frame.Restore}, {frame.MarkLineEnds(value), selected, unmarked}} {
		f.shown = frame.Neutralize(f.shown, labels...)
		if cutsMark && strings.Contains(f.shown, selected+"~") {
			f.selected += "~"
		}
		if strings.Contains(f.shown, f.selected) {
			return f, true
		}
	}
	return shownForm{}, false
}

// Marks that a selection may have cut. At its beginning, the bracket or the line end before the mark is missing. At its
// end, the rest of the tag or label is missing.
var (
	bracketClass = `[` + regexp.QuoteMeta(frame.Brackets) + `]`
	firstMark    = regexp.MustCompile(`^[~⏎]`)
	lastMark     = regexp.MustCompile(`(` + bracketClass + `)~(~*[^` + bracketClass[1:] + `*)$`)
	anyMark      = regexp.MustCompile(`(^|` + bracketClass + `)~|^⏎`)
	someMark     = regexp.MustCompile(bracketClass + `~`)
)

// readings returns the texts that the model may have copied a selection from, the likeliest first: the selection
// without its marks, without the marks that may be cut, and verbatim.
func readings(selected string) (all []string) {
	last, first := lastMark.ReplaceAllString(selected, "$1$2"), firstMark.ReplaceAllString(selected, "")
	for _, s := range []string{selected, last, first, lastMark.ReplaceAllString(first, "$1$2"),
		anyMark.ReplaceAllString(selected, "$1")} {
		all = append(all, unmarked(s))
	}
	tail := strings.LastIndexAny(selected, frame.Brackets) // this bracket begins a tag only if the selection ends with it
	all = append(all, unmarked(selected[:max(tail, 0)])+selected[max(tail, 0):], frame.UnmarkLineEnds(selected), selected)
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" && selected != "" })
	for i := len(all) - 1; i > 0; i-- {
		if slices.Contains(all[:i], all[i]) {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

func argumentsOf[A any]() []string { return schemaNames(reflect.TypeFor[A]()) }

// schemaNames returns the JSON names of a struct's fields, without those that its schema leaves out.
func schemaNames(t reflect.Type) (all []string) {
	for i, name := range names(t) {
		if t.Field(i).Tag.Get("schema") != "-" {
			all = append(all, name)
		}
	}
	return all
}

// names returns the JSON names of a struct's fields.
func names(t reflect.Type) []string {
	all := make([]string, t.NumField())
	for i := range all {
		all[i] = t.Field(i).Tag.Get("json")
	}
	return all
}
