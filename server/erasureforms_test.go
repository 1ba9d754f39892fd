package server_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/erase"
)

// encodings returns different encodings of a text, by name.
func encodings(text string) map[string]string {
	html := strings.NewReplacer(`"`, "&quot;", "ë", "&euml;", "ü", "&#252;").Replace(text)
	return map[string]string{
		"a URL":             "https://example.org/?q=" + url.QueryEscape(text),
		"a URL, decomposed": "https://example.org/" + url.PathEscape(norm.NFD.String(text)),
		"HTML":              "<p>" + html + "</p>",
		"JSON":              quoted(text),
		"JSON in JSON":      quoted(quoted(text)),
		"base64":            base64.StdEncoding.EncodeToString([]byte("user:" + text)),
		"base64 of a URL":   base64.RawURLEncoding.EncodeToString([]byte(text + " is here")),
		"decomposed":        norm.NFD.String(text),
		"compatible":        norm.NFKC.String(text),
		"in capitals":       strings.ToUpper(text),
	}
}

// base64Cores returns parts of the secret's base64, for each offset at which the secret may begin.
func base64Cores() (cores []string) {
	for shift := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte("xxx"[:shift] + secret))
		cores = append(cores, encoded[4:16], encoded[20:32])
	}
	return cores
}

// Each encoding is erased from all memories. The test then searches for the word that all encodings except base64 show,
// and for parts of the base64.
func TestAnErasureFindsEncodedTexts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	forms := encodings(secret)
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"a","metadata":{"customer_id":%[1]s,"type":%[1]s,"n":{"id":%[1]s}},
		"memory_blocks":[{"label":"human","value":%[1]s}]}`, quoted(secret)))
	folder := c.made("/v1/folders", `{"name":"f"}`)
	for name, form := range forms {
		c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":%s}]}`, quoted("He said "+form+".")))
		c.must("POST", "/v1/agents/"+agent+"/archival-memory", fmt.Sprintf(`{"text":%s}`, quoted(name+": "+form+".")))
		c.made("/v1/blocks", fmt.Sprintf(`{"label":"l","value":%s}`, quoted(form)))
		c.uploaded(folder, strings.ReplaceAll(name, " ", "_")+".txt", strings.Repeat("Words. ", 30)+form+" Words.")
	}
	c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"text","text":%s},
		{"type":"text","text":%s}]}]}`, quoted("I am "+secret[:9]), quoted(secret[9:]+", hello")))
	c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	parts := append(base64Cores(), "qzx7741")
	if before := c.stored(parts...); len(before) < 4*len(forms) {
		t.Fatalf("the text is planted in %d places only", len(before))
	}
	e := c.erased(secret)
	if left := c.stored(parts...); len(left) > 0 || len(e.Report.Left) > 0 {
		t.Errorf("left: %v, %.2000q", e.Report.Left, left)
	}
}

// An erasure finds a text that is split between the pieces of an answer, the chunks of a file, or the views of a
// prompt, wherever it is split.
func TestAnErasureFindsTextsThatAreCut(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, `{"name":"a"}`)
	r.work()
	for pad := range 6 {
		r.model.Says(modeltest.Answer{Text: strings.Repeat("x", 4*pad) + secret})
		r.stream(r.path()+"/stream", `{"input":"Who?","background":true,"stream_tokens":true}`)
	}
	folder := r.made("/v1/folders", `{"name":"f"}`)
	r.must("PATCH", "/v1/agents/"+r.agent+"/folders/attach/"+folder, "")
	for pad := range 20 {
		r.uploaded(folder, fmt.Sprintf("f%d.txt", pad), strings.Repeat("A word of no use is here. ", 30)+
			strings.Repeat("y", 3*pad)+" "+secret+strings.Repeat(" And more of it.", 40))
	}
	inPieces := func() (n int) { // how often the pieces of an answer, joined, contain the secret's word
		texts, err := db.All[string](t.Context(), r.pool, `
			SELECT string_agg(item ->> 'content', '' ORDER BY seq) FROM run_items
			WHERE org = $1 AND item ->> 'message_type' = 'assistant_message' GROUP BY run_key, item ->> 'id'`, r.org)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			n += strings.Count(text, "qzx7741")
		}
		return n
	}
	if inPieces() < 6 {
		t.Fatal("no piece is stored")
	}
	e := r.erased(secret)
	if left := r.stored("qzx7741"); len(left) > 0 || inPieces() > 0 {
		t.Errorf("left: %.2000q, and %d in pieces", left, inPieces())
	}
	if e.Report.Found["files"] < 20 || e.Report.Found["run_items"] == 0 {
		t.Errorf("the report: %v", e.Report.Found)
	}
}

// If a whole message is erased, all copies and quotations of it are erased too. A preview counts them beforehand.
func TestCopiesOfAnErasedMessageAreErased(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"standard","tools":["memory_files"]}`)
	path := "/v1/agents/" + agent
	const fact = "We decided that Zora Quill keeps the spare key under the blue stone"
	text := "The house is old. " + fact + ". Tell nobody."
	appended := c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"assistant","content":%s}]}`, quoted(text)))
	c.capture(agent, chatter(1, 8, "weather"))
	c.must("GET", path+"/prompt", "")
	c.compact(path+"/summarize", `{}`)
	c.must("GET", path+"/prompt", "")
	c.must("PATCH", "/v1/conversations/"+agent+"/working-memory",
		fmt.Sprintf(`{"changes":[{"field":"decisions","text":%s}]}`, quoted(fact)))
	c.must("POST", path+"/archival-memory", fmt.Sprintf(`{"text":%s}`, quoted("Noted: "+text)))
	c.child(agent, fmt.Sprintf(`{"mode":"blank","task":%s}`, quoted("Check this: "+text)))
	c.child(agent, `{"mode":"fork","task":"Count the stones."}`)
	c.handOver(agent)
	replayed := fields(t, c.accepted("/v1/lab/replays", `{"agent_id":"`+agent+`","policies":["letta"]}`))["id"].(string)
	c.awaitReplay(replayed)
	if before := c.stored("blue stone"); len(before) < 10 {
		t.Fatalf("in %d places only: %.3000q", len(before), before)
	}
	body := fmt.Sprintf(`{"message_id":%q}`, appended.Messages[0].ID)
	var preview erase.Report
	c.unmarshal(c.must("POST", "/v1/erasures/preview", body), &preview)
	for _, table := range []string{"messages", "passages", "prompt_parts", "working_memories", "children",
		"handover_updates", "replay_sessions"} {
		if preview.Found[table] == 0 {
			t.Errorf("the preview lacks %s: %+v", table, preview)
		}
	}
	if preview.Summaries == 0 || preview.Prompts == 0 {
		t.Errorf("the preview: %+v", preview)
	}
	if got := c.must("POST", "/v1/erasures", body); !strings.Contains(got, `"status":"completed"`) {
		t.Fatalf("got %s", got)
	}
	if left := c.stored("blue stone", "Zora"); len(left) > 0 {
		t.Errorf("left: %.3000q", left)
	}
	if got := c.must("POST", "/v1/erasures/preview", body); !strings.Contains(got, `"found":{}`) {
		t.Errorf("the check: got %s", got)
	}
	c.must("GET", path+"/prompt", "")
	if got := c.call("GET", "/v1/lab/replays/"+replayed, ""); got.Code != 404 {
		t.Errorf("the replay: got %d %s", got.Code, got.Text)
	}
}

// packedDocument returns a Word document. Markup splits its text, and it has a comment that no program shows.
func packedDocument(t *testing.T, text, title string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	half := len(text) / 2
	for _, f := range [][2]string{
		{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
			<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
			<Override PartName="/word/document.xml" ContentType=
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`},
		{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship
			Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
			Target="word/document.xml"/></Relationships>`},
		{"word/document.xml", `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
			<w:p><w:r><w:t xml:space="preserve">Here is ` + text[:half] + `</w:t></w:r><w:r><w:t xml:space="preserve">` +
			text[half:] + ` of Berlin.</w:t></w:r></w:p></w:body></w:document>`},
		{"docProps/custom.xml", `<Properties><a>` + title[:3] + `</a><b>` + title[3:] + `</b></Properties>`},
	} {
		part, err := w.Create(f[0])
		if err == nil {
			_, err = part.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// packedPDF returns a PDF with an empty page, a title in UTF-16, and a compressed stream.
func packedPDF(title, stream string) string {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write([]byte(stream))
	_ = w.Close()
	utf := ""
	for _, u := range utf16.Encode([]rune(title)) {
		utf += fmt.Sprintf("%04X", u)
	}
	return fmt.Sprintf("%%PDF-1.4\n%%\xe2\xe3\n1 0 obj<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>endobj\n"+
		"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"+
		"4 0 obj<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream endobj\n5 0 obj<</Title <FEFF%s>>>endobj\n"+
		"trailer<</Root 1 0 R/Info 5 0 R>>\n%%%%EOF\n", packed.Len(), packed.String(), utf)
}

// If a document's format packs its text, the document keeps the text that was read from it, and its original bytes are
// deleted. If nothing was read from a file, the report names the file.
func TestPackedDocumentsAreErased(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	plain := strings.ReplaceAll(secret, `"`, "")
	ids := map[string]string{}
	for name, content := range map[string]string{"text.docx": packedDocument(t, plain, "nothing"),
		"property.docx": packedDocument(t, "Nobody", plain), "other.docx": packedDocument(t, "Nobody", "nothing"),
		"title.pdf": packedPDF(plain, "<x/>"), "stream.pdf": packedPDF("A title", "<rdf>"+plain+"</rdf>"),
		"scan.pdf": packedPDF("A title", "<x/>")} {
		got := c.upload(folder, "", name, content)
		if got.Code != 200 {
			t.Fatalf("upload %s: got %d %s", name, got.Code, got.Text)
		}
		ids[name] = fields(t, got.Text)["id"].(string)
		embedtest.Eventually(t, name+" is read", func() bool {
			status := fields(t, c.must("GET", "/v1/folders/"+folder+"/files/"+ids[name], ""))["processing_status"]
			return status == "completed" || status == "error"
		})
	}
	e := c.erased(plain)
	converted := strings.Join(e.Report.Converted, " ")
	for name, id := range ids {
		if changed := name != "other.docx" && name != "scan.pdf"; strings.Contains(converted, id) != changed {
			t.Errorf("%s is converted: %t; the report: %+v", name, !changed, e.Report)
		}
	}
	if e.Report.Unread == 0 || !strings.Contains(strings.Join(e.Report.UnreadIDs, " "), ids["scan.pdf"]) {
		t.Errorf("the report does not name the file without a text: %+v", e.Report)
	}
	c.awaitFile(folder, ids["text.docx"])
	text := c.must("GET", "/v1/folders/"+folder+"/files/"+ids["text.docx"]+"?include_content=true", "")
	if !strings.Contains(text, "Here is [erased] of Berlin.") {
		t.Errorf("the text: got %s", text)
	}
	var check erase.Report
	c.unmarshal(c.must("POST", "/v1/erasures/preview", fmt.Sprintf(`{"texts":[%s]}`, quoted(plain))), &check)
	if len(check.Found) > 0 || check.Unread == 0 {
		t.Errorf("the check: %+v", check)
	}
	if left := c.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// holding is a model that writes a summary when it is released.
type holding struct {
	once        sync.Once
	asked, goOn chan struct{}
	text        string
}

func (h *holding) Complete(ctx context.Context, _ summary.Request) (summary.Reply, error) {
	h.once.Do(func() { close(h.asked) })
	select {
	case <-h.goOn:
	case <-ctx.Done():
	}
	return summary.Reply{Text: h.text}, ctx.Err()
}

// A run, a compaction and an import that began before an erasure have read the text, and may write it later. The
// erasure waits for them.
func TestAnErasureWaitsForWhatBeganBefore(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	other := r.made("/v1/agents", `{"name":"other"}`)
	r.capture(other, fmt.Sprintf(`{"messages":[{"role":"user","content":%s}]}`, quoted("I am "+secret)))
	r.capture(other, chatter(1, 8, "weather"))
	blocked := &holding{asked: make(chan struct{}), goOn: make(chan struct{}),
		text: "## Who\n- The user is " + secret + "."}
	r.own().Agents.Compaction.Models = func(context.Context, string) *summary.Model {
		return &summary.Model{Summarizer: blocked, Name: "m"}
	}
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Hello, " + secret, Wait: wait})
	run := r.begun(fmt.Sprintf(`{"input":%s}`, quoted("I am "+secret)))
	compacted, erased := make(chan servertest.Reply, 1), make(chan servertest.Reply, 1)
	go func() { compacted <- r.call("POST", "/v1/agents/"+other+"/summarize", `{}`) }()
	<-blocked.asked
	folder := r.made("/v1/folders", `{"name":"f"}`)
	file := r.sent(folder, "a.docx", packedDocument(t, strings.ReplaceAll(secret, `"`, "&quot;"), "nothing"))

	go func() { erased <- r.call("POST", "/v1/erasures", fmt.Sprintf(`{"texts":[%s]}`, quoted(secret))) }()
	var list []erase.Erasure
	embedtest.Eventually(t, "the erasure waits", func() bool {
		r.unmarshal(r.must("GET", "/v1/erasures", ""), &list)
		return len(list) > 0 && len(list[0].Report.AtWork) > 0
	})
	for _, what := range []string{"runs", "compactions", "files"} {
		if list[0].Report.AtWork[what] != 1 || list[0].Status != erase.Running {
			t.Errorf("it does not wait for %s: %+v", what, list[0])
		}
	}
	close(wait)
	close(blocked.goOn)
	r.work()
	for what, reply := range map[string]chan servertest.Reply{"the run": run, "the compaction": compacted} {
		if got := <-reply; got.Code != 200 {
			t.Errorf("%s: got %d %s", what, got.Code, got.Text)
		}
	}
	if got := <-erased; !strings.Contains(got.Text, `"status":"completed"`) {
		t.Errorf("the erasure: got %s", got.Text)
	}
	r.awaitFile(folder, file)
	if left := r.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// An erasure does not wait for ever. When it ends, it says what may write the texts again.
func TestAnErasureDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	r := newRunnerOf(newErasingClient(t), "")
	r.own().Erasures.InBackground = true
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: wait})
	run := r.begun(`{"input":"Hello"}`)
	id := r.made("/v1/erasures", `{"texts":["no such text"]}`)
	if _, err := r.server.Erasures.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.must("GET", "/v1/erasures/"+id, ""); !strings.Contains(got, `"status":"running"`) {
		t.Errorf("it does not wait: got %s", got)
	}
	r.exec(`UPDATE erasures SET began_at = began_at - interval '11 minutes', claimed_at = NULL WHERE org = $1`, r.org)
	if _, err := r.server.Erasures.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var e erase.Erasure
	if err := json.Unmarshal([]byte(r.must("GET", "/v1/erasures/"+id, "")), &e); err != nil || e.Status !=
		erase.Incomplete || e.Report.AtWork["runs"] != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
	close(wait)
	<-run
}
