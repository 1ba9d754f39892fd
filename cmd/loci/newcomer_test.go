package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where a newcomer begins, a document says that a policy can be chosen, and leads to the page about policies.
func TestANewcomerIsToldOfPolicies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"README.md", "docs/walkthrough.md", "docs/install.md", "docs/mcp.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"policies.md", "compaction_settings"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
}
