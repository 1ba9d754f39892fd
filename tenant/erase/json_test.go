package erase

import (
	"bytes"
	"encoding/json"
	"testing"
)

func compact(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An erasure in JSON leaves valid JSON. Loci's own words, JSON's words and ids stay; field names that a caller chose
// are erased.
func TestErasedJSONStaysJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, texts, in, want string
		of                    names
		n, kept               int
	}{
		{"texts and numbers", "text 1234", `{"n":1234567,"list":["a TEXT 1234 b"],"text 1234":null}`,
			`{"[erased]":null,"list":["a [erased] b"],"n":1234567}`, callersNames, 2, 0},
		{"a number", "1234567", `{"n":1234567}`, `{"n":"[…]"}`, ownNames, 1, 0},
		{"names that are Loci's", "Tex", `{"text":"Tex said so","evidence":[{"seq":5,"text":"a tex t"}],"type":"text"}`,
			`{"evidence":[{"seq":5,"text":"a […] t"}],"text":"[…] said so","type":"text"}`, ownNames, 2, 0},
		{"nothing but names and words", "text", `{"text":"a","type":"text"}`, `{"text":"a","type":"text"}`, ownNames, 0, 0},
		{"JSON's own words", "null", `{"a":null,"b":[null,true]}`, `{"a":null,"b":[null,true]}`, callersNames, 0, 0},
		{"a caller's names below Loci's", "tansy", `{"metadata":{"tansy_mail":"a@b","type":"tansy"},"tansy":1}`,
			`{"metadata":{"[…]_mail":"a@b","type":"[…]"},"tansy":1}`, ownNames, 2, 0},
		{"names that become the same", "tansy", `{"tansy":1,"Tansy":2,"TANSY":3}`,
			`{"[…]":3,"[erased] 2":2,"[erased] 3":1}`, callersNames, 3, 0},
		{"a caller's names among Loci's", "tansy", `{"Tansy Hollowmere":1,"tansy_id":2}`,
			`{"[…] Hollowmere":1,"tansy_id":2}`, ownNames, 1, 0},
		{"a schema", "description", `{"type":"object","description":"a description","properties":{"description":{"type":
			"string","description":"x"}},"required":["description"]}`, `{"description":"a [erased]","properties":{"[erased]":
			{"description":"x","type":"string"}},"required":["[erased]"],"type":"object"}`, schemaNames, 3, 0},
		{"the id of a call", "grumblethorpe", `{"call_id":"call_grumblethorpe","text":"r"}`,
			`{"call_id":"call_grumblethorpe","text":"r"}`, ownNames, 0, 1},
		{"a random id", "abc", `{"id":"run-1abc2","call_id":"call_9abcd"}`, `{"id":"run-1abc2","call_id":"call_9abcd"}`,
			ownNames, 0, 0},
		{"neighboring parts", "Hollowmere Tansy", `[{"text":"parts Hollowmere "},{"text":"Tansy end"}]`,
			`[{"text":"parts [erased]"},{"text":" end"}]`, ownNames, 1, 0},
		{"parts in lines of their own", "Hollowmere Tansy", `[{"text":"a Hollowmere"},{"text":"Tansy b"}]`,
			`[{"text":"a [erased]"},{"text":" b"}]`, ownNames, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := newMatcher([]string{c.texts}, false)
			if err != nil {
				t.Fatal(err)
			}
			want := compact(t, c.want)
			if got := m.eraseJSON(c.in, c.of); compact(t, got.text) != want || got.n != c.n || got.kept != c.kept {
				t.Errorf("got %s (%d, %d left), want %s (%d, %d left)", got.text, got.n, got.kept, want, c.n, c.kept)
			}
		})
	}
}

// If one spelling is the beginning of another, the longer one is erased across pieces.
func TestSpellingsAreErasedAcrossPieces(t *testing.T) {
	t.Parallel()
	m, err := newMatcher([]string{"Hollowmere Tansy", "Hollowmere"}, false)
	if err != nil {
		t.Fatal(err)
	}
	after, n := m.eraseAcross([]string{"parts Hollowmere ", "Tansy end"}, "")
	if n != 1 || after[0] != "parts [erased]" || after[1] != " end" {
		t.Errorf("got %q (%d)", after, n)
	}
}
