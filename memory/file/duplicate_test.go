package file_test

import (
	"slices"
	"testing"

	memoryfile "github.com/loci-memory/loci/memory/file"
)

// Two facts are the same if they differ only in small words, endings and a little more. They differ if one has another
// name, another number, or a denial.
func TestFactsThatSayTheSame(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		one, other string
		same       bool
	}{
		{"The deploy runs on Friday at noon.", "- the deploy runs on friday at noon", true},
		{"The deploy job runs each Friday at noon.", "Deploy jobs run each Friday noon, as always", true},
		{"The proxy of the service listens on port 8080", "The proxy service listened on port 8080 here", true},
		{"Ada prefers green tea in the morning", "Bob prefers green tea in the morning", false},
		{"The proxy service listens on port 8080", "The proxy service listens on port 8081", false},
		{"The staging server restarts every night", "The staging server never restarts every night", false},
		{"The proxy calls the server of billing", "The server of billing calls the proxy", false},
		{"Backups run daily on host alpha", "Backups run daily on host alpha 2", false},
		{"The port is open", "The port was open", false},
	} {
		if got := memoryfile.SameFact(row.one, row.other); got != row.same {
			t.Errorf("%q and %q: got %v, want %v", row.one, row.other, got, row.same)
		}
		if got := memoryfile.SameFact(row.other, row.one); got != row.same {
			t.Errorf("%q and %q: got %v, want %v", row.other, row.one, got, row.same)
		}
	}
}

// The index may not repeat what another file says, even in slightly different words. A lint lists what two files say.
func TestDuplicatesBySimilarity(t *testing.T) {
	t.Parallel()
	file := func(path, content string) memoryfile.ProposedFile {
		return memoryfile.ProposedFile{NewFile: memoryfile.NewFile{Path: path, Content: content}}
	}
	other := []memoryfile.ProposedFile{file("/memories/deploy.md",
		"# Deploys\n\nThe deploy job runs each Friday at noon.\n")}
	for line, want := range map[string]bool{"Deploy jobs run each Friday noon": true,
		"Deploy jobs run each Monday noon": false} {
		if got := memoryfile.Breaches("## Rules\n\n- "+line+"\n", other); slices.Contains(got, "duplicate") != want {
			t.Errorf("%q breaks %v; duplicate: want %v", line, got, want)
		}
	}
	f := newFixture(t)
	for path, content := range map[string]string{"/memories/a.md": "# A\n\nThe deploy job runs each Friday at noon.\n",
		"/memories/b.md": "Ada likes green tea.\nDeploy jobs run each Friday noon.\n"} {
		if _, err := f.store.Write(t.Context(), f.at, path, content, ""); err != nil {
			t.Fatal(err)
		}
	}
	l, err := f.store.Lint(t.Context(), f.org, f.at.Tree)
	want := memoryfile.Duplicate{Path: "/memories/b.md", Line: 2, OtherPath: "/memories/a.md", OtherLine: 3,
		Text: "deploy jobs run each friday noon"}
	if err != nil || len(l.Duplicates) != 1 || l.Duplicates[0] != want {
		t.Errorf("the lint has %+v (%v), want %+v", l.Duplicates, err, want)
	}
}
