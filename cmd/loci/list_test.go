package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/rest"
)

// Every command for users accepts --json, except commands with a special form of output.
func TestCommandsPrintJSON(t *testing.T) {
	t.Parallel()
	without := []string{"serve", "mcp", "completion"}
	for _, leaf := range leaves(t) {
		name := commandName(leaf)
		takes := leaf.Flags().Lookup("json") != nil
		if takes == slices.Contains(without, name) {
			t.Errorf("loci %s takes --json: %t", name, takes)
		}
	}
}

// With --json, a command prints one value and no other text.
func TestCommandsAnswerInJSON(t *testing.T) {
	t.Parallel()
	p, dir := tenant(t), t.TempDir()
	session, texts := filepath.Join(dir, "session.jsonl"), filepath.Join(dir, "texts")
	if err := errors.Join(os.WriteFile(session, []byte(`{"role":"user","content":"Where is it set?"}`+"\n"), 0o600),
		os.WriteFile(texts, []byte("Ann Lee\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	agent := call[identified](p, "POST", "/v1/agents/", map[string]any{"name": "a"}).ID
	file := filepath.Join(dir, "a.af")
	remotely, locally := p.asking(), []string{"--database-url=" + sharedURL(t)}
	for _, row := range []struct {
		place      []string
		args, want string
	}{
		{remotely, "agents export " + agent + " " + file, `"bytes": `},
		{remotely, "export " + agent, `"agents"`},
		{remotely, "agents import " + file, `"agent_ids": [`},
		{remotely, "import sessions " + session, `"messages_added": 1`},
		{remotely, "erase --dry-run " + texts, `"found": {`},
		{remotely, "erase --yes " + texts, `"status": "completed"`},
		{nil, "lab replay --policy=letta " + session, `"results": [`},
		{locally, "migrate", `"indexes_built": 0`},
	} {
		code, out, errs := command(t, append(append(strings.Fields(row.args), "--json"), row.place...)...)
		if code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, row.want) {
			t.Errorf("loci %s ended with %d, want %s: %s%s", row.args, code, row.want, out, errs)
		}
	}
}

// For each command, the documents say whether it asks a server or works on the database. The command's flags must
// agree.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "They are of three kinds:")
	section, _, _ = strings.Cut(section, "Every command but")
	kinds := strings.Split(section, "\n- ")[1:]
	for _, leaf := range leaves(t) {
		name, kind := commandName(leaf), 2
		if leaf.Flags().Lookup("database-url") != nil {
			kind = 1
		} else if leaf.Flags().Lookup("addr") != nil {
			kind = 0
		}
		group, _, _ := strings.Cut(name, " ")
		if name != "serve" && !strings.Contains(kinds[kind], "`"+name+"`") && !strings.Contains(kinds[kind], "`"+group+"`") {
			t.Errorf("docs/operations.md does not list loci %s with\n%s", name, kinds[kind])
		}
	}
}

// If a list changes while its pages are read, no item is left out, and none is repeated.
func TestAListGoesOnWhereTheLastItemOfAPageIsGone(t *testing.T) {
	t.Parallel()
	ids := func(from, to int) (list []string) {
		for n := from; n <= to; n++ {
			list = append(list, fmt.Sprintf("a-%d", n))
		}
		return list
	}
	for name, deleted := range map[string][]string{"nothing is gone": nil, "the last": ids(1000, 1000),
		"the last three": ids(998, 1000), "the whole page": ids(1, 1000), "not found: the last": ids(1000, 1000),
		"not found: the whole page": ids(1, 1000)} {
		for _, total := range []int{0, 1, 999, 1000, 1001, 2500} {
			existing, asked := ids(1, total), 0
			list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked == 2 {
					existing = slices.DeleteFunc(existing, func(id string) bool { return slices.Contains(deleted, id) })
				}
				page := []map[string]string{}
				next := slices.Index(existing, r.FormValue("after")) + 1
				for n := next; n < len(existing) && len(page) < rest.MaxPage && (next > 0 || r.FormValue("after") == ""); n++ {
					page = append(page, map[string]string{"id": existing[n]})
				}
				if next == 0 && r.FormValue("after") != "" && strings.HasPrefix(name, "not found") {
					w.WriteHeader(http.StatusNotFound)
				}
				_ = json.NewEncoder(w).Encode(page)
			}))
			all, err := listAll[identified](t.Context(), remote{Addr: list.URL}, "/v1/things", url.Values{})
			var got []string
			for _, one := range all {
				got = append(got, one.shown.ID)
			}
			if want := ids(1, total); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s of %d: got %d items, %v", name, total, len(got), err)
			}
			list.Close()
		}
	}
}

// Jobs are listed from newest to oldest, over several pages.
func TestJobsAreListedTheNewestFirst(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	id := call[struct {
		ID string `json:"org_id"`
	}](p, "GET", "/v1/caller", nil).ID
	pool, _ := dbtest.Org(t)
	numbers, err := db.All[string](t.Context(), pool, `
		WITH added AS (
			INSERT INTO river_job (kind, queue, state, args, max_attempts, created_at, finalized_at)
			SELECT 'listed', 'nobody', 'completed', jsonb_build_object('org', o.org), 1,
			       now() - n / 500 * interval '1 second', now()
			FROM organizations o CROSS JOIN generate_series(1, 1500) n WHERE o.id = $1 ORDER BY n DESC
			RETURNING id
		)
		SELECT 'job-' || md5(o.job_salt::text || a.id)::uuid
		FROM added a CROSS JOIN organizations o WHERE o.id = $1 ORDER BY a.id`, id)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(numbers)
	code, out, errs := command(t, p.asking("jobs", "--json", "--kind=listed")...)
	var list []identified
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("ended with %d: %v %s", code, err, errs)
	}
	var got []string
	for _, one := range list {
		got = append(got, one.ID)
	}
	if !slices.Equal(got, numbers) {
		t.Errorf("got %d jobs, %q…, want %d, %q…", len(got), got[:min(5, len(got))], len(numbers), numbers[:5])
	}
}

// leaves returns the commands that users run.
func leaves(t *testing.T) []*cobra.Command {
	t.Helper()
	list := runnable(newProgram(nil), false)
	if len(list) < 60 {
		t.Fatalf("there are %d commands", len(list))
	}
	return list
}
