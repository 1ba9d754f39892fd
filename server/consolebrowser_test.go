// The race detector watches the pages' handlers in console_test.go. In these tests, the browser would only wait for it.

//go:build !race

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/tenant/apikey"
)

// browser is Chromium with one page. It collects the page's errors and warnings.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // context of the browser
	url string
	axe string

	mu       sync.Mutex
	problems []string
}

// chromium returns the path of an installed Chromium. If there is none, the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium: on Debian, apt-get install chromium")
	return ""
}

func newBrowser(t *testing.T, url string) *browser {
	t.Helper()
	axe, err := os.ReadFile("console/testdata/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 900))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	ctx, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, stop := chromedp.NewContext(ctx)
	b := &browser{t: t, ctx: ctx, url: url, axe: string(axe)}
	b.do("start", chromedp.Navigate("about:blank"))
	var listening sync.WaitGroup
	messages := chromedp.Console(ctx)
	listening.Go(func() { b.listen(messages) })
	t.Cleanup(func() {
		stop()
		stopAllocator()
		cancel()
		listening.Wait()
	})
	return b
}

// listen collects errors, warnings and exceptions from the browser's console.
func (b *browser) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return // the browser has ended
		}
		switch m.Type {
		case chromedp.ConsoleError, chromedp.ConsoleWarning, chromedp.ConsoleException:
			b.mu.Lock()
			b.problems = append(b.problems, fmt.Sprint(m.Type, ": ", m.Text, " ", m.URL))
			b.mu.Unlock()
		}
	}
}

// complaints returns the page's errors and warnings since the last call.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.problems
	b.problems = nil
	return all
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		shown, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%s: %v\n%.2000s", what, err, shown)
	}
}

// ask evaluates an expression in a page.
func ask[T any](b *browser, step, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", step, err)
	}
	return value
}

// submit types a value into a form's field, sends the form, and waits until the next page shows an element. It does not
// press Enter: the page might be gone before the browser has seen the key released, which would be an error.
func (b *browser) submit(step, field, value, element string) {
	b.t.Helper()
	loaded := `document.readyState === "complete" || new Promise(done => addEventListener("load", () => done(true)))`
	if !ask[bool](b, step, loaded) {
		b.t.Fatalf("%s: the page is not loaded", step)
	}
	b.do(step, chromedp.SendKeys(field, value))
	ask[bool](b, step, fmt.Sprintf(`setTimeout(() => document.querySelector(%q).form.requestSubmit()), true`, field))
	b.do(step, chromedp.WaitVisible(element))
}

// open shows a page in a theme at a width, checks it, and takes a screenshot if the test is asked for pictures.
func (b *browser) open(name, path, theme string, width int64) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(name, chromedp.EmulateViewport(width, 900), chromedp.Navigate(b.url+path), chromedp.WaitReady("main"))
	b.check(fmt.Sprintf("%s in the theme %s at %d pixels", name, theme, width))
	if dir := os.Getenv("LOCI_TEST_SCREENSHOTS"); dir != "" {
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, theme, width)), picture, 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// check fails the test if the page fails, has errors or warnings, is wider than the window, or violates rules of
// accessibility.
func (b *browser) check(page string) {
	b.t.Helper()
	ask[bool](b, page, b.axe+";true")
	violations := ask[[]string](b, page, `axe.run().then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html).join(" | ")))`)
	if len(violations) > 0 {
		b.t.Errorf("%s: axe-core finds %s", page, strings.Join(violations, "\n"))
	}
	if ask[bool](b, page, `document.documentElement.scrollWidth > window.innerWidth`) {
		b.t.Errorf("%s is wider than the window", page)
	}
	wide := ask[[]string](b, page,
		`[...document.querySelectorAll(".card")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.id)`)
	if len(wide) > 0 {
		b.t.Errorf("%s: the cards %q have more than they are wide", page, wide)
	}
	if !ask[bool](b, page, `[...document.querySelectorAll("nav [aria-current]")].every(e => {
		const there = e.getBoundingClientRect(); return there.left >= 0 && there.right <= window.innerWidth })`) {
		b.t.Errorf("%s: the navigation does not show where one is", page)
	}
	failures := ask[[]string](b, page,
		`[...document.querySelectorAll(".card > [role=alert]")].map(e => e.textContent)`)
	if all := b.complaints(); len(all)+len(failures) > 0 {
		b.t.Errorf("%s: the browser complains %q, and the page %q", page, all, failures)
	}
}

