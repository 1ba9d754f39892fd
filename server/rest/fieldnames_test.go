package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

type part struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text,omitempty"`
}

// content is a text or a list of parts.
type content json.RawMessage

func (c *content) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(c).UnmarshalJSON(raw) }

func (c content) MarshalJSON() ([]byte, error) { return json.RawMessage(c).MarshalJSON() }

func (content) Schema(r rest.Registry) *rest.Schema {
	return rest.OneOf(r, reflect.TypeFor[string](), reflect.TypeFor[[]part]())
}

type nestedBody struct {
	Name        string      `json:"name,omitempty"`
	WindowLimit int         `json:"context_window_limit,omitempty"`
	Part        *part       `json:"part,omitempty"`
	Parts       []part      `json:"parts,omitempty"`
	Content     content     `json:"content,omitempty"`
	Metadata    rest.Object `json:"metadata,omitempty"`
}

// newNested returns a handler that answers with its understanding of a body: as an object, as a list, and not at all.
func newNested(t *testing.T) http.Handler {
	t.Helper()
	a := rest.New(rest.Config{Title: "Nested", Version: "1", Log: slog.New(slog.DiscardHandler)})
	echo := func(_ context.Context, in *struct{ Body nestedBody }) (nestedBody, error) { return in.Body, nil }
	rest.Post(a.For(rest.AnyKey), "/v1/object", "create_object: An object.", echo)
	rest.Put(a.For(rest.AnyKey), "/v1/object", "put_object: An object.", echo)
	rest.Patch(a.For(rest.AnyKey), "/v1/object", "update_object: An object.", echo)
	rest.Post(a.For(rest.AnyKey), "/v1/list", "list_all: A list.",
		func(_ context.Context, in *struct{ Body nestedBody }) ([]string, error) {
			return []string{in.Body.Name}, nil
		})
	rest.Post(a.For(rest.AnyKey), "/v1/nothing", "create_nothing: Nothing.",
		func(context.Context, *struct{}) (rest.Null, error) {
			return rest.Null{}, nil
		})
	rest.Post(a.For(rest.AnyKey), "/v1/gone", "create_gone: No content.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil },
		rest.NoContent)
	rest.Post(a.For(rest.AnyKey), "/v1/empty", "create_empty: An empty object.",
		func(context.Context, *struct{}) (struct{}, error) {
			return struct{}{}, nil
		})
	rest.Post(a.For(rest.AnyKey), "/v1/things/search", "search_things: A search.",
		func(context.Context, *struct{ Body nestedBody }) ([]string, error) {
			return []string{"found"}, nil
		})
	return a.Handler()
}

func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	h := newNested(t)
	for _, c := range []struct{ name, body, want string }{
		{"a known field is nothing to warn of", `{"name":"a"}`, `{"name":"a"}`},
		{"a misspelt field", `{"contxt_window_limit":7}`,
			`{"warnings":["Loci does not know the field \"contxt_window_limit\"; did you mean context_window_limit?"]}`},
		{"a field that is like none", `{"name":"a","zzz":{"x":[1,{"y":2}]}}`,
			`{"name":"a","warnings":["Loci does not know the field \"zzz\""]}`},
		{"a field of another case is another field", `{"Name":"b","name":"a","NAME":"c"}`,
			`{"name":"a","warnings":["Loci does not know the field \"Name\"; did you mean name?",` +
				`"Loci does not know the field \"NAME\"; did you mean name?"]}`},
		{"an escaped name is a name", `{"n\u0061me":"a","N\u0061me":"b"}`,
			`{"name":"a","warnings":["Loci does not know the field \"Name\"; did you mean name?"]}`},
		{"in an object", `{"part":{"txt":"a","kind":"k"}}`,
			`{"part":{"kind":"k"},"warnings":["Loci does not know the field \"part.txt\"; did you mean text?"]}`},
		{"in a list", ` { "parts" : [ {"text":"a"} , {"Text":"b"} ] } `,
			`{"parts":[{"text":"a"},{}],"warnings":["Loci does not know the field \"parts[1].Text\"; did you mean text?"]}`},
		{"in one of several forms", `{"content":[{"kind":"k","texts":"a"}]}`,
			`{"content":[{"kind":"k"}],"warnings":["Loci does not know the field \"content[0].texts\"; did you mean text?"]}`},
		{"of a text there are none", `{"content":"a"}`, `{"content":"a"}`},
		{"an object of any fields knows all", `{"metadata":{"Name":1,"name":2,"x":{"y":null}}}`,
			`{"metadata":{"Name":1,"name":2,"x":{"y":null}}}`},
		{"what answers have asks for nothing", `{"id":"x","created_at":"y","project_id":null,"name":"a"}`, `{"name":"a"}`},
		{"no project is asked for", `{"project_id":"","is_template":false,"name":"a"}`, `{"name":"a"}`},
		{"null of an unknown field too", `{"nme":null}`,
			`{"warnings":["Loci does not know the field \"nme\"; did you mean name?"]}`},
		{"a name with markup", `{"<b>&é":1}`, `{"warnings":["Loci does not know the field \"\u003cb\u003e\u0026\u00e9\""]}`},
	} {
		for _, method := range []string{"POST", "PUT", "PATCH"} {
			if got := servertest.Send(h, method, "/v1/object", c.body); got.Code != 200 || got.Text != c.want {
				t.Errorf("%s: %s %s: got %d\n%s, want\n%s", c.name, method, c.body, got.Code, got.Text, c.want)
			}
		}
	}
}

