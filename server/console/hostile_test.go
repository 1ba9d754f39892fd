package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/loci-memory/loci/server/console"
)

// hostile leaves every element and attribute that a page puts it in without escaping.
const hostile = `javascript:hostile()//"'><hostile></title></textarea></pre></script><script>hostile()</script>`

// hostileID is such a text without slashes.
const hostileID = `javascript:hostile()"'><hostile>`

// answers are what the API answers, by the end of its path. Words after $ stand for values and objects.
var answers = []struct{ path, body string }{
	{`/caller`, `{"key_id":$id,"key_name":$t,"org_id":$id,"org_name":$t,"scopes":["admin"],"operator":true,"version":$t}`},
	{`/count|/active`, `1`},
	{`/context`, `{"context_window_size_max":10,"format":$t,"sha256":$t,"context_window":10,` +
		`"request":{"system":$t,"messages":[{"role":$t,"content":$t},{"role":"user","content":[{"text":$t}]}],$t:$t}}`},
	{`/prompt`, `{"format":$t,"sha256":$t,"context_window":10,"request":{"instructions":$t,"tools":[$t]}}`},
	{`/steps`, `[{"prompt_tokens":5,"created_at":$at}]`},
	{`/compactions`, `[$compaction]`}, {`/compactions/.*`, `$compaction`},
	{`/core-memory/blocks`, `[$block]`}, {`/blocks/[^/]*`, `$block`},
	{`/versions`, `[{"version":3,"value":$t,"author":$t,"at":$at,"provenance":{"tool":$t}},{"version":1,"at":$at}]`},
	{`/diff`, `{"diff":"@@ -1 +1 @@\n-old\n+$line"}`},
	{`/agents/[^/]*/files`, `{"files":[{"file_id":$id,"file_name":$t,"folder_id":$id,"is_pinned":true},{"file_id":$id}]}`},
	{`/agents/[^/]*/policy`, `{"policy":$t,"set_by":$t,"steps":[$step]}`},
	{`/policies`, `{"policies":[{"name":$t,"title":$t,"description":$t,"steps":[$step]}]}`},
	{`/policies/preview`, `[{"policy":$t}]`},
	{`/events/stream`, "data: $event\n\n"}, {`/events`, `[$event,{"seq":2,"type":$t,"ref_id":"compaction-1","at":$at},` +
		`{"seq":3,"type":$t,"ref_id":$id,"at":$at}]`},
	{`/messages/search`, `[{"message":{"agent_id":$id,"seq":1,"role":$t,"created_at":$at},"snippet":$t,"fts_rank":1}]`},
	{`/passages/search`, `[{"passage":{"id":$id,"archive_id":$id,"text":$t,"tags":[$t],"ended":true,"created_at":$at},` +
		`"metadata":{"fts_rank":1,"vector_rank":1}}]`},
	{`/memory-search`, `{"hits":[{"kind":$t,"text":$t,"place":{"path":$t}}],"ranking":$t,"note":$t}`},
	{`/grep_files/run`, `{"func_return":$t}`},
	{`/folders/metadata`, `{"sources":[{"source_id":$id,"source_name":$t}]}`},
	{`/folders/[^/]*/agents`, `[$id]`}, {`/folders/[^/]*/passages`, `[{"text":$t,"metadata":{"heading":$t}}]`},
	{`/folders/[^/]*/files/[^/]*`, `$file`},
	{`/folders/[^/]*`, `{"id":$id,"name":$t,"description":$t}`}, {`/files`, `[$file]`},
	{`/agents/mixing-users`, `[{"id":$id,"name":$t,"users":2}]`}, {`/agents`, `[$agent]`}, {`/agents/[^/]*`, `$agent`},
	{`/archives`, `[$archive]`}, {`/archives/[^/]*`, `$archive`},
	{`/runs`, `[{"id":$id,"agent_id":$id,"status":"running","created_at":$at,"error":{"message":$t}}]`},
	{`/metrics`, "# TYPE loci_jobs gauge\nloci_jobs{queue=\"$label\",state=\"running\"} 1\n"},
	{`/models/embedding`, `[{"embedding_model":$t,"embedding_dim":3}]`}, {`/progress`, `{}`},
	{`POST .*/admin/keys`, `$key`}, {`/admin/keys`, `[$key]`},
	{`/admin/sessions`, `[{"id":$id,"key_name":$t,"org_name":$t,"created_at":$at}]`},
	{`/admin/orgs`, `[{"id":$id,"name":$t,"created_at":$at}]`},
	{`/admin/usage`, `[{"org_id":$id,"quotas":{"agents":1,"stored_bytes":2,"requests_per_month":3}}]`},
	{`/admin/jobs`, `[{"id":$id,"kind":$t,"state":$t,"org_name":$t,"error":$t,"created_at":$at}]`},
	{`/admin/reembedding`, `{"state":$t,"from_model":$t,"to_model":$t,"error":$t,"started_at":$at,"finished_at":$at}`},
	{`/admin/settings`, `[{"Variable":$t,"Flag":$t,"Value":$t,"Origin":"flag","Meaning":$t,"Stored":$t},` +
		`{"Variable":"LOCI_LLM_BASE_URL","Value":$t},{"Variable":"LOCI_LLM_MODEL","Value":$t}]`},
	{`/endpoints/[^/]*/check`, `{"Of":"model","State":$t,"Text":$t,"Remedy":$t}`},
	{`/lab/replays`, `[{"id":$id,"status":"done","why":$t,"created_at":$at},{"status":$t,"created_at":$at}]`},
}

