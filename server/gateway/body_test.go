package gateway

import (
	"encoding/json"
	"testing"
)

// Where something is added to a request, the rest of its bytes stay as they came.
func TestWhatIsAddedToARequest(t *testing.T) {
	t.Parallel()
	note := func(index int) func(*dialect, *body) {
		return func(d *dialect, b *body) { b.addToItem(index, "\nN\"", d.partType) }
	}
	system := func(d *dialect, b *body) { d.addSystem(b, "S") }
	for _, c := range []struct {
		name string
		d    *dialect
		add  func(*dialect, *body)
		in   string
		want string
	}{
		{"nothing", chatDialect, func(*dialect, *body) {}, `{ "a":1 , "messages":[ ] }`, `{ "a":1 , "messages":[ ] }`},
		{"a note behind a text", chatDialect, note(0), `{"messages" : [ {"role":"user", "content":"a\u00e9"} ], "x": 1.0}`,
			`{"messages" : [ {"role":"user", "content":"a\u00e9\nN\""} ], "x": 1.0}`},
		{"a note behind parts", chatDialect, note(1),
			`{"messages":[{"role":"system"},{"content":[{"type":"text","text":"a"}],"role":"user"}]}`,
			`{"messages":[{"role":"system"},{"content":[{"type":"text","text":"a"},{"text":"\nN\"","type":"text"}],` +
				`"role":"user"}]}`},
		{"a note behind no parts", chatDialect, note(0), `{"messages":[{"role":"user","content":[]}]}`,
			`{"messages":[{"role":"user","content":[{"text":"\nN\"","type":"text"}]}]}`},
		{"a message without content", chatDialect, note(0), `{"messages":[{"role":"user","content":null}]}`,
			`{"messages":[{"role":"user","content":null}]}`},
		{"an input that is a text", responsesDialect, note(0), `{"input":"a","model":"m"}`, `{"input":"a\nN\"","model":"m"}`},
		{"an item of an input", responsesDialect, note(0), `{"input":[{"role":"user","content":[]}]}`,
			`{"input":[{"role":"user","content":[{"text":"\nN\"","type":"input_text"}]}]}`},
		{"a second system prompt", chatDialect, system, `{"messages":[{"role":"developer","content":"d"}]}`,
			`{"messages":[{"role":"developer","content":"d\n\nS"}]}`},
		{"a first system prompt", chatDialect, system, `{"messages":[ {"role":"user","content":"u"}]}`,
			`{"messages":[{"role":"system","content":"S"}, {"role":"user","content":"u"}]}`},
		{"instructions", responsesDialect, system, `{"input":"a"}`, `{"instructions":"S","input":"a"}`},
		{"more instructions", responsesDialect, system, `{"instructions":"i","input":"a"}`,
			`{"instructions":"i\n\nS","input":"a"}`},
		{"instructions that are null", responsesDialect, system, `{"instructions":null,"input":"a"}`,
			`{"instructions":"S","input":"a"}`},
		{"a system prompt of parts", anthropicDialect, system,
			`{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],"messages":[]}`,
			`{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"text":"\n\nS","type":"text"}],` +
				`"messages":[]}`},
		{"a system prompt of a text", anthropicDialect, system, `{"system":"a"}`, `{"system":"a\n\nS"}`},
		{"both", anthropicDialect, func(d *dialect, b *body) { note(0)(d, b); system(d, b) },
			`{"messages":[{"role":"user","content":"a"}]}`,
			`{"system":"S","messages":[{"role":"user","content":"a\nN\""}]}`},
		{"a field that stands there twice", chatDialect, note(0),
			`{"messages":[{"content":"a"}],"messages":[{"content":"b"}]}`,
			`{"messages":[{"content":"a"}],"messages":[{"content":"b\nN\""}]}`},
	} {
		b, err := readBody([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		b.readItems(c.d.list)
		c.add(c.d, b)
		if got := string(b.bytes()); got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestRequestsThatAreNoObject(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `[]`, `1`, `{"a":`, `{"a":1}x`, `null`} {
		if _, err := readBody([]byte(raw)); err == nil {
			t.Errorf("%s is read", raw)
		}
	}
}

// FuzzBody checks that a request stays as it came if nothing is added, and stays JSON with what is added.
func FuzzBody(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"a"}]}`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"text","text":"\ud800"}]}],"messages":[]}`)
	f.Add(`{"input":"a","instructions":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []*dialect{chatDialect, responsesDialect, anthropicDialect} {
			b, err := readBody([]byte(text))
			if err != nil {
				return
			}
			b.readItems(d.list)
			if string(b.bytes()) != text {
				t.Fatalf("%s was changed", text)
			}
			units, _ := readUnits(b.rawItems())
			for _, u := range units {
				b.addToItem(u.last(), "note", d.partType)
			}
			d.addSystem(b, "system")
			if json.Valid([]byte(text)) && !json.Valid(b.bytes()) {
				t.Fatalf("%s became %s", text, b.bytes())
			}
		}
	})
}