// If a request uses fields or parameters of Letta's that Loci does not support, it is refused with the reason.
func TestWhatLociDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	h := newNested(t)
	for _, c := range []struct{ target, body, want string }{
		{"/v1/object", `{"project_id":"p"}`, "body.project_id: Loci has no projects"},
		{"/v1/object?project=p", `{}`, "query.project: Loci has no projects"},
		{"/v1/object", `{"name":"a","include_default_source":true}`, "body.include_default_source: "},
		{"/v1/object", `{"name":"a","policy":"pi"}`, "body.policy: it belongs in compaction_settings"},
		{"/v1/object", `{"name":"a","Policy":"pi"}`, "body.Policy: it belongs in compaction_settings"},
		{"/v1/object", `{"compaction_settings":{"mode":"all"}}`, "body.compaction_settings: "},
		{"/v1/object?update_timestamp=true", `{}`, "query.update_timestamp: "},
		{"/v1/object?order_by=name", `{}`, "query.order_by: "},
		{"/v1/object?order_by=created_at&update_timestamp=false", `{"name":"a"}`, ""},
	} {
		got := servertest.Send(h, "POST", c.target, c.body)
		if want := 422; c.want == "" && got.Code != 200 || c.want != "" && (got.Code != want ||
			!strings.Contains(got.Text, c.want)) {
			t.Errorf("%s %s: got %d %s, want %q", c.target, c.body, got.Code, got.Text, c.want)
		}
	}
}

func TestAnswersThatAreNoObjectsWarnInAHeader(t *testing.T) {
	t.Parallel()
	h := newNested(t)
	for _, c := range []struct{ target, text, header string }{
		{"/v1/list", `["a"]`, `["Loci does not know the field \"n\u00e4me\"; did you mean name?"]`},
		{"/v1/nothing", `null`, `["Loci does not know the field \"name\"","Loci does not know the field \"n\u00e4me\""]`},
		{"/v1/gone", ``, `["Loci does not know the field \"name\"","Loci does not know the field \"n\u00e4me\""]`},
		{"/v1/empty", `{"warnings":["Loci does not know the field \"name\"","Loci does not know the field ` +
			`\"n\u00e4me\""]}`, ``},
	} {
		got := servertest.Send(h, "POST", c.target, `{"name":"a","näme":"b"}`)
		if header := got.Header().Get(rest.WarningsHeader); got.Text != c.text || header != c.header {
			t.Errorf("%s: got %d %s with %s, want %s with %s", c.target, got.Code, got.Text, header, c.text, c.header)
		}
	}
	for target, body := range map[string]string{"/v1/list": `{"name":"a"}`, "/v1/nothing": "", "/v1/empty": "no JSON",
		"/v1/things/search": `{"project_id":"p"}`} {
		got := servertest.Send(h, "POST", target, body)
		if header := got.Header().Get(rest.WarningsHeader); got.Code != 200 || header != "" ||
			strings.Contains(got.Text, "warnings") {
			t.Errorf("%s %s: got %d %s with %s, want no warning", target, body, got.Code, got.Text, header)
		}
	}
	if got := servertest.Send(h, "POST", "/v1/things/search", `{"project_id":"p"}`); got.Text != `[]` {
		t.Errorf("a filter that nothing matches: got %s, want nothing", got.Text)
	}
}

