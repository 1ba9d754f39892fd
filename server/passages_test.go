package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/server/rest"
)

func TestPassagesOfAnAgent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	base := "/v1/agents/" + agent + "/archival-memory"
	insert := func(body string) map[string]any {
		t.Helper()
		var list []map[string]any
		if err := json.Unmarshal([]byte(c.must("POST", base, body)), &list); err != nil || len(list) != 1 {
			t.Fatalf("insert %s: %v, %v, want one passage", body, list, err)
		}
		return list[0]
	}
	first := insert(`{"text":"The meeting was in Oslo.","tags":["work","work"],"created_at":"2024-05-01T10:00:00Z"}`)
	if embedding, ok := first["embedding"]; !ok || embedding != nil || first["is_deleted"] != false ||
		first["created_at"] != "2024-05-01T10:00:00Z" || len(first["tags"].([]any)) != 1 {
		t.Errorf("a new passage: got %v", first)
	}
	if again := insert(`{"text":"The meeting was in Oslo."}`); again["id"] != first["id"] || again["duplicate"] != true {
		t.Errorf("the same text: got %v", again)
	}
	insert(`{"text":"Lunch was in Rome.","created_at":"2024-05-02"}`)
	for _, w := range []struct {
		query string
		want  []string
	}{
		{"query=oslo", []string{"The meeting was in Oslo."}},
		{"query=meeting&tags=work", []string{"The meeting was in Oslo."}},
		{"query=lunch&end_datetime=2024-05-01", nil},
		{"query=meeting&end_datetime=2024-05-01", []string{"The meeting was in Oslo."}},
		{"query=lunch&start_datetime=2024-05-02", []string{"Lunch was in Rome."}},
		{"query=zebra", nil},
		{"query=", nil},
		{"query=%20", nil},
	} {
		var got struct {
			Count   int
			Results []struct{ Content string }
		}
		if err := json.Unmarshal([]byte(c.must("GET", base+"/search?"+w.query, "")), &got); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, r := range got.Results {
			texts = append(texts, r.Content)
		}
		if fmt.Sprint(texts) != fmt.Sprint(w.want) || got.Count != len(w.want) {
			t.Errorf("search %s: got %q, want %q", w.query, texts, w.want)
		}
	}
	if got := c.must("GET", base+"?limit=1", ""); !strings.Contains(got, "Oslo") {
		t.Errorf("the earliest: got %s", got)
	}
	if got := c.must("GET", base+"?ascending=false&limit=1", ""); !strings.Contains(got, "Rome") {
		t.Errorf("the latest: got %s", got)
	}
	if got := c.must("GET", base+"?after="+fmt.Sprint(first["id"]), ""); !strings.Contains(got, "Rome") ||
		strings.Contains(got, "Oslo") {
		t.Errorf("later than the first: got %s", got)
	}
	if got := c.must("GET", base+"?search=ROME", ""); strings.Contains(got, "Oslo") || !strings.Contains(got, "Rome") {
		t.Errorf("with a text: got %s", got)
	}
	one := base + "/" + fmt.Sprint(first["id"])
	if got := pick(t, c.must("PATCH", one, `{"text":"The meeting was in Bergen."}`), "text",
		"tags"); got != `{"tags":["work"],"text":"The meeting was in Bergen."}` {
		t.Errorf("changed: got %s", got)
	}
	if got := c.must("DELETE", one, ""); got != fmt.Sprintf(`{"message":"Memory id=%s successfully deleted"}`,
		first["id"]) {
		t.Errorf("delete: got %s", got)
	}
	for _, w := range []struct {
		name, method, target, body string
		status                     int
	}{
		{"deleted twice", "DELETE", one, "", 404},
		{"no text", "POST", base, `{"text":" "}`, 400},
		{"no time", "POST", base, `{"text":"x","created_at":"soon"}`, 400},
		{"no such mode", "GET", base + "/search?query=x&tag_match_mode=some", "", 422},
		{"no such time", "GET", base + "/search?query=x&start_datetime=soon", "", 400},
	} {
		if got := c.call(w.method, w.target, w.body); got.Code != w.status {
			t.Errorf("%s: got %d %s, want %d", w.name, got.Code, got.Text, w.status)
		}
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	archive := c.made("/v1/archives/", `{"name":"Facts","description":"d","embedding":"openai/x"}`)
	if got := pick(t, c.must("PATCH", "/v1/archives/"+archive, `{"name":"All facts","description":null}`), "name",
		"description", "vector_db_provider"); got !=
		`{"description":"d","name":"All facts","vector_db_provider":"native"}` {
		t.Errorf("changed: got %s", got)
	}
	passage := c.made("/v1/archives/"+archive+"/passages", `{"text":"Water is wet","metadata":{"k":1}}`)
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf(`{"text":"Fact number %d","tags":["n"]}`, i))
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/archives/"+archive+"/passages/batch",
		`{"passages":[`+strings.Join(many, ",")+`]}`)), &list); err != nil || len(list) != 500 {
		t.Fatalf("batch: %d passages, %v", len(list), err)
	}
	for range 2 {
		if got := c.must("PATCH", "/v1/agents/"+agent+"/archives/attach/"+archive, ""); got != "null" {
			t.Errorf("attach: got %s, want null", got)
		}
	}
	var hits []struct {
		Passage struct{ Text string }
		Score   float64
	}
	for body, want := range map[string]int{`{}`: 50, `{"query":"water"}`: 1, `{"agent_id":"` + agent + `","limit":3}`: 3,
		`{"archive_id":"` + archive + `","tags":["n"],"limit":100}`: 100} {
		if err := json.Unmarshal([]byte(c.must("POST", "/v1/passages/search", body)), &hits); err != nil ||
			len(hits) != want {
			t.Errorf("search %s: %d hits, %v, want %d", body, len(hits), err, want)
		}
	}
	if got := c.must("GET", "/v1/archives/?agent_id="+agent, ""); !strings.Contains(got, archive) {
		t.Errorf("the agent's archives: got %s", got)
	}
	if got := c.must("GET", "/v1/archives/"+archive+"/agents", ""); !strings.Contains(got, agent) {
		t.Errorf("the archive's agents: got %s", got)
	}
	other := c.made("/v1/archives", `{"name":"Other"}`)
	if got := c.call("DELETE", "/v1/archives/"+other+"/passages/"+passage, ""); got.Code != 400 {
		t.Errorf("a passage of another archive: got %d %s", got.Code, got.Text)
	}
	if got := c.call("DELETE", "/v1/archives/"+archive+"/passages/"+passage, ""); got.Code != 204 || got.Text != "" {
		t.Errorf("delete a passage: got %d %q", got.Code, got.Text)
	}
	if got := c.must("PATCH", "/v1/agents/"+agent+"/archives/detach/"+archive, ""); got != "null" {
		t.Errorf("detach: got %s, want null", got)
	}
	if got := c.call("DELETE", "/v1/archives/"+archive, ""); got.Code != 204 {
		t.Errorf("delete: got %d %s", got.Code, got.Text)
	}
	if got := c.call("GET", "/v1/archives/"+archive, ""); got.Code != 404 {
		t.Errorf("deleted: got %d", got.Code)
	}
	if got := c.call("GET", "/v1/archives/?agent_id=agent-00000000-0000-4000-8000-000000000000", ""); got.Code != 404 {
		t.Errorf("the archives of no agent: got %d", got.Code)
	}
}

