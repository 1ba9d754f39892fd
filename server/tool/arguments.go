package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// ignored are arguments that Letta's agents add to every call, for their loop and not for the tool.
var ignored = []string{"request_heartbeat", "inner_thoughts", "thinking"}

// The types of arguments. Each takes what models write in place of the right JSON; a struct of arguments is made of
// pointers to these where absent differs from zero.
type (
	number      int    // also "20" and 20.0
	flag        bool   // also "true", "False", 1
	text        string // also a bare number or boolean; without NUL, which no stored text has
	list[T any] []T    // also a single item, and a JSON list in a string
)

// decode reads the arguments of a call into the struct that dst points to, whose fields are the types above. Null and
// an empty string count as absent, a JSON object in a string as that object. An argument that the struct lacks is
// refused: a model that misspells one would otherwise never learn of it. who names the taker in errors, all of which
// are ErrInvalid.
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
		if value := given[name]; !absent(value) {
			if err := json.Unmarshal(value, v.Field(i).Addr().Interface()); err != nil {
				return named(err, name, who)
			}
		}
	}
	return nil
}

// mismatch is an argument's JSON of a wrong type.
type mismatch struct {
	want string
	got  []byte
}

func (m *mismatch) Error() string {
	return "must be " + m.want + ", got " + echo(string(m.got)) + "."
}

// named makes a sentence of a mismatch by saying whose it is.
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

// unwrapped returns the JSON that is meant: an object or a list where raw is a string that holds one; nothing for
// null and "".
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
		v.SetString(recall.UnmarkLineEnds(chat.Restore(v.String())))
	case reflect.Slice:
		for i := range v.Len() {
			restore(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			restore(field)
		}
	}
}

func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == `""`
}

func argumentsOf[A any]() []string { return names(reflect.TypeFor[A]()) }

// names are those of a struct's fields in JSON.
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
	*t = text(strings.ReplaceAll(word, "\x00", ""))
	return nil
}

func (l *list[T]) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	items := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
	}
	for _, raw := range items {
		if absent(raw) {
			continue
		}
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// scalar is a JSON string, number or boolean as text; false for an object or a list.
func scalar(raw []byte) (string, bool) {
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), raw[0] != '{' && raw[0] != '['
}

// limited is a limit as asked for, at least 1 and at most the most that there is.
func limited(asked *number, usual, most int) (int, error) {
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
