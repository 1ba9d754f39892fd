package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/tenant/apikey"
)

// consult runs doctor with flags. It returns the texts and remedies of the findings by the thing that they are about.
func consult(t *testing.T, flags ...string) (code int, texts map[string]string, list []db.Finding) {
	t.Helper()
	code, out, errs := command(t, append([]string{"doctor", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: got %d, %q and %q", flags, code, out, errs)
	}
	texts = map[string]string{}
	for _, f := range list {
		texts[f.Of] += string(f.State) + ": " + f.Text + " → " + f.Remedy + "\n"
	}
	return code, texts, list
}

// operatorOf returns a key of the operator of the shared database.
func operatorOf(t *testing.T) string {
	t.Helper()
	pool, _ := dbtest.Org(t)
	key, _ := keyOf(t, pool, apikey.NewKey{Org: apikey.DefaultOrg, Name: "operator", Operator: true,
		Scopes: []string{apikey.Admin}})
	return key
}

// If a server is running, the doctor examines that server's settings, not the settings in its own environment, and says
// where they differ. It shows no secret of either side.
func TestTheDoctorAsksTheRunningServer(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	_, texts, list := consult(t, "--url="+p.base, "--api-key="+operatorOf(t), "--max-runs=7", "--log-level=info",
		"--database-url=postgres://nobody:hunter1@127.0.0.1:1/none", "--llm-base-url=http://u:hunter2@127.0.0.1:1/v1",
		"--llm-api-key=hunter3", "--llm-model=m", "--reopen=false")
	for name, want := range map[string]string{
		"server":   "ok: the server at " + p.base + " was asked: what follows is of its settings",
		"schema":   "ok: is this program's",
		"model":    "ok: none is configured",
		"settings": "advice: LOCI_MAX_RUNS is '7' here and '100' at the server → correct the one that is wrong",
	} {
		if !strings.Contains(texts[name], want) {
			t.Errorf("%s: got %q, want %q", name, texts[name], want)
		}
	}
	for _, want := range []string{"LOCI_LLM_API_KEY is set here and not set at the server",
		"LOCI_LLM_BASE_URL is 'http://[secret]@127.0.0.1:1/v1' here and not set at the server",
		"secret, and so not compared: LOCI_DATABASE_URL →"} {
		if !strings.Contains(texts["settings"], want) {
			t.Errorf("the settings: got %s, want %q", texts["settings"], want)
		}
	}
	for _, never := range []string{"LOCI_LOG_LEVEL", "LOCI_REOPEN", "LOCI_ADDR", "LOCI_API_KEY"} {
		if strings.Contains(texts["settings"], never+" ") {
			t.Errorf("%s is the same, or says whom to ask: %s", never, texts["settings"])
		}
	}
	if text, err := json.Marshal(list); err != nil || strings.Contains(string(text), "hunter") {
		t.Errorf("a secret is shown: %s, %v", text, err)
	}
	if !strings.HasPrefix(texts["postgres"], "ok: ") {
		t.Errorf("the server's database: got %q", texts["postgres"])
	}
}

// If no server tells its settings, the doctor says why, and examines the settings in its own environment.
func TestTheDoctorSaysWhyItExaminesItsOwnSettings(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	const instead = "what follows is of the settings of this environment"
	answering := func(status int, body string) string {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost { // such a route does not exist
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"detail":"Not Found"}`))
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(other.Close)
		return other.URL
	}
	earlier, err := json.Marshal([]server.RunningSetting{{Setting: server.Setting{Variable: "LOCI_LLM_MODEL", Value: "b",
		Origin: server.OfEnvironment}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		flags []string
		want  []string // about the server, and then about the settings
	}{
		"a named server that does not answer": {[]string{"--url=127.0.0.1:1"},
			[]string{"advice: none answers at http://127.0.0.1:1; " + instead + " → start it"}},
		"no server at the address of the settings": {[]string{"--addr=127.0.0.1:1"},
			[]string{"ok: none answers at http://127.0.0.1:1; " + instead}},
		"a key that is not the operator's": {[]string{"--url=" + p.base, "--api-key=" + p.key},
			[]string{"advice: the server at " + p.base + " tells its settings to its operator alone; " + instead}},
		"no key": {[]string{"--url=" + p.base}, []string{"advice: the server at " + p.base + " tells its settings to"}},
		"another program": {[]string{"--url=" + answering(200, "<p>a page")},
			[]string{"is no Loci server that says its settings; " + instead}},
		"a server that fails": {[]string{"--url=" + answering(500, `{"detail":"An unknown error occurred"}`)},
			[]string{"broken: ", "says nothing of itself: An unknown error occurred (status 500); " + instead}},
		"a server of an earlier version": {[]string{"--url=" + answering(200, string(earlier)), "--llm-model=a"},
			[]string{"cannot examine itself; " + instead, "LOCI_LLM_MODEL is 'a' here and 'b' at the server"}},
		"no address":   {[]string{"--url=ftp://x"}, []string{"it must be an address such as", instead}},
		"nobody asked": {[]string{"--own-settings", "--url=" + p.base}, nil},
	} {
		code, texts, _ := consult(t, append(row.flags, "--database-url=postgres://nobody@127.0.0.1:1/none")...)
		for _, want := range row.want {
			if !strings.Contains(texts["server"]+texts["settings"], want) {
				t.Errorf("%s: got %q, want %q", name, texts["server"]+texts["settings"], want)
			}
		}
		if code != 1 || !strings.HasPrefix(texts["postgres"], "broken: ") || len(row.want) == 0 && texts["server"] != "" {
			t.Errorf("%s: ended with %d, %q, want that this environment's database is away", name, code, texts)
		}
	}
}

// A server without its database cannot look up keys, and does not tell its settings. The doctor repeats what the server
// says about its database, and examines nothing else instead.
func TestTheDoctorSaysWhatTheServerSaysOfItsDatabase(t *testing.T) {
	t.Parallel()
	const full = "The database takes no more connections"
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		detail := "The database does not answer"
		if r.URL.Path == "/v1/ready" {
			detail = full
		}
		_, _ = fmt.Fprintf(w, `{"detail":%q}`, detail)
	}))
	defer other.Close()
	for _, flag := range []string{"--url=" + other.URL, "--addr=" + strings.TrimPrefix(other.URL, "http://")} {
		code, texts, list := consult(t, flag, "--home="+t.TempDir(), "--max-runs=0")
		if want := "broken: the server at " + other.URL + " says of its database: " + full; code != 1 || len(list) != 2 ||
			!strings.HasPrefix(texts["database"], want) {
			t.Errorf("%s: ended with %d and %+v, want %q", flag, code, list, want)
		}
	}
}

// If the doctor is sent to a server, it does not start a Postgres of its own environment in place of the server's.
func TestTheDoctorOfAServerStartsNoPostgres(t *testing.T) {
	t.Parallel()
	home := "--home=" + t.TempDir()
	_, texts, _ := consult(t, "--url=127.0.0.1:1", home)
	if !strings.HasPrefix(texts["postgres"], "advice: the private Postgres of this environment does not run") {
		t.Errorf("with --url: got %q", texts["postgres"])
	}
	if _, texts, _ = consult(t, "--url=127.0.0.1:1", home, "--own-settings"); !strings.Contains(texts["postgres"],
		"has no database") {
		t.Errorf("with --own-settings: got %q", texts["postgres"])
	}
}