// A batch is read passage by passage. If one passage is wrong, the error names its place, and no passage is stored.
func TestBatchesOfPassages(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	c := newClient(t)
	archive := c.made("/v1/archives", `{"name":"Facts"}`)
	target := "/v1/archives/" + archive + "/passages/batch"
	many := func(n int, last string) string {
		var items []string
		for i := range n - 1 {
			items = append(items, fmt.Sprintf(`{"text":"Fact number %d of <%d> & more","tags":["n"],"metadata":{"k":%d},`+
				`"created_at":"2024-05-01T10:00:00Z"}`, i, n, i))
		}
		return `{"note":{"ignored":[1]},"passages":[` + strings.Join(append(items, last), ",") + `],"more":null}`
	}
	for _, w := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"nothing", ``, 422, "expected required property passages"},
		{"no passages", `{}`, 422, "expected required property passages"},
		{"null", `{"passages":null}`, 422, "body.passages: expected array"},
		{"no object", `[]`, 422, "body: expected object"},
		{"an empty list", `{"passages":[]}`, 400, "from 1 to 10000"},
		{"no text", many(3000, `{"tags":["x"]}`), 422, "body.passages[2999]: expected required property text"},
		{"a text of another type", many(600, `{"text":7}`), 422, "body.passages[599].text: expected string"},
		{"a blank text", many(3000, `{"text":" "}`), 400, "passages[2999]: a passage has no text"},
		{"no time", many(3, `{"text":"x","created_at":"soon"}`), 400, "passages[2].created_at: 'soon'"},
		{"a time that no calendar has", many(3, `{"text":"x","created_at":"2026-02-30T00:00:00+14:00"}`), 400,
			"passages[2].created_at: '2026-02-30T00:00:00+14:00' is not a time"},
		{"the same, of a text that is there", many(3, `{"text":"Fact number 0 of <3> & more","created_at":"soon"}`), 400,
			"passages[2].created_at: 'soon'"},
		{"a number beyond all floats", many(3, `{"text":"x","metadata":{"a":1e400}}`), 422,
			"body: expected number, got number 1e400"},
		{"a text with a NUL in its metadata", many(600, `{"text":"x","metadata":{"a":"\u0000"}}`), 422,
			"body.passages[599].metadata.a: the text has a NUL"},
		{"broken off", strings.TrimSuffix(many(3, `{"text":"x"}`), `],"more":null}`), 400,
			"body: unexpected end of JSON input"},
		{"something behind it", many(3, `{"text":"x"}`) + "{}", 400, "after the end"},
		{"twice", `{"passages":[{"text":"x"}],"passages":[{"text":"y"}]}`, 422,
			"body.passages: the field is there twice"},
		{"a field twice", `{"passages":[{"text":"x"},{"text":"x","text":"y"}]}`, 422,
			"body.passages[1].text: the field is there twice"},
		{"nested too deep", many(2, `{"text":"x","metadata":{"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}}`),
			422, "levels of nesting"},
		{"too many", many(10_001, `{"text":"x"}`), 400, "more than 10000"},
		{"too large", many(2, `{"text":"`+strings.Repeat("x", 64<<20)+`"}`), 413, "larger than"},
	} {
		if got := c.call("POST", target, w.body); got.Code != w.status || !strings.Contains(got.Text, w.want) {
			t.Errorf("%s: got %d %.300s, want %d and %q", w.name, got.Code, got.Text, w.status, w.want)
		}
	}
	var hits []any
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/passages/search", `{"archive_id":"`+archive+`"}`)),
		&hits); err != nil || len(hits) != 0 {
		t.Errorf("of batches that were refused %d passages are stored, %v", len(hits), err)
	}
	batchSize := scale.Of(1_000, 10_000)
	first := c.must("POST", "/v1/archives/"+archive+"/passages",
		fmt.Sprintf(`{"text":"Fact number 7 of <%d> & more"}`, batchSize))
	var list []struct {
		Text      string
		Tags      []string
		Metadata  map[string]int
		CreatedAt string `json:"created_at"`
		Duplicate bool
	}
	if err := json.Unmarshal([]byte(c.must("POST", target, many(batchSize, `{"text":"the last"}`))), &list); err != nil ||
		len(list) != batchSize {
		t.Fatalf("%d passages are answered, %v", len(list), err)
	}
	for i, p := range list[:batchSize-1] {
		if p.Text != fmt.Sprintf("Fact number %d of <%d> & more", i, batchSize) || p.Duplicate != (i == 7) || i != 7 &&
			(len(p.Tags) != 1 || p.Metadata["k"] != i || p.CreatedAt != "2024-05-01T10:00:00Z") {
			t.Fatalf("passages[%d]: got %+v", i, p)
		}
	}
	if last := list[batchSize-1]; last.Text != "the last" || last.Tags == nil || last.Duplicate {
		t.Errorf("the last: got %+v", last)
	}
	again := fmt.Sprintf(`{"passages":[{"text":"Fact number 7 of <%d> & more"}]}`, batchSize)
	if got := c.must("POST", target, again); pick(t, strings.Trim(got, "[]\n"), "id", "tags") !=
		pick(t, first, "id", "tags") {
		t.Errorf("there already: got %s, want %s", got, first)
	}
	if got := c.call("POST", "/v1/archives/archive-123e4567-e89b-42d3-8456-426614174000/passages/batch",
		`{"passages":[{"text":"x"}]}`); got.Code != 404 {
		t.Errorf("no archive: got %d", got.Code)
	}
}

