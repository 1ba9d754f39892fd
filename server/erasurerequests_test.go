package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/erase"
)

// One page contains one occurrence in its bytes and another in its text. The page is parsed again, and then searched
// again. If only the text has an occurrence, the report says that the page keeps only its text.
func TestPagesAreErasedInBytesAndText(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	const cut = "<p>And Qzora <!-- a remark -->Quill.</p>" // parsing joins it
	inBoth := c.uploaded(folder, "both.html", "<html><body><p>Here is Qzora Quill.</p>"+cut+"</body></html>")
	text := c.uploaded(folder, "text.html", "<html><body>"+cut+"</body></html>")
	marked := c.uploaded(folder, "marked.html", "<html><body><p>And Qzora <b>Quill</b>.</p></body></html>")
	e := c.erased("Qzora Quill")
	converted := strings.Join(e.Report.Converted, " ")
	if !strings.Contains(converted, text) || strings.Contains(converted, marked) {
		t.Errorf("converted: got %q, want %s", converted, text)
	}
	for name, id := range map[string]string{"both": inBoth, "text": text, "marked": marked} {
		c.awaitFile(folder, id)
		got := c.must("GET", "/v1/folders/"+folder+"/files/"+id+"?include_content=true", "")
		if strings.Contains(got, "Quill") || !strings.Contains(got, "[erased]") {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if left := c.stored("quill"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// The reasons of other erasures are searched too. If an erasure waits for an operator, the report names its texts as
// left.
func TestReasonsOfErasuresAreErased(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/erasures", `{"texts":["another text"],"reason":"Qzora Quill asked for it"}`)
	c.erased("Qzora Quill")
	if got := fields(t, c.must("GET", "/v1/erasures/"+id, ""))["reason"]; got != "[erased] asked for it" {
		t.Errorf("the reason: got %v", got)
	}
	c.exec(`UPDATE erasures SET status = 'pending', texts = '{"Nora Quill"}' WHERE org = $1`, c.org)
	var e erase.Erasure
	c.unmarshal(c.must("POST", "/v1/erasures", `{"texts":["Nora Quill"]}`), &e)
	if e.Status != erase.Incomplete || e.Report.Left["erasures.texts"] != 2 {
		t.Errorf("two requests that wait name the text: got %+v", e)
	}
}

// A message can be named with or without its prefix, in upper or lower case. Whole words apply only to texts.
func TestAMessageToEraseIsNamedInAnyWay(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	id := c.capture(agent, `{"messages":[{"role":"user","content":"Hello"}]}`).Messages[0].ID
	bare := strings.TrimPrefix(id, "message-")
	if got := c.call("POST", "/v1/erasures", fmt.Sprintf(`{"message_id":%q,"whole_words":true}`, id)); got.Code != 422 ||
		!strings.Contains(got.Text, "whole_words is for texts") {
		t.Errorf("whole words: got %d %s", got.Code, got.Text)
	}
	for _, name := range []string{bare, strings.ToUpper(bare), "message-" + strings.ToUpper(bare)} {
		if got := fields(t, c.must("POST", "/v1/erasures", fmt.Sprintf(`{"message_id":%q}`, name)))["message_id"]; got != id {
			t.Errorf("%s: got %v, want %s", name, got, id)
		}
	}
}

// editing is a database in which another request changes a passage after an erasure has read it.
type editing struct {
	db.DB
	edit func()
}

func (e *editing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := e.DB.Query(ctx, sql, args...)
	if e.edit != nil && strings.Contains(sql, "FROM passages") && strings.Contains(sql, "LIMIT $3") {
		e.edit()
		e.edit = nil
	}
	return rows, err
}

// If another request changes a passage after an erasure has read it, the change is kept.
func TestAnErasureKeepsWhatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	c := newErasingClient(t)
	c.work()
	c.own().Erasures.InBackground = true
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"Qzora Quill has a key."}`)
	id := c.made("/v1/erasures", `{"texts":["Qzora Quill"]}`)
	store := *c.server.Erasures
	store.DB = &editing{DB: c.pool, edit: func() {
		c.exec(`UPDATE passages SET text = 'Qzora Quill has two keys.' WHERE org = $1`, c.org)
	}}
	if _, err := store.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.must("GET", "/v1/agents/"+agent+"/archival-memory", "")
	if !strings.Contains(got, "[erased] has two keys.") {
		t.Errorf("got %s", got)
	}
	if status := fields(t, c.must("GET", "/v1/erasures/"+id, ""))["status"]; status != erase.Completed {
		t.Errorf("the erasure is %v", status)
	}
}

// An erasure that fails does not stop others. This one fails because its texts are invalid in every version of the
// server.
func TestAnErasureThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := newErasingClient(t)
	c.work()
	c.own().Erasures.InBackground = true
	broken := c.made("/v1/erasures", `{"texts":["first text"]}`)
	c.exec(`UPDATE erasures SET texts = '{}' WHERE org = $1`, c.org)
	next := c.made("/v1/erasures", `{"texts":["second text"]}`)
	ended, err := c.server.Erasures.Run(t.Context())
	if ended < 1 || err == nil || !strings.Contains(err.Error(), broken) { // it may have ended other tests' erasures
		t.Errorf("got %d ended, and %v; want 1 or more, and an error of %s", ended, err, broken)
	}
	if got := fields(t, c.must("GET", "/v1/erasures/"+next, ""))["status"]; got != erase.Completed {
		t.Errorf("the next one is %v", got)
	}
}

// Erasing a person erases all forms of the name and everything else that names the person, in identities, messages with
// their senders, memories and runs. Another person's erasure does not stop at the mark that replaced the first person's
// key.
func TestPersonsAreErased(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	c := r.client
	ids := [2]string{}
	for i, p := range []struct{ first, last, key, nick string }{{"Ada", "Quarterstaff", "ada.q@example.org", "adaqst"},
		{"Zoë", "Brücknerova", "zoë.b@example.org", "zoebrk"}} {
		full, base := p.first+" "+p.last, "/v1/agents/"+r.agent
		ids[i] = c.made("/v1/identities", fmt.Sprintf(`{"identifier_key":%q,"name":%q,"identity_type":"user",
			"agent_ids":[%q],"properties":[{"key":"nick","value":%q,"type":"string"}]}`, p.key, full, r.agent, p.nick))
		c.capture(r.agent, fmt.Sprintf(`{"messages":[{"role":"user","name":%q,"content":"I am %s, write to %s."},
			{"role":"assistant","content":"Hello %s! (%s, %s)"}]}`, p.nick, full, strings.ToUpper(p.key),
			p.first+"\u00a0"+p.last, p.last, p.first))
		c.must("POST", base+"/archival-memory", fmt.Sprintf(`{"text":"%s. %s likes tea.","tags":[%q]}`, p.first[:1], p.last,
			p.nick))
		c.must("PATCH", base+"/core-memory/blocks/human", fmt.Sprintf(`{"value":"[%s](mailto:%s) %s"}`, p.first, p.key,
			p.last))
		r.model.Says(modeltest.Answer{Text: "Yes, " + full + "."})
		r.stream(r.path()+"/stream", fmt.Sprintf(`{"input":"Do you know %s?","background":true}`, full))
	}
	if _, err := c.pool.Exec(t.Context(), `
		UPDATE run_items SET item = (item::jsonb || '{"big": 9007199254740993}')::json WHERE org = $1`, c.org); err != nil {
		t.Fatal(err)
	}
	for i, forms := range []string{
		`["Ada Quarterstaff","Quarterstaff, Ada","A. Quarterstaff","ada.q@example.org","adaqst"]`,
		`["Zoë Brücknerova","Brücknerova, Zoë","Z. Brücknerova","zoë.b@example.org","zoebrk"]`} {
		got := c.must("POST", "/v1/erasures", fmt.Sprintf(`{"texts":%s,"reason":"asked to be forgotten"}`, forms))
		if !strings.Contains(got, `"status":"completed"`) || !strings.Contains(got, `"left":{}`) {
			t.Errorf("got %s", got)
		}
		if got := c.must("GET", "/v1/identities/"+ids[i], ""); !strings.Contains(got, `"name":"[erased]"`) ||
			!strings.Contains(got, `"identifier_key":"[erased]`) || !strings.Contains(got, r.agent) {
			t.Errorf("the identity: %s", got)
		}
	}
	if left := c.stored("quarterstaff", "adaqst", "ada.q@", "knerova", "zoebrk", "@example.org"); len(left) > 0 {
		t.Errorf("left: %.3000q", left)
	}
	n, err := db.One[[2]int](t.Context(), c.pool, `
		SELECT ARRAY[count(*), count(*) FILTER (WHERE item ->> 'big' = '9007199254740993')] FROM run_items
		WHERE org = $1`, c.org)
	if err != nil || n[0] == 0 || n[0] != n[1] {
		t.Errorf("of %d items of runs %d keep a large number: %v", n[0], n[1], err)
	}
}

