package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// ignored are the arguments that Letta's agents add to every call for their agent loop. Tools do not read them.
var ignored = []string{"request_heartbeat", "inner_thoughts", "thinking"}

// The types of arguments. Each also accepts wrong JSON that models commonly write. A field is a pointer if absent
// differs from zero.
type (
	number      int    // also "20" and 20.0
	start       int    // a number from 0 on
	flag        bool   // also "true", "False", 1
	text        string // also a bare number or boolean; without NUL, which no stored text has
	selection   string // a text of a memory, or one for it, as it was given: marks of a prompt may be cut
	list[T any] []T    // also a single item, and a JSON list in a string
)

// decode reads the arguments of a call into the struct that dst points to, whose fields have the types above. Null and
// an empty string count as absent, but for a *text or a *selection, and a JSON object in a string as that object.
// ErrInvalid, in the name of who, for an argument of another type, and for one that the struct lacks: a model must
// learn that it misspelled a name.
func decode(who string, raw json.RawMessage, dst any) error {
	v := reflect.ValueOf(dst).Elem()
	given := map[string]json.RawMessage{}
	if raw = unwrapped(raw); len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return db.Invalid("The arguments of %s must be a JSON object of: %s; got %s.", who, joined(names(v.Type())),
			echo(string(raw)))
	}
	if err := refuseUnknown(who, given, names(v.Type())); err != nil {
		return err
	}
	for i, name := range names(v.Type()) {
		value, kind := given[name], v.Field(i).Type()
		keepsEmpty := kind == reflect.TypeFor[*text]() || kind == reflect.TypeFor[*selection]()
		if !absent(value) || keepsEmpty && string(value) == `""` {
			if err := json.Unmarshal(value, v.Field(i).Addr().Interface()); err != nil {
				return named(err, name, who)
			}
		}
	}
	return nil
}

// mismatch is the error of an argument of a wrong type.
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

