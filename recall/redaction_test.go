package recall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// stored returns every text and byte string in the database that belongs to the organization or to none, decompressed.
func (f *fixture) stored() string {
	f.Helper()
	type column struct {
		Table  string `db:"table_name"`
		Column string `db:"column_name"`
		Tenant bool   `db:"tenant"` // the table has rows of organizations
	}
	columns, err := db.All[column](f.Context(), f.pool, `
		SELECT table_name, column_name, bool_or(column_name = 'org') OVER (PARTITION BY table_name) AS tenant
		FROM information_schema.columns
		WHERE table_schema = 'public'
		ORDER BY table_name, ordinal_position`)
	if err != nil || len(columns) < 100 {
		f.Fatalf("%d columns: %v", len(columns), err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	defer decoder.Close()
	var b strings.Builder
	for _, c := range columns {
		condition := "$1::integer IS NOT NULL"
		if c.Tenant {
			condition = "org = $1"
		}
		values, err := db.All[[]byte](f.Context(), f.pool, fmt.Sprintf(`
			SELECT CASE WHEN pg_typeof(%[2]q)::text = 'bytea' THEN %[2]q::text::bytea ELSE convert_to(%[2]q::text, 'UTF8') END
			FROM %[1]q WHERE %[2]q IS NOT NULL AND %[3]s`, c.Table, c.Column, condition), f.org)
		if err != nil {
			f.Fatalf("%s.%s: %v", c.Table, c.Column, err)
		}
		for _, v := range values {
			if plain, err := decoder.DecodeAll(v, nil); err == nil {
				v = plain
			}
			b.Write(v)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestSecretsAreStoredNowhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const sha, id = "50e9b15a4c1f0d2e3b6a79880c1d2e3f4a5b6c7d", "3f2b8c1d-9e4a-4f6b-8a7c-0d1e2f3a4b5c"
	secret := "ghp" + "_" + "q7Xd2LmZ0aVb9KtRw4Ye6NcUs1Hf3JgPo8Ti"
	input, err := json.Marshal(map[string]string{"command": "export TOKEN=" + secret + "\n" + secret, "at": sha})
	if err != nil {
		t.Fatal(err)
	}
	before, after := strings.Repeat("an ordinary line of a log\n", 4000), strings.Repeat("and more\n", 4000)
	long := before + "token: " + secret + " commit " + sha + "\n" + after
	got := f.append(say(recall.User, "My key is "+secret+", see commit "+sha+" and "+id+"."),
		called("c", "shell", string(input)), returned("c", long),
		recall.Draft{Role: recall.Assistant, Content: []recall.Part{
			{Type: recall.SummarizedReasoning, Summary: json.RawMessage(`["use ` + secret + `"]`)}}})
	stored := f.stored()
	if strings.Contains(stored, secret) || strings.Contains(stored, secret[4:]) {
		t.Error("the secret is in the database")
	}
	for what, want := range map[string]int{sha: 3, id: 1, "[REDACTED:github-pat:40:": 5,
		"an ordinary line of a log": 4000} {
		if n := strings.Count(stored, what); n < want {
			t.Errorf("%s is in the database %d times, want %d", what, n, want)
		}
	}
	text, call := f.message(got[0].ID).Content[0].Text, f.message(got[1].ID).Content[0].Input
	result := f.message(got[2].ID).Content[0]
	var arguments map[string]string
	if err := json.Unmarshal([]byte(call), &arguments); err != nil || arguments["at"] != sha {
		t.Errorf("the arguments: got %s, %v", call, err)
	}
	e, err := f.store.Expand(t.Context(), f.org, f.agent, recall.ExpandQuery{ID: result.Clip.ID, Pattern: "token: "})
	if err != nil || len(e.Lines) != 1 {
		t.Fatalf("expand: got %+v, %v", e, err)
	}
	placeholder, _, _ := strings.Cut(strings.TrimPrefix(text, "My key is "), ",")
	if want := "token: " + placeholder + " commit " + sha; e.Lines[0].Text != want {
		t.Errorf("the result: got %s, want %s", e.Lines[0].Text, want)
	}
	if want := "export TOKEN=" + placeholder + "\n" + placeholder; arguments["command"] != want {
		t.Errorf("the arguments: got %s, want %s", arguments["command"], want)
	}
}

// Names and ids are redacted, because programs fill them in. The same id always becomes the same redacted id, and
// providers accept it.
func TestSecretsInNamesAndIDsAreRedacted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := "ghp" + "_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	call, result := called(secret, secret, `{"k":"\u0067`+secret[1:]+`"}`), returned(secret, "done")
	user := say(recall.User, "x")
	user.Name, user.OTID, user.SenderID = new(secret), new("o-"+secret), new(secret)
	got := f.append(user, call, result)
	if stored := f.stored(); strings.Contains(stored, secret[1:]) {
		t.Error("the secret is in the database")
	}
	sentCall, answer := f.message(got[1].ID).Content[0], f.message(got[2].ID).Content[0]
	if sentCall.CallID != answer.CallID || answer.Orphan ||
		strings.Trim(sentCall.CallID, "REDACTgithub-pa_0123456789cdef") != "" {
		t.Errorf("the call is %q, its result is of %q", sentCall.CallID, answer.CallID)
	}
	if again := f.append(user); again[0].ID != got[0].ID {
		t.Error("a message of the same otid was stored twice")
	}
}

// A NUL in a part's JSON would break every statement that reads the content.
func TestTheJSONOfPartsIsCleaned(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.append(recall.Draft{Role: recall.Assistant, Content: []recall.Part{
		{Type: recall.Image, Source: json.RawMessage(`{"type":"url","url":"https://a\u0000/b"}`)},
		{Type: recall.SummarizedReasoning, Text: "hm", Summary: json.RawMessage(`[{"index":0,"text":"a\u0000b"}]`)},
	}})[0].ID
	f.append(say(recall.User, "zebra"))
	m := f.message(id)
	if got := string(m.Content[0].Source); got != `{"type":"url","url":"https://a␀/b"}` {
		t.Errorf("source is %s, want no NUL", got)
	}
	if got := string(m.Content[1].Summary); got != `[{"index":0,"text":"a␀b"}]` {
		t.Errorf("summary is %s, want no NUL", got)
	}
	f.search(recall.Query{Text: "zebra", AgentID: f.agent, Limit: 5})
	broken := recall.Draft{Role: recall.User, OTID: new("o"),
		Content: []recall.Part{{Type: recall.Image, Source: json.RawMessage(`{`)}}}
	_, err := f.store.Append(t.Context(), f.org, f.agent, "", []recall.Draft{say(recall.User, "x"), broken})
	if wrong, ok := errors.AsType[*recall.DraftError](err); !ok || wrong.At != 1 || !errors.Is(err, db.ErrInvalid) {
		t.Errorf("broken JSON: got %v, want ErrInvalid of the second message", err)
	}
}

// Providers refuse a request with half of a surrogate pair as an escape.
func TestEscapesAreCleaned(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":"x\ud83d"}`:                        "{\"a\":\"x\uFFFD\"}",
		`{"a":"\uD83D\n\udE00"}`:                 "{\"a\":\"\uFFFD\\n\uFFFD\"}",
		`{"a":"\ud83d\ud83d\ude00\u0000\u00e9"}`: "{\"a\":\"\uFFFD\\ud83d\\ude00␀\\u00e9\"}",
		`{"a":"\\ud83d \\u0000"}`:                `{"a":"\\ud83d \\u0000"}`,
		`{"a":"\ud83d`:                           `{"a":"\ud83d`, // it is stored as a text
		`print("\u0000")`:                        `print("\u0000")`,
	} {
		if got := recall.CleanEscapes(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