// Chromium visits every page of the console.
func TestConsoleInABrowser(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	chromium(t)
	c := newDatabaseClient(t) // the console shows the work on embedding spaces, which belong to the whole database
	c.work()
	c.set(server.Setting{Variable: "LOCI_EMBEDDING_BASE_URL", Flag: "--embedding-base-url", Value: "http://127.0.0.1:1/v1",
		Origin: server.OfFlag, Meaning: "OpenAI-compatible endpoint."})
	alice := newTenant(c, "alice")
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	b := newBrowser(t, web.URL)
	b.signIn(alice)
	alice.longNames()
	b.pages(alice)
	b.edit(alice)
	b.upload(alice)
	b.find(alice)
	b.readCompaction(alice)
	read := alice.scoped(apikey.NewKey{Org: alice.unique("alice"), Scopes: []string{apikey.Read}})
	b.readOnly(alice, read.key)
	alice.exec(`INSERT INTO embedding_spaces (provider, model, dimension)
		VALUES ('p', 'small', 384), ('p', 'large', 1536)`)
	alice.exec(`INSERT INTO reembedding (from_space, to_space, done, total, refused)
		SELECT min(id), max(id), 4210, 12000, 3 FROM embedding_spaces`)
	b.operate(alice.operator().key)
}

// longNames renames things to names that are wider than a phone, some with no place for a line break.
func (t tenant) longNames() {
	t.t.Helper()
	long := strings.Repeat("project_notes_", 3)
	block := t.made("/v1/blocks", fmt.Sprintf(`{"label":%q,"value":%q}`, long, long+long))
	t.must("PATCH", "/v1/agents/"+t.has["agent_id"]+"/core-memory/blocks/attach/"+block, "")
	t.made("/v1/archives", fmt.Sprintf(`{"name":%q}`, long+long))
	t.made("/v1/folders", fmt.Sprintf(`{"name":%q}`, long+long))
	t.made("/v1/agents", fmt.Sprintf(`{"name":%q,"model":"openai/%s","tags":[%q]}`, long+long, long, long))
	t.uploaded(t.has["folder_id"], long+long+".txt", long+long)
	passage := fmt.Sprintf(`{"text":%q,"tags":[%q]}`, long+long, long)
	t.must("POST", "/v1/archives/"+t.has["archive_id"]+"/passages", passage)
}

// signIn tries a wrong key, which is refused, and then signs in with the right one.
func (b *browser) signIn(of tenant) {
	b.t.Helper()
	b.open("sign-in", "/", "light", 1280)
	b.submit("a wrong key", "#key", "loci_UNKNOWN", ".sign-in [role=alert]")
	b.complaints() // the error message of the 401
	b.submit("the right key", "#key", of.key, "#overview-needs")
}

// pages opens every page in both themes, and at a phone's width.
func (b *browser) pages(owner tenant) {
	b.t.Helper()
	agent := "/console/agents/" + owner.has["agent_id"]
	folder := "/console/folders/" + owner.has["folder_id"]
	for _, p := range [][2]string{{"overview", "/console/"}, {"agents", "/console/agents"}, {"agent", agent},
		{"history", agent + "/history"}, {"prompt", agent + "/prompt"}, {"events", agent + "/events"},
		{"compaction", agent + "/compactions/" + owner.has["compaction_id"]},
		{"block", "/console/blocks/" + owner.has["block_id"]},
		{"files", "/console/files"}, {"folder", folder}, {"file", folder + "/files/" + owner.has["file_id"]},
		{"archival", "/console/archival"}, {"archive", "/console/archives/" + owner.has["archive_id"]},
		{"search", "/console/search?q=secret"}, {"policies", "/console/policies?agent=" + owner.has["agent_id"]},
		{"jobs", "/console/jobs"}, {"all-events", "/console/events"}, {"keys", "/console/keys"},
		{"organizations", "/console/organizations"}} {
		b.open(p[0], p[1], "light", 1280)
		b.open(p[0], p[1], "dark", 1280)
		b.open(p[0], p[1], "light", 390)
	}
}

// edit changes a block, and undoes the change.
func (b *browser) edit(owner tenant) {
	b.t.Helper()
	text := func() (value string) {
		var block struct{ Value string }
		if err := json.Unmarshal([]byte(owner.must("GET", "/v1/blocks/"+owner.has["block_id"], "")), &block); err != nil {
			b.t.Fatal(err)
		}
		return block.Value
	}
	original := text()
	b.do("edit", chromedp.Navigate(b.url+"/console/blocks/"+owner.has["block_id"]), chromedp.WaitVisible("textarea"),
		chromedp.SendKeys("textarea", "changed <b>here</b> "), chromedp.WaitVisible(".counter"),
		chromedp.Click("form.edit .primary"), chromedp.WaitVisible("form.note button"))
	if got := text(); got != "changed <b>here</b> "+original {
		b.t.Errorf("the block has %q", got)
	}
	b.do("undo", chromedp.Click("form.note button"), chromedp.WaitVisible(`//p[@role="status"][contains(., "earlier")]`))
	if got := text(); got != original {
		b.t.Errorf("after the undo the block has %q, want %q", got, original)
	}
	b.check("the block after the undo")
}

