package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/configuration.md from the flags")

const configurationHead = `# Configuration

Each setting is an environment variable and a flag of ` + "`loci serve`" + `. An empty variable counts as unset.
This page is generated from the flags: ` + "`go test ./cmd/loci -run TestConfigurationIsDocumented -update`" + `.

| variable | flag | default | meaning |
| --- | --- | --- | --- |
`

func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	var doc strings.Builder
	doc.WriteString(configurationHead)
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			if f.Hidden || len(f.Envs) == 0 {
				continue
			}
			preset := "none"
			if f.Default != "" {
				preset = "`" + f.Default + "`"
			}
			fmt.Fprintf(&doc, "| `%s` | `--%s` | %s | %s |\n", f.Envs[0], f.Name, preset, f.Help)
		}
	}
	const path = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil || string(stored) != doc.String() {
		t.Errorf("%s does not list the flags as they are (%v): run this test with -update", path, err)
	}
}