// If a text is part of a word of Loci's own, it is erased only from what callers wrote, and a preview counts the same.
// If one text begins another, nothing is left of both in the parts of a message.
func TestAnErasureKeepsWhatLociWrote(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","system":"Help."}`)
	record := "/v1/conversations/" + agent + "/working-memory"
	c.must("PATCH", record, `{"changes":[{"field":"task","text":"sail home"},{"field":"decisions","text":"Tex steers"}]}`)
	c.capture(agent, `{"messages":[{"role":"user","content":[{"type":"text","text":"parts Hollowmere "},
		{"type":"text","text":"Tansy end"}]}]}`)
	c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	for _, texts := range []string{`["Tex","seq","stale_since","type"]`, `["Hollowmere Tansy","Hollowmere"]`} {
		before := c.must("POST", "/v1/erasures/preview", `{"texts":`+texts+`}`)
		got := c.must("POST", "/v1/erasures", `{"texts":`+texts+`,"reason":"asked to"}`)
		if !strings.Contains(got, `"status":"completed"`) || !strings.Contains(got, `"left":{}`) {
			t.Errorf("%s: got %s", texts, got)
		}
		preview := c.must("POST", "/v1/erasures/preview", `{"texts":`+texts+`}`)
		if !strings.Contains(preview, `"found":{}`) || !strings.Contains(preview, `"left":{}`) {
			t.Errorf("%s: the check: %s, before: %s", texts, preview, before)
		}
	}
	var m struct {
		Task      struct{ Text string }
		Decisions []struct {
			Text string
			Seq  int
		}
	}
	if got := c.must("GET", record, ""); json.Unmarshal([]byte(got), &m) != nil || m.Task.Text != "sail home" ||
		len(m.Decisions) != 1 || m.Decisions[0].Text != "[…] steers" || m.Decisions[0].Seq == 0 {
		t.Errorf("the working memory: %s", got)
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/messages?order=asc", ""); strings.Contains(got, "Tansy") {
		t.Errorf("the parts: %s", got)
	}
}