// upload chooses two files, one of them unreadable, and waits until both have their final states.
func (b *browser) upload(owner tenant) {
	b.t.Helper()
	dir := b.t.TempDir()
	for name, content := range map[string]string{"plain.txt": "a line\nanother", "broken.pdf": "%PDF-1.4 nothing"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do("upload", chromedp.Navigate(b.url+"/console/folders/"+owner.has["folder_id"]), chromedp.WaitVisible(".drop"),
		chromedp.SetUploadFiles("#choose-files", []string{filepath.Join(dir, "plain.txt"), filepath.Join(dir, "broken.pdf")}),
		chromedp.WaitVisible(`//ul[@class="uploads"]/li[contains(., "plain.txt")][contains(., "completed")]`),
		chromedp.WaitVisible(`//ul[@class="uploads"]/li[contains(., "broken.pdf")][contains(., "damaged")]`),
		chromedp.WaitVisible(`//section[@id="folder-files"]//tr[contains(., "broken.pdf")][contains(., "damaged")]`))
	b.check("the folder after the upload")
	b.do("only the failed", chromedp.Navigate(b.url+"/console/folders/"+owner.has["folder_id"]+"?status=error"),
		chromedp.WaitVisible(`//section[@id="folder-files"]//tr[contains(., "broken.pdf")]`),
		chromedp.WaitNotPresent(`//section[@id="folder-files"]//tr[contains(., "plain.txt")]`))
}

// find searches with the form of the search page.
func (b *browser) find(owner tenant) {
	b.t.Helper()
	b.do("search", chromedp.Navigate(b.url+"/console/search"), chromedp.WaitVisible("form[role=search]"))
	b.submit("secret", "main input[name=q]", "secret", `//section[@aria-label="Fused"]//li[contains(., "secret")]`)
	b.do("grep", chromedp.Navigate(b.url+"/console/search?in=grep&q=secret&agent="+owner.has["agent_id"]),
		chromedp.WaitVisible(`//pre[contains(., "matches")]`))
	b.check("the search lab with what grep found")
}

// readCompaction opens a compaction from the history, and the messages that it covers.
func (b *browser) readCompaction(of tenant) {
	b.t.Helper()
	b.do("a compaction", chromedp.Navigate(b.url+"/console/agents/"+of.has["agent_id"]+"/history"),
		chromedp.Click(`//li[@class="boundary"]//a[contains(., "compaction")]`),
		chromedp.WaitVisible(`//section[@id="compaction-covers"]//li[contains(., "seq")]`))
	b.check("a compaction with what it covers")
}

// readOnly signs in with a key that may only read, and checks that the pages offer no changes.
func (b *browser) readOnly(owner tenant, key string) {
	b.t.Helper()
	b.do("sign out", chromedp.Navigate(b.url+"/console/"), chromedp.Click(`//button[text()="Sign out"]`),
		chromedp.WaitVisible("#key"))
	b.submit("a key that reads", "#key", key, "#overview-needs")
	b.do("the block", chromedp.Navigate(b.url+"/console/blocks/"+owner.has["block_id"]), chromedp.WaitVisible("textarea"))
	buttons := ask[[]string](b, "the block", `[...document.querySelectorAll("main button")].map(e => e.textContent)`)
	if len(buttons) > 0 {
		b.t.Errorf("a key that may only read is shown the buttons %q", buttons)
	}
}

// operate signs in with the operator's key, opens the pages that only the operator sees, and tests an endpoint.
func (b *browser) operate(key string) {
	b.t.Helper()
	b.do("sign out", chromedp.Navigate(b.url+"/console/"), chromedp.Click(`//button[text()="Sign out"]`),
		chromedp.WaitVisible("#key"))
	b.submit("an operator's key", "#key", key, "#overview-disk")
	b.do("set quotas", chromedp.Navigate(b.url+"/console/organizations"), chromedp.Click(`[aria-label="Change alice"]`),
		chromedp.SendKeys(`details[open] [name=agents]`, "1"),
		chromedp.SendKeys(`details[open] [name=stored_bytes]`, "20000"),
		chromedp.SendKeys(`details[open] [name=requests_per_month]`, "100,000"),
		chromedp.Click(`//details[@open]//button[text()="Set quotas"]`),
		chromedp.WaitVisible(`//p[@role="status"][contains(., "Saved")]`))
	for _, p := range [][2]string{{"operator-overview", "/console/"}, {"operator-organizations", "/console/organizations"},
		{"operator-jobs", "/console/jobs"}, {"settings", "/console/settings"}} {
		b.open(p[0], p[1], "light", 1280)
		b.open(p[0], p[1], "dark", 1280)
		b.open(p[0], p[1], "light", 390)
	}
	b.do("test an endpoint", chromedp.Click(`[aria-label="Test Embeddings"]`),
		chromedp.WaitVisible(`//td[@class="set"]//*[@role="status"][contains(., "as the test says")]`))
	b.check("the settings after a test")
}