func TestErrorsWarnToo(t *testing.T) {
	t.Parallel()
	got := servertest.Send(newToys(t, nil), "POST", "/v1/toys", `{"nmae":"a"}`)
	if got.Code != 422 || !strings.Contains(got.Text,
		`"warnings":["Loci does not know the field \"nmae\"; did you mean name?"]`) {
		t.Errorf("got %d %s, want 422 and the warning", got.Code, got.Text)
	}
}

func TestWarningsAreFew(t *testing.T) {
	t.Parallel()
	var fields []string
	for i := range 1000 {
		fields = append(fields, fmt.Sprintf(`"%s%d":1`, strings.Repeat("x", 200), i))
	}
	got := servertest.Send(newNested(t), "POST", "/v1/list", "{"+strings.Join(fields, ",")+"}")
	var list []string
	if err := json.Unmarshal([]byte(got.Header().Get(rest.WarningsHeader)), &list); err != nil || len(list) != 20 ||
		list[19] != "Loci does not know other names of the request either" || len(list[0]) > 200 {
		t.Errorf("got %d warnings, %v: %q", len(list), err, list)
	}
}

func TestAFieldIsThereOnce(t *testing.T) {
	t.Parallel()
	h := newNested(t)
	for body, field := range map[string]string{
		`{"name":"a","name":"a"}`:                  "name",
		`{"name":"a","n\u0061me":"b"}`:             "name",
		`{"part":{"text":"a","text":"b"}}`:         "part.text",
		`{"parts":[{},{"text":"a","text":"b"}]}`:   "parts[1].text",
		`{"metadata":{"x":[{"y":1,"z":2,"y":1}]}}`: "metadata.x[0].y",
		`{"zzz":{"a":1,"a":2}}`:                    "zzz.a",
	} {
		got := servertest.Send(h, "POST", "/v1/object", body)
		if want := "body." + field + ": the field is there twice; send it once"; got.Code != 422 ||
			!strings.Contains(got.Text, want) {
			t.Errorf("%s: got %d %s, want 422 %q", body, got.Code, got.Text, want)
		}
	}
}

// A handler reads the values of known fields, whatever else is around them.
func TestKnownFieldsAreReadAsTheyStand(t *testing.T) {
	t.Parallel()
	h := newNested(t)
	space := rapid.SampledFrom([]string{"", " ", "\n\t"})
	value := rapid.SampledFrom([]string{`1`, `"a,}]\"{"`, `null`, `[]`, `{}`, `[1,{"q":[" "]}]`, `{"name":{"x":"\\"}}`})
	known := map[string]string{"name": `"a,}]\"{"`, "context_window_limit": `12`, "part": `{"text":"\\","kind":"{"}`,
		"metadata": `{"k":[1,{}],"l":{"m":"}"}}`}
	unknown := []string{"u", "Name", "PART", "v v", `w\"`}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.Permutation(slices.Concat([]string{"name", "context_window_limit", "part", "metadata"},
			unknown)).Draw(t, "names")
		names = names[:rapid.IntRange(0, len(names)).Draw(t, "count")]
		var body, want []string
		for _, name := range names {
			text := known[name]
			if text == "" {
				text = value.Draw(t, "value")
			} else {
				want = append(want, fmt.Sprintf("%q:%s", name, text))
			}
			body = append(body, fmt.Sprintf(`%s"%s"%s:%s%s%s`, space.Draw(t, "a"), name, space.Draw(t, "b"),
				space.Draw(t, "c"), text, space.Draw(t, "d")))
		}
		sent := space.Draw(t, "e") + "{" + strings.Join(body, ",") + space.Draw(t, "f") + "}" + space.Draw(t, "g")
		got := servertest.Send(h, "POST", "/v1/object", sent)
		var gotFields, wantFields map[string]any
		if err := json.Unmarshal([]byte("{"+strings.Join(want, ",")+"}"), &wantFields); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got.Text), &gotFields); err != nil {
			t.Fatalf("%s: got %d %s", sent, got.Code, got.Text)
		}
		warnings, _ := gotFields["warnings"].([]any)
		delete(gotFields, "warnings")
		if diff := cmp.Diff(wantFields, gotFields); diff != "" || len(warnings) != len(names)-len(want) {
			t.Fatalf("%s: got %d warnings and (-want +got):\n%s", sent, len(warnings), diff)
		}
	})
}