// A text that is already stored is not changed. Each route that inserts passages says which parts of its request were
// dropped.
func TestInsertionsSayWhichTagsWereNotAdded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	ofAgent := "/v1/agents/" + agent + "/archival-memory"
	c.must("POST", ofAgent, `{"text":"Rent is due.","tags":["money"],"metadata":{"a":1}}`)
	archive, _ := c.list("/v1/archives?agent_id=" + agent)[0]["id"].(string)
	ofArchive := "/v1/archives/" + archive + "/passages"
	warned := func(target, body string) string {
		t.Helper()
		got := c.call("POST", target, body)
		if got.Code != 200 {
			t.Fatalf("%s %s: got %d %s", target, body, got.Code, got.Text)
		}
		_, inBody, _ := strings.Cut(got.Text, `"warnings":`)
		return strings.ReplaceAll(got.Header().Get(rest.WarningsHeader)+inBody, `\"`, `"`)
	}
	for name, tt := range map[string]struct{ passage, says string }{
		"the same tags":      {`{"text":"Rent is due.","tags":["money"]}`, ""},
		"no tags":            {`{"text":"Rent is due."}`, ""},
		"the same metadata":  {`{"text":"Rent is due.","metadata":{ "a": 1.0 }}`, ""},
		"another tag":        {`{"text":"Rent is due.","tags":["house","money"]}`, `the tags "house" were not added`},
		"other metadata":     {`{"text":"Rent is due.","metadata":{"a":2}}`, "its metadata stayed"},
		"another time":       {`{"text":"Rent is due.","created_at":"2020-01-01"}`, "changes it but for created_at"},
		"another beginning":  {`{"text":"Rent is due.","valid_from":"2020-01-01"}`, "its valid_from stayed"},
		"a text that is new": {`{"text":"Rent was due.","tags":["house"],"metadata":{"b":1}}`, ""},
	} {
		for _, target := range []string{ofAgent, ofArchive, ofArchive + "/batch"} {
			body := tt.passage
			if strings.HasSuffix(target, "batch") {
				body = `{"passages":[` + body + `]}`
			}
			warning := warned(target, body)
			if tt.says == "" && warning != "" || !strings.Contains(warning, tt.says) ||
				tt.says != "" && !strings.Contains(warning, "PATCH /v1/agents/") {
				t.Errorf("%s, %s: says %q, want %q", target, name, warning, tt.says)
			}
		}
	}
	twice := `{"text":"Twice.","tags":["a"]},{"text":"Twice.","tags":["b"]}`
	warning := warned(ofArchive+"/batch", `{"passages":[`+twice+`]}`)
	if !strings.Contains(warning, `the tags "b" were not added`) {
		t.Errorf("a batch with a text twice: says %q", warning)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"text":"Twice.","tags":["c"]},`, 9), ",")
	warning = warned(ofArchive+"/batch", `{"passages":[`+many+`]}`)
	if strings.Count(warning, "PATCH") != 5 || !strings.Contains(warning, "4 more texts") {
		t.Errorf("nine texts that are stored: says %q, want five and that there are four more", warning)
	}
	unknown := ""
	for i := range 30 {
		unknown += fmt.Sprintf(`,"odd%d":1`, i)
	}
	if warning := warned(ofAgent, `{"text":"Twice.","tags":["d"]`+unknown+`}`); !strings.Contains(warning,
		`the tags "d"`) {
		t.Errorf("a request with unknown fields: says %q", warning)
	}
	// The PATCH that the warning names adds the tags.
	id, _ := c.list(ofAgent + "?search=Rent+is")[0]["id"].(string)
	if got := c.must("PATCH", ofAgent+"/"+id, `{"tags":["money","house"]}`); !strings.Contains(got, `["money","house"]`) {
		t.Errorf("changed: got %s", got)
	}
}