func refuseUnknown(who string, given map[string]json.RawMessage, known []string) error {
	var unknown []string
	for name := range given {
		if !slices.Contains(known, name) && !slices.Contains(ignored, name) {
			unknown = append(unknown, echo(name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return db.Invalid("Unknown %s %s: %s takes %s.", noun(len(unknown), "argument"), joined(unknown), who, joined(known))
}

// refuseOthers returns ErrInvalid if a call gives an argument that its command does not take. args is the struct of the
// tool's arguments. Empty texts, zeros and empty lists count as absent: some models send all arguments of a tool.
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

// unwrapped returns the object or list in raw if raw is a string that holds one, nil for null and "", else raw.
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
	if strings.HasPrefix(inner, "{") || strings.HasPrefix(inner, "[") {
		if json.Valid([]byte(inner)) {
			return json.RawMessage(inner)
		}
	}
	return raw
}

// restore undoes, in the texts of arguments, the marks with which a prompt shows tags and labels, and a result stray
// line ends.
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

// replaced puts a text in the place of another in a value: of one that it has as a prompt or a result shows it, where
// marks may be cut, without its marks, or verbatim. labels are the names of tags that a prompt marks in values.
func replaced(value string, labels []string, old, text selection,
	replace func(value, old, text string) (string, error)) (string, error) {
	given, in := string(old), string(text)
	form, found := findShown(value, labels, given, in)
	asShown := func() (string, error) {
		edited, err := replace(form.shown, form.selected, in)
		return form.restore(edited), err
	}
	switch marked := someMark.MatchString(given); {
	case marked && found:
		return asShown()
	case strings.Contains(value, unmarked(given)):
		return replace(value, unmarked(given), unmarked(in))
	case strings.Contains(value, given):
		return replace(value, given, in)
	case found && strings.Trim(given, "~") != "":
		return asShown()
	}
	return replace(value, unmarked(given), unmarked(in))
}

// shownForm is a value as a model is shown it, the selection as it stands there, and what makes it the value again.
type shownForm struct {
	shown, selected string
	restore         func(string) string
}

// findShown finds a selection in a value as prompts show it, then as results show it, with stray line ends marked. A
// mark goes with the bracket that the selection ends with, unless the text that takes its place ends with it, too.
func findShown(value string, labels []string, given, in string) (f shownForm, found bool) {
	_, size := utf8.DecodeLastRuneInString(given)
	bracket := given[len(given)-size:]
	cutsMark := strings.Contains(frame.Brackets, bracket) && !strings.HasSuffix(in, bracket)
	for _, f := range []shownForm{{value, given, frame.Restore}, {frame.MarkLineEnds(value), given, unmarked}} {
		f.shown = frame.Neutralize(f.shown, labels...)
		if cutsMark && strings.Contains(f.shown, given+"~") {
			f.selected += "~"
		}
		if strings.Contains(f.shown, f.selected) {
			return f, true
		}
	}
	return shownForm{}, false
}

// A mark that a selection may have cut: at its beginning, where the bracket or the line end before it is missing, and
// at its end, where the rest of the tag or label is.
var (
	bracketClass = `[` + regexp.QuoteMeta(frame.Brackets) + `]`
	firstMark    = regexp.MustCompile(`^[~⏎]`)
	lastMark     = regexp.MustCompile(`(` + bracketClass + `)~(~*[^` + bracketClass[1:] + `*)$`)
	anyMark      = regexp.MustCompile(`(^|` + bracketClass + `)~|^⏎`)
	someMark     = regexp.MustCompile(bracketClass + `~`)
)

// readings returns the texts that a selection may have been taken from, the likeliest first: without its marks, without
// those that it may have cut, and verbatim.
func readings(given string) (all []string) {
	last, first := lastMark.ReplaceAllString(given, "$1$2"), firstMark.ReplaceAllString(given, "")
	for _, s := range []string{given, last, first, lastMark.ReplaceAllString(first, "$1$2"),
		anyMark.ReplaceAllString(given, "$1")} {
		all = append(all, unmarked(s))
	}
	tail := strings.LastIndexAny(given, frame.Brackets) // it begins a tag only where the selection ends with it
	all = append(all, unmarked(given[:max(tail, 0)])+given[max(tail, 0):], frame.UnmarkLineEnds(given), given)
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" && given != "" })
	for i := len(all) - 1; i > 0; i-- {
		if slices.Contains(all[:i], all[i]) {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == `""`
}

func argumentsOf[A any]() []string { return names(reflect.TypeFor[A]()) }

// names returns the JSON names of a struct's fields.
func names(t reflect.Type) []string {
	all := make([]string, t.NumField())
	for i := range all {
		all[i] = t.Field(i).Tag.Get("json")
	}
	return all
}

func (n *number) UnmarshalJSON(raw []byte) error {
	word, ok := scalar(raw)
	f, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if !ok || err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return &mismatch{"a whole number such as 20", raw}
	}
	*n = number(f)
	return nil
}

func (s *start) UnmarshalJSON(raw []byte) error {
	err := (*number)(s).UnmarshalJSON(raw)
	if err == nil && *s < 0 {
		err = &mismatch{"at least 0", raw}
	}
	return err
}

func (f *flag) UnmarshalJSON(raw []byte) error {
	word, ok := scalar(raw)
	b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(word)))
	if !ok || err != nil {
		return &mismatch{"true or false", raw}
	}
	*f = flag(b)
	return nil
}

func (t *text) UnmarshalJSON(raw []byte) error {
	word, ok := scalar(raw)
	if !ok {
		return &mismatch{"a string", raw}
	}
	*t = text(db.Clean(word))
	return nil
}

func (s *selection) UnmarshalJSON(raw []byte) error { return (*text)(s).UnmarshalJSON(raw) }

func (l *list[T]) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	var items []json.RawMessage // not of raw, whose bytes they would overwrite
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
	} else {
		items = append(items, raw)
	}
	for _, raw := range items {
		if absent(raw) {
			continue
		}
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			if m := (*mismatch)(nil); errors.As(err, &m) {
				return &mismatch{"a list; each item must be " + m.want, m.got}
			}
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// tagFilter is a list of tags, of which an empty one is a filter too: nothing has it.
type tagFilter list[text]

// UnmarshalJSON implements json.Unmarshaler.
func (f *tagFilter) UnmarshalJSON(raw []byte) error {
	if err := (*list[text])(f).UnmarshalJSON(raw); err != nil {
		return err
	}
	var items []any
	if json.Unmarshal(unwrapped(raw), &items) == nil && slices.Contains(items, any("")) {
		*f = append(*f, "")
	}
	return nil
}

// plain returns texts as strings.
func plain(texts []text) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = string(t)
	}
	return all
}

// scalar returns a JSON string, number or boolean as text; false for an object or a list.
func scalar(raw []byte) (string, bool) {
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), raw[0] != '{' && raw[0] != '['
}

// maxOffset is the most results that a search skips.
const maxOffset = 10_000

// skipped returns the offset of a call, 0 if it has none. ErrInvalid if it is below 0 or above maxOffset.
func skipped(asked *number) (int, error) {
	offset := int(deref(asked, 0))
	if offset < 0 || offset > maxOffset {
		return 0, db.Invalid("offset must be between 0 and %d, got %d", maxOffset, offset)
	}
	return offset, nil
}

// limited returns the limit of a call, the usual one if it has none. ErrInvalid if it is below 1 or above most.
func limited(asked *number, usual, most int) (int, error) {
	limit, err := lowered(asked, usual, most)
	if err == nil && asked != nil && int(*asked) > most {
		err = db.Invalid("limit must be between 1 and %d, got %d", most, int(*asked))
	}
	return limit, err
}

// lowered is limited for the tools that Letta has too: as there, a limit above most is lowered to it.
func lowered(asked *number, usual, most int) (int, error) {
	limit := int(deref(asked, number(usual)))
	if limit < 1 {
		return 0, db.Invalid("limit must be between 1 and %d, got %d", most, limit)
	}
	return min(limit, most), nil
}

func deref[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