// objects are the objects that several answers have.
var objects = strings.NewReplacer(
	"$compaction", `{"id":$id,"agent_id":$id,"from_seq":1,"to_seq":2,"policy":$t,"trigger":$t,"how":$t,"why":$t,`+
		`"model":$t,"mode":$t,"summary":$t,"created_at":$at,"steps":[{"step":$t}]}`,
	"$block", `{"id":$id,"label":$t,"value":$t,"description":$t,"limit":5,"version":3,"updated_at":$at}`,
	"$step", `{"step":$t,"stage":$t,"description":$t,"settings":[{"name":$t,"value":$t}]}`,
	"$event", `{"seq":1,"type":$t,"ref_id":$id,"at":$at,"message":{"role":$t,"content":[`+
		`{"type":"tool_call","name":$t,"input":$t},{"type":$t,"text":$t}]}}`,
	"$agent", `{"id":$id,"name":$t,"description":$t,"model":$t,"tags":[$t],"created_at":$at,"updated_at":$at,`+
		`"last_run_completion":$at,"last_stop_reason":$t,"system":$t}`,
	"$archive", `{"id":$id,"name":$t,"description":$t,"updated_at":$at}`,
	"$file", `{"id":$id,"source_id":$id,"file_name":$t,"file_type":$t,"processing_status":$t,"error_message":$t,`+
		`"content":$t,"created_at":$at,"updated_at":$at}`,
	"$key", `{"id":$id,"org_name":$t,"name":$t,"prefix":$t,"scopes":[$t],"agent_ids":[$id],"operator":true,"key":$t,`+
		`"created_at":$at}`)

// asJSON is a text as JSON.
func asJSON(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// values are the values in answers.
var values = strings.NewReplacer("$t", asJSON(hostile), "$id", asJSON(hostileID), "$at", `"2026-01-02T03:04:05Z"`,
	"$line", strings.Trim(asJSON(hostile), `"`), "$label", strings.ReplaceAll(hostile, `"`, `\"`))

// hostileAPI answers as the API would if all that it stores were hostile.
func hostileAPI(w http.ResponseWriter, r *http.Request) {
	for _, a := range answers {
		if regexp.MustCompile(`(` + a.path + `)$`).MatchString(r.Method + " " + r.URL.EscapedPath()) {
			_, _ = w.Write([]byte(values.Replace(objects.Replace(a.body))))
			return
		}
	}
	http.Error(w, `{"detail":"the test has no answer to `+r.URL.EscapedPath()+`"}`, http.StatusNotFound)
}

// refusingAPI refuses everything but the question who asks.
func refusingAPI(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/caller" {
		hostileAPI(w, r)
		return
	}
	w.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = w.Write([]byte(values.Replace(`{"detail":$t,"code":$t}`)))
}

// asIs are pages that pass on what the API answers.
var asIs = []string{"GET /console/policies/replays/{replay}", "GET /console/folders/{folder}/files/{file}/events"}

// Nothing that people, agents, models or files wrote becomes an element, an attribute or a script of a page.
func TestNoPageRunsWhatItShows(t *testing.T) {
	t.Parallel()
	parameters := regexp.MustCompile(`\{[a-z]+\}`)
	query := "?" + url.Values{"q": {hostile}, "agent": {hostile}, "tags": {hostile}, "with": {"1"}, "undo": {"1"},
		"next": {"/console/" + hostileID}}.Encode()
	for name, api := range map[string]http.HandlerFunc{"hostile": hostileAPI, "refusing": refusingAPI} {
		c := console.New(api, time.Minute)
		for _, route := range append(c.Routes(), "GET /console/sign-in") {
			if slices.Contains(asIs, route) {
				continue
			}
			method, path, _ := strings.Cut(strings.TrimSuffix(route, "{$}"), " ")
			path = parameters.ReplaceAllString(path, url.PathEscape(hostileID))
			shows := method == http.MethodGet && path != "/console/sign-in" && name == "hostile"
			for _, target := range []string{path, path + query} {
				page := visited(t, c, method, target)
				if shows && (!strings.Contains(page, "hostile&gt;") ||
					strings.Contains(page, "the test has no answer") || strings.Contains(page, "that this page knows")) {
					t.Errorf("%s does not show what is hostile: %s", target, page)
				}
				for _, found := range ran(t, page) {
					t.Errorf("%s of an API that is %s has %s", target, name, found)
				}
			}
		}
	}
}

// visited is what the console answers to a browser that is signed in.
func visited(t *testing.T, c http.Handler, method, target string) string {
	t.Helper()
	const form = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	fields := url.Values{"form": {form}, "name": {hostile}, "value": {hostile}, "version": {"1"}, "scope": {hostile}}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", "loci_form="+form+"; loci_session=loci-session_x")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Body.String()
}

// ran lists what a browser would run, load or take for markup of what a page shows.
func ran(t *testing.T, page string) (found []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		own := false // a script of the console's own
		for _, a := range n.Attr {
			own = own || a.Key == "src" && strings.HasPrefix(a.Val, "/console/static/")
			text := strings.TrimSpace(a.Val)
			isAddress := slices.Contains([]string{"href", "action", "src", "hx-get", "hx-sse:connect"}, a.Key)
			if strings.HasPrefix(a.Key, "on") || isAddress && !strings.HasPrefix(text, "/console/") &&
				!strings.HasPrefix(text, "?") && !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "about:invalid") {
				found = append(found, n.Data+" "+a.Key+"="+a.Val)
			}
		}
		if n.Data == "hostile" || n.Data == "script" && !own {
			found = append(found, "the element "+n.Data)
		}
	}
	return found
}
